//! Unapproved content must not cost much, whatever its size.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::Value;

use super::support::{
    GUARD, MANIFEST, anyhook, is_denied, journal, payload, project, trusted_project,
};

/// More than is read of a file that is not approved, and more than is parsed.
const LARGE_BYTES: usize = 3 * 1024 * 1024;

/// A valid manifest of this size.
fn large_manifest(bytes: usize) -> String {
    let mut text = MANIFEST.to_owned();
    let mut n = 0;
    while text.len() < bytes {
        let _ = writeln!(
            text,
            "  - {{name: hook-{n}, event: before_tool_execute, handler: {{type: command, command: 'true'}}}}"
        );
        n += 1;
    }
    text
}

fn call_in(scratch: &Scratch, folder: &Path) -> ProcessOutput {
    let mut call = payload(scratch, "rm -rf /");
    call["cwd"] = folder.to_str().unwrap().into();
    let run = ["run", "--agent", "claude-code"];
    anyhook(scratch).run(run, &call.to_string()).unwrap()
}

fn message(output: &ProcessOutput) -> String {
    let answer = output.json().unwrap_or_default();
    let message = answer.get("systemMessage").and_then(Value::as_str);
    message.unwrap_or_default().to_owned()
}

/// The number of bytes that `anyhook run` reads, by the system's own count, where
/// it has one: that of a shell includes the children that it has waited for.
fn bytes_read(scratch: &Scratch) -> Option<u64> {
    let program = env!("CARGO_BIN_EXE_anyhook");
    let line = format!("{program} run --agent claude-code >/dev/null; grep rchar /proc/$$/io");
    let call = payload(scratch, "ls").to_string();
    let output = scratch.command("sh").run(["-c", &line], &call).unwrap();
    let (_, count) = output.stdout.split_once("rchar: ")?;
    Some(count.trim().parse().unwrap())
}

#[test]
fn a_large_manifest_that_nobody_approved_is_told_and_not_read() {
    let scratch = project();
    scratch
        .file(".anyhook/hooks.yaml", &large_manifest(LARGE_BYTES))
        .unwrap();
    let output = call_in(&scratch, &scratch.project());
    assert!(!is_denied(&output), "{output:?}");
    let told = message(&output);
    assert!(
        told.contains("not trusted, and larger than 32 KiB"),
        "{told}"
    );
    assert_eq!(journal(&scratch)[0].hooks, []);
    let count = bytes_read(&scratch).unwrap_or_default();
    assert!(count < LARGE_BYTES as u64 / 2, "{count} bytes were read");
    // Once it is approved, all of it counts.
    scratch
        .file(".anyhook/hooks.yaml", &large_manifest(40 * 1024))
        .unwrap();
    let trusted = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(trusted.exit, Some(0), "{:.500}", trusted.stderr);
    assert!(is_denied(&call_in(&scratch, &scratch.project())));
}

#[test]
fn a_large_file_of_another_kind_that_nobody_approved_is_not_read() {
    let large = "x".repeat(LARGE_BYTES);
    for (name, words) in [
        (".anyhook/policy.json", "larger than 32 KiB"),
        (".openhook.json", "cannot be read"),
    ] {
        let scratch = project();
        scratch.file(name, &large).unwrap();
        let told = message(&call_in(&scratch, &scratch.project()));
        assert!(told.contains(words), "{name}: {told:.500}");
    }
}

#[test]
fn an_approved_manifest_that_has_become_large_is_told_and_not_parsed() {
    let scratch = trusted_project();
    scratch
        .file(".anyhook/hooks.yaml", &large_manifest(LARGE_BYTES))
        .unwrap();
    let told = message(&call_in(&scratch, &scratch.project()));
    assert!(told.contains("changed since it was trusted"), "{told}");
    assert_eq!(journal(&scratch)[0].hooks, []);
    let policy = scratch.managed().join("policy.json");
    scratch.file(policy, "{\"fail_closed\": true}").unwrap();
    assert!(is_denied(&call_in(&scratch, &scratch.project())));
}

/// A repository with hooks in each of its folders, which lie in each other.
fn nested(scratch: &Scratch, count: usize) -> Vec<PathBuf> {
    let mut folder = scratch.project();
    let mut folders = Vec::new();
    for _ in 0..count {
        folder.push("d");
        std::fs::create_dir_all(folder.join(".anyhook")).unwrap();
        std::fs::write(folder.join(".anyhook/hooks.yaml"), MANIFEST).unwrap();
        std::fs::write(folder.join(".anyhook/guard.sh"), GUARD).unwrap();
        folders.push(folder.clone());
    }
    folders
}

#[test]
fn a_thousand_nested_projects_are_told_in_a_few_words_and_hide_no_guard() {
    let scratch = project();
    let folders = nested(&scratch, 1000);
    let inner = folders.last().unwrap();
    let output = call_in(&scratch, inner);
    assert!(!is_denied(&output), "{:.500}", output.stdout);
    let told = message(&output);
    assert!(told.contains("more than 16 folders"), "{told:.500}");
    assert!(told.lines().count() < 30, "{}", told.lines().count());
    // The guard at the root is approved, then one far inside.
    for folder in [&scratch.project(), &folders[500]] {
        let script = folder.join(".anyhook/guard.sh");
        std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
        let manifest = folder.join(".anyhook/hooks.yaml");
        let trust = ["trust", "--yes", manifest.to_str().unwrap()];
        let trusted = anyhook(&scratch).run(trust, "").unwrap();
        assert_eq!(trusted.exit, Some(0), "{:.500}", trusted.stderr);
        assert!(is_denied(&call_in(&scratch, inner)));
        let untrust = ["untrust", manifest.to_str().unwrap()];
        anyhook(&scratch).run(untrust, "").unwrap();
        assert!(!is_denied(&call_in(&scratch, inner)));
    }
}
