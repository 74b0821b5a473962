//! A project with one guard, and calls of the real binary in it.
#![allow(dead_code, reason = "each module uses its part")]

use anyhook_testkit::{Invocation, ProcessOutput, Scratch};
use serde_json::{Value, json};

/// A guard that denies every shell command with a `rm -rf` in it and leaves the
/// file `ran` in the project.
pub(crate) const GUARD: &str = "#!/bin/sh\n\
    : > \"$ANYHOOK_PROJECT_DIR/ran\"\n\
    grep -q 'rm -rf' && { echo guarded >&2; exit 2; }\n\
    exit 0\n";

pub(crate) const MANIFEST: &str = "spec: hooks/1.0\n\
    hooks:\n\
    \x20 - name: guard\n\
    \x20   event: before_tool_execute\n\
    \x20   matcher: shell\n\
    \x20   blocking: true\n\
    \x20   handler: {type: command, command: ./guard.sh}\n";

/// A repository with the guard in `.anyhook`, not trusted yet.
pub(crate) fn project() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/hooks.yaml", MANIFEST).unwrap();
    scratch.exec(".anyhook/guard.sh", GUARD).unwrap();
    scratch
}

/// [`project`], trusted.
pub(crate) fn trusted_project() -> Scratch {
    let scratch = project();
    let output = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(output.exit, Some(0), "{output:?}");
    scratch
}

pub(crate) fn anyhook(scratch: &Scratch) -> Invocation {
    scratch.command(env!("CARGO_BIN_EXE_anyhook"))
}

/// Claude Code's payload before a shell command.
pub(crate) fn payload(scratch: &Scratch, command: &str) -> Value {
    json!({
        "session_id": "s",
        "transcript_path": "/x.jsonl",
        "cwd": scratch.project(),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    })
}

/// `anyhook run` for a command that the guard denies.
pub(crate) fn run_dangerous(scratch: &Scratch) -> ProcessOutput {
    let payload = payload(scratch, "rm -rf /").to_string();
    let run = ["run", "--agent", "claude-code"];
    anyhook(scratch).run(run, &payload).unwrap()
}

/// Whether Claude Code would not run the command after this answer.
pub(crate) fn is_denied(output: &ProcessOutput) -> bool {
    let decision = output.json().ok().and_then(|answer| {
        answer
            .pointer("/hookSpecificOutput/permissionDecision")
            .cloned()
    });
    output.exit == Some(2) || decision == Some("deny".into())
}

#[test]
fn the_guard_of_these_tests_holds() {
    let scratch = trusted_project();
    assert!(is_denied(&run_dangerous(&scratch)));
    assert!(scratch.project().join("ran").exists());
}

/// What `anyhook run` has recorded.
pub(crate) fn journal(scratch: &Scratch) -> Vec<anyhook_model::Record> {
    let journal = anyhook_run::record::journal::Journal::new(&scratch.state());
    anyhook_testkit::whole_lines(&journal.folder().join("events.jsonl")).unwrap()
}
