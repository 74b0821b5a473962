//! Into the agents' files and out again, byte for byte.

use std::path::Path;

use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_testkit::{Scratch, files_below};
use serde_json::Value;

use crate::support::{GUARD, MANIFEST, run, text, trusted_project};

/// Every file below a folder, with its content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = files_below(folder).into_iter();
    files
        .map(|path| (text(&path), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn comments_and_line_endings_survive() {
    let scratch = trusted_project(MANIFEST);
    let settings = "{\r\n  // mine\r\n  \"model\": \"x\"\r\n}\r\n";
    let settings_file = scratch.home().join(".claude/settings.json");
    scratch.file(&settings_file, settings).unwrap();
    let before = (files(&scratch.project()), files(&scratch.home()));
    let with = |command| {
        [
            command,
            "--yes",
            "--scope",
            "user",
            "--agent",
            "claude-code",
        ]
    };
    let installed = run(&scratch, &with("install"), "");
    assert_eq!(installed.exit, Some(0), "{installed:?}");
    let written = std::fs::read_to_string(&settings_file).unwrap();
    assert!(
        written.contains("anyhook.exe run --agent claude-code"),
        "{written}"
    );
    assert!(
        !written.contains("\\\\"),
        "one path for every shell: {written}"
    );
    assert_entries_deny(&scratch, "claude-code", "user");
    let removed = run(&scratch, &with("uninstall"), "");
    assert_eq!(removed.exit, Some(0), "{removed:?}");
    let after = (files(&scratch.project()), files(&scratch.home()));
    assert_eq!(before, after);
}

/// A user, a project and a program whose folders have blanks and letters that no
/// code page has together.
#[test]
fn folders_of_all_languages_get_entries_that_deny() {
    let scratch = Scratch::new().unwrap();
    let user = scratch.root().join("Zo\u{eb} \u{4f60}\u{597d}");
    let project = user.join("my \u{e4}\u{43f} & project");
    let program = scratch.root().join("a pr\u{f6}gram \u{4f60}/anyhook.exe");
    scratch.file(project.join(".git/HEAD"), "").unwrap();
    let guard = project.join(".anyhook/guard.cmd");
    scratch.file(guard, GUARD).unwrap();
    let manifest = project.join(".anyhook/hooks.json");
    scratch.file(manifest, MANIFEST).unwrap();
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_anyhook"), &program).unwrap();
    let run = |arguments: &[&str], stdin: &str| {
        let root = std::env::var("SystemRoot").unwrap();
        let command = scratch.command(&program).dir(&project);
        let command = command
            .env("PATH", format!("{root}\\system32;{root}"))
            .env("USERPROFILE", &user)
            .env("HOME", &user)
            .env("ANYHOOK_CONFIG_DIR", user.join("config"))
            .env("ANYHOOK_STATE_DIR", user.join("state"));
        command.run(arguments, stdin).unwrap()
    };
    let trusted = run(&["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    for slug in ["claude-code", "codex"] {
        for scope in ["user", "project"] {
            let config = || {
                let mut found = files(&user);
                found.retain(|(path, _)| !path.starts_with(&text(&user.join("state"))));
                found
            };
            let before = config();
            let options = ["--yes", "--agent", slug, "--scope", scope];
            let installed = run(&[&["install"], &options[..]].concat(), "");
            assert_eq!(installed.exit, Some(0), "{slug}, {scope}: {installed:?}");
            let diagnosed = run(&["doctor", "--json", "--agent", slug], "");
            assert_all_deny(&diagnosed.json().unwrap(), slug, scope);
            let removed = run(&[&["uninstall"], &options[..]].concat(), "");
            assert_eq!(removed.exit, Some(0), "{slug}, {scope}: {removed:?}");
            assert_eq!(before, config(), "{slug}, {scope}");
        }
    }
}

/// An agent whose entries are scripts for PowerShell, which Wine does not have.
const STARTED_BY_POWERSHELL: &str = "cline";

#[test]
fn every_agent_gets_entries_that_deny_and_loses_them_without_a_trace() {
    let mut tried = 0;
    for adapter in clients() {
        let slug = adapter.spec.id.as_ref();
        for (scope, name) in [(Scope::User, "user"), (Scope::Project, "project")] {
            if !adapter.spec.is_written_at(scope) {
                continue;
            }
            tried += 1;
            let scratch = trusted_project(MANIFEST);
            // The recorded files are those of a project, if it has any.
            if scope == Scope::Project {
                copy_existing_files(slug, &scratch.project());
            }
            let before = (files(&scratch.project()), files(&scratch.home()));
            let options = ["--yes", "--agent", slug, "--scope", name];
            let with = |command: &'static str, more: &[&'static str]| {
                [&[command], &options[..], more].concat()
            };
            let events = ["--events", "before_tool_execute"];
            let installed = run(&scratch, &with("install", &events), "");
            assert_eq!(installed.exit, Some(0), "{slug}, {name}: {installed:?}");
            let during = (files(&scratch.project()), files(&scratch.home()));
            assert_ne!(before, during, "{slug}, {name}: nothing was written");
            if slug != STARTED_BY_POWERSHELL {
                assert_entries_deny(&scratch, slug, name);
            }
            let removed = run(&scratch, &with("uninstall", &[]), "");
            assert_eq!(removed.exit, Some(0), "{slug}, {name}: {removed:?}");
            let after = (files(&scratch.project()), files(&scratch.home()));
            assert_eq!(before, after, "{slug}, {name}");
        }
    }
    assert!(tried > clients().count(), "most agents have two files");
}

/// `doctor` starts each entry as the agent does; its hook denies.
fn assert_entries_deny(scratch: &Scratch, slug: &str, scope: &str) {
    let diagnosed = run(scratch, &["doctor", "--json", "--agent", slug], "");
    assert_all_deny(&diagnosed.json().unwrap(), slug, scope);
}

fn assert_all_deny(report: &Value, slug: &str, scope: &str) {
    let count = |name: &str| report[name].as_u64().unwrap();
    assert!(count("fired") > 0, "{slug}, {scope}: {report:#}");
    assert_eq!(
        count("answered"),
        count("fired"),
        "{slug}, {scope}: {report:#}"
    );
}

/// Files with hooks of others, as the agent's recorded case has them.
fn copy_existing_files(slug: &str, project: &Path) {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    let case = agents.join(slug).join("install/existing/before");
    for (path, content) in files(&case) {
        let target = project.join(Path::new(&path).strip_prefix(&case).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, content).unwrap();
    }
}
