//! Nothing of a project runs that the user has not consented to.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Manifest};
use anyhook_run::config::trust::{Distrust, ProjectManifest, TrustStore};

use crate::scratch::{DispatchScratch, hook, manifest};

const BEFORE: &str = "before_tool_execute";

fn project() -> DispatchScratch {
    let mut scratch = DispatchScratch::new();
    scratch.env.clear();
    scratch.script("project/guard.sh", "#!/bin/sh\ntouch ran\n");
    scratch.write("project/.anyhook/rules.json", "{}");
    scratch.manifest(
        &[
            hook(
                "guard",
                BEFORE,
                "./guard.sh --rules=./rules.json",
                "blocking: true",
            ),
            hook("other", BEFORE, "touch other-ran", ""),
        ]
        .concat(),
    );
    scratch
}

fn with_project<T>(
    scratch: &DispatchScratch,
    act: impl FnOnce(&TrustStore, &ProjectManifest<'_>) -> T,
) -> T {
    with_project_at(scratch, &scratch.project(), act)
}

fn with_project_at<T>(
    scratch: &DispatchScratch,
    root: &Path,
    act: impl FnOnce(&TrustStore, &ProjectManifest<'_>) -> T,
) -> T {
    with_manifest(scratch, &root.join(".anyhook/hooks.yaml"), act)
}

fn with_manifest<T>(
    scratch: &DispatchScratch,
    path: &Path,
    act: impl FnOnce(&TrustStore, &ProjectManifest<'_>) -> T,
) -> T {
    let text = std::fs::read_to_string(path).unwrap();
    let (manifest, findings) = parse::manifest(&text, Format::Yaml, &Vocabulary::default());
    let manifest: Manifest = manifest.unwrap_or_else(|| panic!("{findings:?}"));
    act(
        &TrustStore::new(&scratch.base.join("state")),
        &ProjectManifest {
            path,
            root: path.parent().and_then(Path::parent).unwrap(),
            text: &text,
            manifest: &manifest,
        },
    )
}

/// What the user does after having read it.
pub(crate) fn consent_to(scratch: &DispatchScratch, root: &Path) {
    with_project_at(scratch, root, TrustStore::record).unwrap();
}

pub(crate) fn consent_to_file(scratch: &DispatchScratch, manifest: &Path) {
    with_manifest(scratch, manifest, TrustStore::record).unwrap();
}

fn consent(scratch: &DispatchScratch) {
    consent_to(scratch, &scratch.project());
}

fn status(scratch: &DispatchScratch) -> Result<(), Distrust> {
    with_project(scratch, |store, project| store.check(project).map(|_| ()))
}

#[test]
fn untrusted_hooks_do_not_run_and_the_user_is_notified_once() {
    let scratch = project();
    let output = scratch.call();
    assert!(!scratch.exists("project/ran"));
    assert!(!output.is_deny());
    assert!(output.message().contains("not trusted yet"), "{output:?}");
    assert!(output.message().contains("anyhook trust"));
    assert_eq!(scratch.call().message(), "");
    let mut event = scratch.event(BEFORE);
    event["session_id"] = "another".into();
    assert!(scratch.run(&event).message().contains("not trusted yet"));
    assert_eq!(status(&scratch), Err(Distrust::NoRecords));
    std::fs::create_dir_all(scratch.base.join("state/trust")).unwrap();
    assert_eq!(status(&scratch), Err(Distrust::Never));
}

/// A large manifest is not read at every call, and still no change goes unnoticed.
#[test]
fn a_change_of_a_large_manifest_is_noticed() {
    let mut scratch = DispatchScratch::new();
    scratch.env.clear();
    let others: String = (0..600)
        .map(|n| {
            hook(
                &format!("other-{n}"),
                BEFORE,
                "exit 0",
                "matcher: web_fetch",
            )
        })
        .collect();
    let guard = hook("guard", BEFORE, "exit 2", "matcher: shell\nblocking: true");
    scratch.manifest(&[others, guard].concat());
    let path = scratch.project().join(".anyhook/hooks.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() > 64 * 1024);
    consent(&scratch);
    // What was changed a moment ago is not known by its time.
    std::thread::sleep(std::time::Duration::from_millis(3200));
    let known_texts = || {
        let files = std::fs::read_dir(scratch.base.join("state/plans")).unwrap();
        let names = files.map(|file| file.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("text-"))
            .count()
    };
    for expected in [0, 1, 1] {
        assert!(scratch.call().is_deny());
        assert_eq!(known_texts(), expected);
    }
    let mut shell = scratch.event(BEFORE);
    shell["data"]["tool_name"] = "web_search".into();
    assert!(!scratch.run(&shell).is_deny());
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, text.replace("exit 2", "exit 0")).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let output = scratch.call();
    assert!(output.message().contains("do not run"), "{output:?}");
    assert!(!output.is_deny());
    std::fs::write(&path, &text).unwrap();
    assert!(scratch.call().is_deny());
}

#[test]
fn consent_holds_until_something_changes() {
    let scratch = project();
    consent(&scratch);
    assert_eq!(status(&scratch), Ok(()));
    assert_eq!(scratch.call().message(), "");
    assert!(scratch.exists("project/ran"));

    let root = scratch.project();
    let changes = [
        (
            "project/guard.sh",
            "#!/bin/sh\ntouch ran evil\n",
            root.join("guard.sh"),
        ),
        (
            "project/.anyhook/rules.json",
            "{\"allow\": \"*\"}",
            root.join(".anyhook/rules.json"),
        ),
        // A file that comes to stand before the one that was consented to.
        ("project/rules.json", "{}", root.join("rules.json")),
    ];
    for (path, text, changed) in changes {
        let scratch = project();
        consent(&scratch);
        scratch.write(path, text);
        let output = scratch.call();
        assert!(!scratch.exists("project/ran"), "{path}");
        assert!(
            scratch.exists("project/other-ran"),
            "{path}: the other hook is as it was"
        );
        assert!(
            output.message().contains("changed since it was trusted"),
            "{path}: {output:?}"
        );
        let changed = scratch.project().join(changed.strip_prefix(&root).unwrap());
        assert_eq!(status(&scratch), Err(Distrust::Changed(vec![changed])));
        consent(&scratch);
        scratch.call();
        assert!(scratch.exists("project/ran"), "{path}");
    }

    scratch.manifest(&hook("new", BEFORE, "touch new-ran", ""));
    scratch.call();
    assert!(!scratch.exists("project/new-ran"));
}

#[test]
fn consent_can_be_taken_back_and_listed() {
    let scratch = project();
    consent(&scratch);
    with_project(&scratch, |store, project| {
        let listing = project.listing();
        assert_eq!(listing[0].hook, "guard");
        assert_eq!(listing[0].runs, ["./guard.sh --rules=./rules.json"]);
        assert_eq!(listing[0].files.len(), 2);
        assert_eq!(store.all().len(), 1);
        assert!(store.remove(project.path).unwrap());
        assert!(!store.remove(project.path).unwrap());
    });
    scratch.call();
    assert!(!scratch.exists("project/ran"));
}

#[test]
fn a_users_manifest_that_others_can_write_is_not_trusted() {
    let mut scratch = DispatchScratch::new();
    scratch.env.clear();
    let path = scratch.write(
        "config/hooks.yaml",
        &manifest(&hook("own", BEFORE, "touch ran", "")),
    );
    scratch.call();
    assert!(scratch.exists("project/ran"));
    std::fs::remove_file(scratch.project().join("ran")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let output = scratch.call();
    assert!(!scratch.exists("project/ran"));
    assert!(output.message().contains("chmod go-w"), "{output:?}");
}

#[test]
fn a_manifest_is_cached_for_one_format_and_only_if_trusted() {
    let mut scratch = DispatchScratch::new();
    scratch.env.clear();
    scratch.manifest(&hook("own", BEFORE, "touch ran", ""));
    let plans = || std::fs::read_dir(scratch.base.join("state/plans")).map_or(0, Iterator::count);
    scratch.call();
    assert_eq!(plans(), 0, "there is no consent");
    consent(&scratch);
    scratch.call();
    assert_eq!(plans(), 1);

    // The same text as JSON is a mistake, whatever it was as YAML. A project's is
    // parsed only when it is approved.
    let in_project = scratch.project().join(".anyhook");
    let rename = |folder: &std::path::Path| {
        std::fs::rename(folder.join("hooks.yaml"), folder.join("hooks.json")).unwrap();
    };
    let of_user = scratch.base.join("config");
    std::fs::create_dir_all(&of_user).unwrap();
    std::fs::copy(in_project.join("hooks.yaml"), of_user.join("hooks.yaml")).unwrap();
    scratch.call();
    rename(&in_project);
    let output = scratch.call();
    assert!(
        output
            .message()
            .contains("hooks.json` do not run: not trusted yet"),
        "{output:?}"
    );
    rename(&of_user);
    let output = scratch.call();
    assert!(
        output.message().contains("hooks.json` is not used"),
        "{output:?}"
    );
}

#[test]
fn consent_covers_scripts_that_our_own_variables_name() {
    let cases = [
        (
            "sh \"$CLAUDE_PROJECT_DIR\"/hooks/x.sh",
            "handler.dialect: claude-code",
        ),
        ("sh ${ANYHOOK_PROJECT_DIR}/hooks/x.sh", ""),
        ("sh $ANYHOOK_MANIFEST_DIR/../hooks/x.sh", ""),
        ("sh $WHERE/x.sh", "handler.env: {WHERE: hooks}"),
        ("cd hooks && sh x.sh", ""),
        ("sh -c './hooks/x.sh'", ""),
        ("for one in hooks/*.sh; do sh $one; done", ""),
    ];
    for (command, more) in cases {
        let mut scratch = DispatchScratch::new();
        scratch.env.clear();
        scratch.script(
            "project/hooks/x.sh",
            "#!/bin/sh\ncat >/dev/null; touch $ANYHOOK_PROJECT_DIR/ran\n",
        );
        scratch.manifest(&hook("guard", BEFORE, command, more));
        consent(&scratch);
        scratch.call();
        assert!(scratch.exists("project/ran"), "{command}");
        scratch.script(
            "project/hooks/x.sh",
            "#!/bin/sh\ntouch $ANYHOOK_PROJECT_DIR/evil\n",
        );
        let output = scratch.call();
        assert!(!scratch.exists("project/evil"), "{command}");
        assert!(
            output.message().contains("changed since"),
            "{command}: {output:?}"
        );
    }
    let scratch = DispatchScratch::with_hook("sh $ELSEWHERE/x.sh; ls /tmp", "");
    with_project(&scratch, |_, project| {
        let uncovered = ["the files that `$ELSEWHERE/x.sh` names"];
        assert_eq!(project.listing()[0].uncovered, uncovered);
    });
}

#[test]
fn a_users_hook_never_runs_the_projects_code() {
    for command in [
        "sh guard.sh",
        "sh scripts/guard.sh",
        "scripts/guard.sh",
        "./guard.sh;",
        ". ./guard.sh;",
        "sh scripts/*.sh",
    ] {
        let mut scratch = DispatchScratch::new();
        scratch.env.clear();
        for path in ["guard.sh", "scripts/guard.sh"] {
            scratch.script(
                &format!("project/{path}"),
                "#!/bin/sh\ntouch $ANYHOOK_PROJECT_DIR/evil\n",
            );
        }
        scratch.write(
            "config/hooks.yaml",
            &manifest(&hook("own", BEFORE, command, "")),
        );
        scratch.call();
        assert!(!scratch.exists("project/evil"), "{command}");
        for path in ["guard.sh", "scripts/guard.sh"] {
            scratch.script(
                &format!("config/{path}"),
                "#!/bin/sh\necho $PYTHONSAFEPATH >$ANYHOOK_PROJECT_DIR/ran\n",
            );
        }
        scratch.call();
        assert!(!scratch.exists("project/evil"), "{command}");
        assert_eq!(scratch.read("project/ran"), "1\n", "{command}");
    }
}
