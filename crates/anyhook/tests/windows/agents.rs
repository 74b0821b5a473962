//! Every agent, every name of a folder, and the first steps of a newcomer.

use std::path::Path;

use anyhook_agents::matrix::clients;
use anyhook_model::Decision;
use anyhook_testkit::Scratch;

use crate::support::{MANIFEST, decision, run, text, trusted_project};

#[test]
fn a_batch_file_denies_for_every_agent() {
    let scratch = trusted_project(MANIFEST);
    let project = text(&scratch.project());
    for adapter in clients() {
        let slug = &adapter.spec.id;
        let denied = decision(&scratch, adapter, "rm -rf x", &project);
        assert_eq!(denied, Some(Decision::Deny), "{slug}");
        let other = decision(&scratch, adapter, "dir", &project);
        assert_ne!(other, Some(Decision::Deny), "{slug}");
    }
}

#[test]
fn a_project_is_the_same_by_every_name_of_its_folder() {
    let scratch = trusted_project(MANIFEST);
    let adapter = clients().next().unwrap();
    let project = text(&scratch.project());
    let (drive, rest) = project.split_once(':').unwrap();
    let slashes = rest.replace('\\', "/");
    let drive = drive.to_lowercase();
    for folder in [
        format!("{drive}:{rest}"),
        format!("{drive}:{slashes}"),
        format!(r"\\?\{project}"),
        format!("/{drive}{slashes}"),
        format!("file:///{drive}:{slashes}"),
        format!("{project}\\gone\\.."),
        format!("{project}\\.\\sub"),
    ] {
        let denied = decision(&scratch, adapter, "rm -rf x", &folder);
        assert_eq!(denied, Some(Decision::Deny), "{folder}");
    }
}

#[test]
fn a_changed_batch_file_is_not_run() {
    let scratch = trusted_project(MANIFEST);
    let adapter = clients().next().unwrap();
    scratch
        .file(".anyhook/guard.cmd", "@exit /b 2\r\n")
        .unwrap();
    let project = text(&scratch.project());
    let decided = decision(&scratch, adapter, "dir", &project);
    assert_eq!(decided, None, "what has changed must not run");
}

#[test]
fn a_line_for_sh_is_never_run_by_cmd() {
    let manifest = MANIFEST
        .replace(r".anyhook\\guard.cmd", "echo no >&2; exit 2")
        .replace(
            "\"blocking\": true",
            "\"blocking\": true, \"on_failure\": \"block\"",
        );
    let scratch = trusted_project(&manifest);
    let adapter = clients().next().unwrap();
    // Without Git Bash it cannot start, and a guard that fails blocks.
    let decided = decision(&scratch, adapter, "dir", &text(&scratch.project()));
    assert_eq!(decided, Some(Decision::Deny));
}

#[test]
fn the_demo_denies_in_every_agent() {
    let scratch = Scratch::new().unwrap();
    let shown = run(&scratch, &["demo", "--json"], "").json().unwrap();
    let agents = shown["scenes"][0]["agents"].as_array().unwrap();
    assert_eq!(agents.len(), clients().count());
    for agent in agents {
        let decision = &agent["response"]["decision"];
        assert_eq!(decision, "deny", "{}", agent["name"]);
    }
}

#[test]
fn a_first_manifest_works_without_sh() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let made = run(&scratch, &["init", "--yes"], "");
    assert_eq!(made.exit, Some(0), "{made:?}");
    let adapter = clients().next().unwrap();
    let project = text(&scratch.project());
    let denied = decision(&scratch, adapter, "rm -rf ~", &project);
    assert_eq!(denied, Some(Decision::Deny));
}

#[test]
fn the_examples_work_without_sh() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for example in ["guard", "guards"] {
        let scratch = Scratch::new().unwrap();
        scratch.file(".git/HEAD", "").unwrap();
        for entry in std::fs::read_dir(examples.join(example)).unwrap() {
            let path = entry.unwrap().path();
            let content = std::fs::read_to_string(&path).unwrap();
            let target = Path::new(".anyhook").join(path.file_name().unwrap());
            scratch.file(target, &content).unwrap();
        }
        let trusted = run(&scratch, &["trust", "--yes"], "");
        assert_eq!(trusted.exit, Some(0), "{example}: {trusted:?}");
        let project = text(&scratch.project());
        for adapter in clients() {
            let denied = decision(&scratch, adapter, "rm -rf /", &project);
            let slug = &adapter.spec.id;
            assert_eq!(denied, Some(Decision::Deny), "{example}, {slug}");
        }
    }
}
