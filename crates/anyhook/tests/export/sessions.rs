//! Sessions of several agents, recorded by the real dispatcher from payloads that the real
//! clients sent.

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use crate::support::captures;

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_anyhook");

/// Denies every shell command.
const MANIFEST: &str = r#"{"spec": "hooks/1.0", "hooks": [
    {"name": "no-shell", "event": "before_tool_execute", "matcher": "shell", "blocking": true,
     "handler": {"type": "command", "command": "echo 'no shell here' >&2; exit 2",
                 "platform": {"windows": "echo no shell here>&2&& exit 2"}}},
    {"name": "observer", "event": "after_tool_execute",
     "handler": {"type": "command", "command": "true", "platform": {"windows": "cd .>nul"}}}
]}"#;

/// The agents of [`record_sessions`], with the captures of one session in order.
const SESSIONS: &[(&str, &[&str])] = &[
    (
        "claude-code",
        &[
            "SessionStart-startup.json",
            "UserPromptSubmit.json",
            "PreToolUse-Write.json",
            "PostToolUse-Write.json",
            "PreToolUse-Bash.json",
            "Stop.json",
            "SessionEnd.json",
        ],
    ),
    (
        "codex",
        &[
            "SessionStart-startup.json",
            "UserPromptSubmit.json",
            "PreToolUse-apply_patch.json",
            "PostToolUse-apply_patch.json",
            "PreToolUse-Bash.json",
            "Stop.json",
            "SessionEnd.json",
        ],
    ),
    (
        "gemini-cli",
        &[
            "SessionStart-startup.json",
            "BeforeAgent.json",
            "BeforeTool-write_file.json",
            "AfterTool-write_file.json",
            "BeforeTool-run_shell_command.json",
            "AfterAgent.json",
            "SessionEnd.json",
        ],
    ),
    (
        "qwen-code",
        &[
            "SessionStart-startup.json",
            "UserPromptSubmit.json",
            "PreToolUse-write_file.json",
            "PostToolUse-write_file.json",
            "PreToolUse-run_shell_command.json",
            "Stop.json",
            "SessionEnd-other.json",
        ],
    ),
];

pub(crate) fn agents() -> impl Iterator<Item = &'static str> {
    SESSIONS.iter().map(|(agent, _)| *agent)
}

pub(crate) fn session_id(agent: &str) -> String {
    format!("session-of-{agent}")
}

pub(crate) fn anyhook(scratch: &Scratch, args: &[&str]) -> ProcessOutput {
    anyhook_with_input(scratch, args, "")
}

fn anyhook_with_input(scratch: &Scratch, args: &[&str], stdin: &str) -> ProcessOutput {
    let call = scratch.command(BIN).env("ANYHOOK_TRUST", "all");
    call.env("TZ", "UTC").run(args, stdin).unwrap()
}

/// A session of each agent: one call that passes, one that is denied.
pub(crate) fn record_sessions() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch
        .file(scratch.config().join("hooks.json"), MANIFEST)
        .unwrap();
    let captures = captures();
    for (agent, files) in SESSIONS {
        for file in *files {
            let capture = captures
                .iter()
                .find(|it| it.adapter.spec.id == *agent && it.path == *file)
                .unwrap_or_else(|| panic!("{agent} has no capture {file}"));
            let mut payload = capture.payload.clone();
            payload["session_id"] = session_id(agent).into();
            payload["cwd"] = json!(scratch.project());
            if payload.get("tool_use_id").is_some() {
                // Recorded in different sessions, in which the same id is another call.
                let tool = payload["tool_name"].as_str().unwrap();
                payload["tool_use_id"] = format!("call-{tool}").into();
            }
            record(&scratch, agent, &payload);
        }
    }
    scratch
}

/// Sends one payload through the dispatcher.
pub(crate) fn record(scratch: &Scratch, agent: &str, payload: &Value) {
    let args = ["run", "--agent", agent];
    let output = anyhook_with_input(scratch, &args, &payload.to_string());
    assert!(matches!(output.exit, Some(0 | 2)), "{agent}: {output:?}");
}
