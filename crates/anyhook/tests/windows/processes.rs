//! Many calls at once, and hooks that do not end.

use std::io::Write as _;
use std::process::Child;
use std::time::Duration;

use anyhook_agents::matrix::clients;
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::Value;

use crate::support::{MANIFEST, anyhook, decision, run, shell_call, text, trusted_project};

#[test]
fn fifty_calls_at_once_leave_fifty_lines() {
    let scratch = trusted_project(MANIFEST);
    let adapter = clients().next().unwrap();
    let event = shell_call("dir", &text(&scratch.project()));
    let encoded = adapter.encode(&event, None).unwrap();
    let arguments = [
        "run",
        "--agent",
        adapter.spec.id.as_ref(),
        "--event",
        &encoded.native_event,
    ];
    let start = |_| {
        // Wine does not always manage to start so many at once.
        let mut attempts = (0..20).filter_map(|_| anyhook(&scratch).spawn(arguments).ok());
        let mut child = attempts.next().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(encoded.payload.to_string().as_bytes())
            .unwrap();
        child
    };
    let children: Vec<Child> = (0..50).map(start).collect();
    for child in children {
        let output = ProcessOutput::wait(child).unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
    }
    let journal = scratch.state().join("journal/events.jsonl");
    let lines = std::fs::read_to_string(journal).unwrap();
    let records = lines.lines().map(serde_json::from_str::<Value>);
    assert_eq!(records.filter(Result::is_ok).count(), 50);
}

/// Writes the file of the variable after a while.
#[test]
#[ignore = "a process that another test starts"]
fn sleeper() {
    std::thread::sleep(Duration::from_secs(4));
    std::fs::write(std::env::var("SLEEPER_FILE").unwrap(), "late").unwrap();
}

#[test]
fn a_timeout_ends_what_the_hook_has_started() {
    let manifest = MANIFEST.replace(
        r#"guard.cmd""#,
        r#"guard.cmd", "timeout": 1, "env": {"SLEEPER_FILE": "LATE"}"#,
    );
    let scratch = Scratch::new().unwrap();
    let late = scratch.root().join("late.txt");
    let manifest = manifest.replace("LATE", &text(&late).replace('\\', "\\\\"));
    let own = text(&std::env::current_exe().unwrap());
    let sleeper = format!("\"{own}\" --ignored --exact processes::sleeper");
    let hook = format!("@echo off\r\nstart \"\" /b {sleeper}\r\n{sleeper}\r\n");
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", &hook).unwrap();
    scratch.file(".anyhook/hooks.json", &manifest).unwrap();
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    let adapter = clients().next().unwrap();
    decision(&scratch, adapter, "dir", &text(&scratch.project()));
    std::thread::sleep(Duration::from_secs(6));
    assert!(!late.exists(), "a process of the hook has outlived it");
    let journal = scratch.state().join("journal/events.jsonl");
    let lines = std::fs::read_to_string(journal).unwrap();
    assert!(
        lines.contains("timeout") || lines.contains("timed out"),
        "{lines}"
    );
}
