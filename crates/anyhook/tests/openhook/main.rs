//! OpenHook through the real binary: what agents really sent goes in, and real
//! consumers, started through `.openhook.json`, hear of it.
#![cfg(unix)] // its consumers are shell scripts
#![cfg(test)]

mod commands;
mod concurrent;
mod consumers;
mod levels;

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

pub fn anyhook(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    binary.run(arguments, stdin).unwrap()
}

/// A project with these consumers, trusted.
pub fn project(consumers: &Value) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    listen(&scratch, consumers);
    scratch
}

/// Writes the discovery file and consents to it.
pub fn listen(scratch: &Scratch, consumers: &Value) {
    let text = json!({"openhook": "0.1", "hooks": consumers});
    scratch.file(".openhook.json", &text.to_string()).unwrap();
    trust(scratch);
}

pub fn trust(scratch: &Scratch) {
    let ran = anyhook(scratch, &["trust", "--yes"], "");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
}

/// A payload of Claude Code's.
pub fn payload(scratch: &Scratch, session: &str, event: &str, more: Value) -> Value {
    let mut payload = json!({"hook_event_name": event, "session_id": session,
        "cwd": scratch.project(), "transcript_path": "/tmp/t.jsonl"});
    let Value::Object(more) = more else {
        panic!("an object")
    };
    payload.as_object_mut().unwrap().extend(more);
    payload
}

pub fn call(scratch: &Scratch, payload: &Value) -> ProcessOutput {
    let arguments = ["run", "--agent", "claude-code"];
    anyhook(scratch, &arguments, &payload.to_string())
}

/// The lines of a file of the project, as JSON.
pub fn lines(scratch: &Scratch, file: &str) -> Vec<Value> {
    anyhook_testkit::whole_lines(&scratch.project().join(file)).unwrap()
}

pub fn types(envelopes: &[Value]) -> Vec<&str> {
    envelopes
        .iter()
        .map(|envelope| envelope["type"].as_str().unwrap())
        .collect()
}
