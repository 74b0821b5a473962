//! How the program starts and ends: closed standard streams, a reader that has
//! gone away, output without a final line break.
#![cfg(unix)] // closed standard streams and signals
#![cfg(test)]

use std::io::Write;
use std::process::{Command, Stdio};

use anyhook_testkit::{Scratch, whole_lines};
use serde_json::Value;

const BIN: &str = env!("CARGO_BIN_EXE_anyhook");
const CALL: &str = r#"{"session_id":"s","transcript_path":"/t","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;

/// A shell line that may close streams before it runs us as `$0`.
fn shell(scratch: &Scratch, line: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", line, BIN])
        .current_dir(scratch.project())
        .env("HOME", scratch.home())
        .env("ANYHOOK_CONFIG_DIR", scratch.config())
        .env("ANYHOOK_STATE_DIR", scratch.state())
        .env("ANYHOOK_MANAGED_DIR", scratch.managed());
    command
}

fn journal(scratch: &Scratch) -> Vec<Value> {
    whole_lines(&scratch.state().join("journal/events.jsonl")).unwrap()
}

/// The next file that we open would otherwise get the number of a closed
/// stream, and with it what we say there.
#[cfg(target_os = "linux")]
#[test]
fn closed_streams() {
    for (closed, streams) in [(">&-", "1"), ("2>&-", "2"), (">&- 2>&-", "1 2")] {
        let scratch = Scratch::new().unwrap();
        let manifest = format!(
            "spec: hooks/1.0\nhooks:\n  - event: before_tool_execute\n    handler: {{type: command, command: 'for n in {streams}; do readlink /proc/$PPID/fd/$n; done >seen'}}\n"
        );
        let path = scratch.config().join("hooks.yaml");
        scratch.file(path, &manifest).unwrap();
        let line = format!("exec \"$0\" run --agent claude-code {closed}");
        let mut child = shell(&scratch, &line)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(CALL.as_bytes()).unwrap();
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{closed}");
        let seen = std::fs::read_to_string(scratch.project().join("seen")).unwrap();
        let count = streams.split(' ').count();
        assert_eq!(seen, "/dev/null\n".repeat(count), "{closed}");
        assert_eq!(journal(&scratch).len(), 1, "{closed}");
    }
}

/// An agent that has gone away does not cost the record, and the exit code denies.
#[test]
fn nobody_reads_the_answer() {
    let scratch = Scratch::new().unwrap();
    let manifest = "spec: hooks/1.0\nhooks:\n  - event: before_tool_execute\n    blocking: true\n    handler: {type: command, command: 'echo no >&2; exit 2'}\n";
    let path = scratch.config().join("hooks.yaml");
    scratch.file(path, manifest).unwrap();
    let line = "\"$0\" run --agent claude-code; echo $? >code";
    let mut child = shell(&scratch, line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(CALL.as_bytes())
        .unwrap();
    child.wait().unwrap();
    let code = std::fs::read_to_string(scratch.project().join("code")).unwrap();
    assert_eq!(code.trim(), "2");
    let [record] = journal(&scratch).try_into().unwrap();
    assert_eq!(record["decision"], "deny");
}

/// What was printed without the end of a line, and the exit code.
#[test]
fn all_is_said() {
    let scratch = Scratch::new().unwrap();
    let said = shell(&scratch, "\"$0\" schema manifest").output().unwrap();
    assert!(said.status.success());
    serde_json::from_slice::<Value>(&said.stdout).unwrap();
    let wrong = shell(&scratch, "\"$0\" no-such-command").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let closed = shell(&scratch, "\"$0\" --help | true").status().unwrap();
    assert!(closed.success());
}
