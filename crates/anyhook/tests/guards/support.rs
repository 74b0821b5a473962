//! A project with hooks, and calls of the real binary in it.

use anyhook_model::Record;
use anyhook_testkit::{Invocation, ProcessOutput, Scratch};
use serde_json::{Value, json};

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_anyhook");

/// A command that the guard `git` denies.
pub(crate) const DENIED: &str = "git reset --hard HEAD~3";

/// One hook of a manifest: what is beside `event` and `blocking`.
pub(crate) fn manifest(hooks: &[&str]) -> String {
    let mut text = "spec: hooks/1.0\nhooks:\n".to_owned();
    for hook in hooks {
        text.push_str("  - event: before_tool_execute\n    blocking: true\n");
        for line in hook.lines() {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// A repository with these hooks, trusted.
pub(crate) fn project(hooks: &[&str]) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch
        .file(".anyhook/hooks.yaml", &manifest(hooks))
        .unwrap();
    trust(&scratch);
    scratch
}

pub(crate) fn trust(scratch: &Scratch) {
    let output = anyhook(scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(output.exit, Some(0), "{output:?}");
}

pub(crate) fn anyhook(scratch: &Scratch) -> Invocation {
    scratch.command(BIN)
}

pub(crate) fn run(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    anyhook(scratch).run(arguments, "").unwrap()
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

/// `anyhook run` for a payload of Claude Code.
pub(crate) fn call(scratch: &Scratch, payload: &Value) -> ProcessOutput {
    let run = ["run", "--agent", "claude-code"];
    anyhook(scratch).run(run, &payload.to_string()).unwrap()
}

/// The answer to Claude Code about a command: `deny`, `ask` or nothing.
pub(crate) fn decision(scratch: &Scratch, command: &str) -> Option<String> {
    decision_of(&call(scratch, &payload(scratch, command)))
}

pub(crate) fn decision_of(output: &ProcessOutput) -> Option<String> {
    assert_eq!(output.exit, Some(0), "{output:?}");
    if output.stdout.is_empty() {
        return None;
    }
    let answer = output.json().unwrap();
    let decision = answer.pointer("/hookSpecificOutput/permissionDecision")?;
    Some(decision.as_str().unwrap().to_owned())
}

/// What the dispatcher has recorded.
pub(crate) fn journal(scratch: &Scratch) -> Vec<Record> {
    let journal = anyhook_run::record::journal::Journal::new(&scratch.state());
    anyhook_testkit::whole_lines(&journal.folder().join("events.jsonl")).unwrap()
}
