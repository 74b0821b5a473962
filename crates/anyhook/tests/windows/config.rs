//! Approval, policies and the folders that config comes from.

use anyhook_agents::matrix::clients;
use anyhook_model::Decision;
use anyhook_testkit::Scratch;

use crate::support::{GUARD, MANIFEST, decision, run, text, trusted_project};

fn call(scratch: &Scratch) -> Option<Decision> {
    let adapter = clients().next().unwrap();
    decision(scratch, adapter, "rm -rf x", &text(&scratch.project()))
}

const OFF: &str = r#"{"disable_all_hooks": true}"#;

#[test]
fn what_nobody_has_approved_does_not_run() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", GUARD).unwrap();
    scratch.file(".anyhook/hooks.json", MANIFEST).unwrap();
    assert_eq!(call(&scratch), None);
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    assert_eq!(call(&scratch), Some(Decision::Deny));
    let gone = run(&scratch, &["untrust"], "");
    assert_eq!(gone.exit, Some(0), "{gone:?}");
    assert_eq!(call(&scratch), None);
}

#[test]
fn an_unapproved_policy_switches_nothing_off() {
    let scratch = trusted_project(MANIFEST);
    scratch.file(".anyhook/policy.json", OFF).unwrap();
    assert_eq!(call(&scratch), Some(Decision::Deny));
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    assert_eq!(call(&scratch), None);
}

#[test]
fn a_managed_policy_rules_over_projects() {
    let scratch = trusted_project(MANIFEST);
    let policy = scratch.managed().join("policy.json");
    scratch.file(&policy, OFF).unwrap();
    assert_eq!(call(&scratch), None);
    scratch.file(&policy, "{").unwrap();
    assert_eq!(call(&scratch), Some(Decision::Deny), "a broken policy");
}

#[test]
fn a_lost_guard_blocks_where_the_policy_is_fail_closed() {
    let scratch = trusted_project(MANIFEST);
    let policy = scratch.managed().join("policy.json");
    scratch.file(&policy, r#"{"fail_closed": true}"#).unwrap();
    assert_eq!(call(&scratch), Some(Decision::Deny));
    std::fs::remove_file(scratch.project().join(".anyhook/guard.cmd")).unwrap();
    let adapter = clients().next().unwrap();
    let project = text(&scratch.project());
    let decided = decision(&scratch, adapter, "dir", &project);
    assert_eq!(decided, Some(Decision::Deny), "the guard is lost");
}

#[test]
fn user_and_managed_hooks_need_no_approval() {
    for folder in [Scratch::config, Scratch::managed] {
        let scratch = Scratch::new().unwrap();
        let folder = folder(&scratch);
        scratch.file(folder.join("guard.cmd"), GUARD).unwrap();
        let guard = text(&folder.join("guard.cmd"));
        let manifest: serde_json::Value = serde_json::from_str(MANIFEST).unwrap();
        let mut manifest = manifest;
        manifest["hooks"][0]["handler"]["command"] = format!("\"{guard}\"").into();
        scratch
            .file(folder.join("hooks.json"), &manifest.to_string())
            .unwrap();
        assert_eq!(call(&scratch), Some(Decision::Deny), "{guard}");
    }
}

#[test]
fn a_copied_approval_is_not_one() {
    let approved = trusted_project(MANIFEST);
    let other = Scratch::new().unwrap();
    other.file(".git/HEAD", "").unwrap();
    other.file(".anyhook/guard.cmd", GUARD).unwrap();
    other.file(".anyhook/hooks.json", MANIFEST).unwrap();
    for entry in std::fs::read_dir(approved.state()).unwrap().flatten() {
        let path = entry.path();
        if path.is_file() {
            std::fs::copy(&path, other.state().join(entry.file_name())).unwrap();
        }
    }
    assert_eq!(call(&other), None);
}

#[test]
fn a_manifest_with_windows_line_endings_is_read() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", GUARD).unwrap();
    let manifest = "\u{feff}spec: hooks/1.0\r\nhooks:\r\n  - name: guard\r\n    event: before_tool_execute\r\n    \
        blocking: true\r\n    handler:\r\n      type: command\r\n      command: .anyhook/guard.cmd\r\n";
    scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    assert_eq!(call(&scratch), Some(Decision::Deny));
}

#[test]
fn a_file_behind_a_backslash_is_found() {
    let scratch = trusted_project(MANIFEST);
    let validated = run(&scratch, &["validate"], "");
    assert!(!validated.stdout.contains("PATH"), "{validated:?}");
    assert_eq!(validated.exit, Some(0), "{validated:?}");
    std::fs::remove_file(scratch.project().join(".anyhook/guard.cmd")).unwrap();
    let validated = run(&scratch, &["validate"], "");
    let shown = format!("{}{}", validated.stdout, validated.stderr);
    assert!(shown.contains("does not exist"), "{shown}");
}
