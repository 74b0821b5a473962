//! Handlers with `args`: the program starts without a shell, and an interpreter
//! never runs the event that it reads.

#![cfg(unix)] // its programs are shell scripts
#![cfg(test)]

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

const ANYHOOK: &str = env!("CARGO_BIN_EXE_anyhook");

/// Denies what has `rm` in it.
const GUARD: &str = "#!/bin/sh\nif grep -q rm; then echo 'no rm' >&2; exit 2; fi\n";

fn run(scratch: &Scratch, command: &str) -> ProcessOutput {
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": scratch.project(),
        "tool_name": "Bash", "tool_input": {"command": command},
    });
    scratch
        .command(ANYHOOK)
        .env("ANYHOOK_TRUST", "all")
        .run(["run", "--agent", "claude-code"], &payload.to_string())
        .unwrap()
}

fn install(scratch: &Scratch, handler: &Value) {
    let manifest = json!({"spec": "hooks/1.0", "hooks": [
        {"event": "before_tool_execute", "blocking": true, "handler": handler}]});
    let manifest = manifest.to_string();
    scratch.file(".anyhook/hooks.json", &manifest).unwrap();
}

fn is_denied(output: &ProcessOutput) -> bool {
    output.exit == Some(2) || output.stdout.contains("\"deny\"")
}

#[test]
fn a_guard_with_arguments_guards() {
    let dialect = "claude-code";
    for handler in [
        json!({"command": "bash", "args": ["hooks/my guard.sh"]}),
        json!({"command": "bash", "args": ["./hooks/my guard.sh", "--strict"]}),
        json!({"command": "./hooks/my guard.sh", "args": []}),
        json!({"command": "bash", "args": ["${ANYHOOK_PROJECT_DIR}/hooks/my guard.sh"]}),
        json!({"command": "bash", "args": ["${CLAUDE_PROJECT_DIR}/hooks/my guard.sh"], "dialect": dialect}),
        json!({"command": "bash", "args": ["${DIR}/my guard.sh"], "env": {"DIR": "hooks"}}),
    ] {
        let scratch = Scratch::new().unwrap();
        scratch.exec("hooks/my guard.sh", GUARD).unwrap();
        let mut handler = handler;
        handler["type"] = json!("command");
        install(&scratch, &handler);
        let denied = run(&scratch, "rm -rf /");
        assert!(is_denied(&denied), "{handler}: {denied:?}");
        let allowed = run(&scratch, "ls");
        assert!(!is_denied(&allowed), "{handler}: {allowed:?}");
    }
}

#[test]
fn arguments_arrive_as_they_are_written() {
    let scratch = Scratch::new().unwrap();
    let script = "#!/bin/sh\nfor one in \"$@\"; do printf '%s\\n' \"$one\"; done > seen\n";
    scratch.exec("show.sh", script).unwrap();
    let args = [
        "a b",
        "",
        "it's",
        "$(id)",
        "*.sh",
        "$HOME",
        "${NO_SUCH}",
        "a;b|c",
        "\\",
    ];
    install(
        &scratch,
        &json!({"type": "command", "command": "./show.sh", "args": args}),
    );
    run(&scratch, "ls");
    let seen = std::fs::read_to_string(scratch.project().join("seen")).unwrap();
    assert_eq!(seen, args.join("\n") + "\n");
}

/// Without its script an interpreter would run the payload, which has what the
/// model wrote.
#[test]
fn an_interpreter_without_a_script_does_not_start() {
    for handler in [
        json!({"type": "command", "command": "bash"}),
        json!({"type": "command", "command": "bash", "args": []}),
        json!({"type": "command", "command": "/bin/sh -x"}),
    ] {
        let scratch = Scratch::new().unwrap();
        install(&scratch, &handler);
        let ran = run(&scratch, "echo $(touch PWNED)");
        assert!(!scratch.project().join("PWNED").exists(), "{handler}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("has no script"), "{handler}: {told}");
    }
}

/// From the agents that have such handlers, to the manifest and to every agent.
#[test]
fn arguments_survive_every_conversion() {
    let sources = [
        (
            "claude-code",
            json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "bash", "args": ["guard.sh", "a b"]}]}]}}),
        ),
        (
            "auggie",
            json!({"hooks": {"PreToolUse": [{"matcher": "launch-process", "hooks": [
                {"type": "command", "command": "bash", "args": ["guard.sh", "a b"]}]}]}}),
        ),
        (
            "copilot-cli",
            json!({"version": 1, "hooks": {"preToolUse": [
                {"type": "command", "exec": "bash", "args": ["guard.sh", "a b"]}]}}),
        ),
    ];
    let scratch = Scratch::new().unwrap();
    let targets = anyhook_agents::all().map(|adapter| adapter.spec.id.as_ref());
    for target in targets.chain(["canonical"]) {
        for (source, config) in &sources {
            let args = ["convert", "-", "--from", source, "--to", target, "--json"];
            let ran = scratch
                .command(ANYHOOK)
                .run(args, &config.to_string())
                .unwrap();
            let report = ran.json().unwrap();
            let output = report["output"].to_string();
            let is_line = output.contains("bash guard.sh 'a b'");
            let is_list = output.contains(r#""args":["guard.sh","a b"]"#);
            assert!(is_line || is_list, "{source} to {target}: {report}");
        }
    }
}
