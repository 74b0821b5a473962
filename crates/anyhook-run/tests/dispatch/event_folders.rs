//! Which projects' hooks apply, whatever the folder of the agent is.

use std::path::Path;

use serde_json::{Value, json};

use crate::scratch::{DispatchOutput, DispatchScratch, hook, manifest};
use crate::trust::consent_to;

const DENIES: &str = "echo no >&2; exit 2";

/// A project whose guard denies, with the user's consent.
fn guarded() -> DispatchScratch {
    let mut scratch = DispatchScratch::with_hook(DENIES, "blocking: true");
    scratch.env.clear();
    consent_to(&scratch, &scratch.project());
    scratch
}

fn claude(scratch: &DispatchScratch, cwd: &str) -> DispatchOutput {
    claude_started_in(scratch, &scratch.base, cwd)
}

fn claude_started_in(scratch: &DispatchScratch, folder: &Path, cwd: &str) -> DispatchOutput {
    let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "/t",
        "cwd": cwd, "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"});
    let arguments = ["--agent", "claude-code"];
    scratch.run_in(folder, &arguments, payload.to_string().as_bytes())
}

fn denies(output: &DispatchOutput) -> bool {
    output.stdout.contains(r#""permissionDecision":"deny""#)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_repository_within_the_project_does_not_end_its_guard() {
    let scratch = guarded();
    let inner = scratch.project().join("vendor/inner");
    std::fs::create_dir_all(inner.join(".git")).unwrap();
    assert!(denies(&claude(&scratch, &text(&inner))));

    // An untrusted manifest above a repository is not even reported.
    let mut scratch = DispatchScratch::with_hook(DENIES, "blocking: true");
    std::fs::create_dir_all(scratch.project().join("inner/.git")).unwrap();
    for trust in [vec![], std::mem::take(&mut scratch.env)] {
        scratch.env = trust;
        let output = claude(&scratch, &text(&scratch.project().join("inner")));
        assert_eq!(
            (output.stdout.trim(), output.exit),
            ("", Some(0)),
            "{output:?}"
        );
    }
}

#[test]
fn the_project_that_the_agent_names_counts_wherever_it_has_gone() {
    let mut scratch = guarded();
    let other = scratch.base.join("other");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    assert!(
        !denies(&claude(&scratch, &text(&other))),
        "the payload does not name the project"
    );
    scratch
        .env
        .push(("CLAUDE_PROJECT_DIR".to_owned(), text(&scratch.project())));
    assert!(denies(&claude(&scratch, &text(&other))));
    assert!(denies(&claude(
        &scratch,
        &text(&scratch.base.join("gone/deep"))
    )));
}

#[test]
fn unusual_paths_of_a_folder() {
    let scratch = guarded();
    let project = scratch.project();
    std::os::unix::fs::symlink(&project, scratch.base.join("link")).unwrap();
    for cwd in [
        format!("file://{}", project.display()),
        text(&project.join("not/yet/there")),
        text(&scratch.base.join("link/not/yet")),
    ] {
        assert!(denies(&claude(&scratch, &cwd)), "{cwd}");
    }
    // Without a folder in the payload, that of the process counts.
    let other = hook("other", "before_tool_execute", DENIES, "blocking: true");
    scratch.write("other/.anyhook/hooks.yaml", &manifest(&other));
    let other = scratch.base.join("other");
    consent_to(&scratch, &other);
    for cwd in ["", ".", "some/where", "/nowhere/at/all"] {
        let output = claude_started_in(&scratch, &other, cwd);
        assert!(denies(&output), "{cwd}");
    }
}

#[test]
fn every_root_of_the_workspace_counts() {
    let scratch = guarded();
    let other = scratch.base.join("other");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    let payload = json!({"conversation_id": "c", "generation_id": "g", "hook_event_name": "beforeShellExecution",
        "workspace_roots": [other, scratch.project()], "command": "ls", "cwd": ""});
    let output = scratch.run_as(&["--agent", "cursor"], payload.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(answer["permission"], "deny", "{output:?}");
}
