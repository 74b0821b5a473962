//! Statements of the specifications that no other test shows, see docs/conformance.md.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

fn anyhook(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let command = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    let command = command.env("ANYHOOK_TRUST", "all");
    command.run(arguments, stdin).unwrap()
}

/// `hooks/1.0` is written, and version 0.1 on request; both are read.
#[test]
fn manifests_are_written_for_readers_of_version_0_1() {
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{
        "event": "before_tool_execute", "matcher": "shell", "blocking": true,
        "handler": {"type": "command", "command": "./a.sh", "platform": {"osx": "./mac.sh", "linux": "./linux.sh"}},
    }]});
    let convert = |arguments: &[&str], input: &Value| {
        let arguments = [
            &["convert", "-", "--from", "canonical", "--to", "canonical"],
            arguments,
        ]
        .concat();
        anyhook(&scratch, &arguments, &input.to_string())
    };
    let old = convert(&["--spec", "0.1"], &manifest).json().unwrap();
    assert_eq!(old["spec"], "hooks/0.1");
    let platform = json!({"linux": "./linux.sh", "darwin": "./mac.sh"});
    assert_eq!(old["hooks"][0]["handler"]["platform"], platform);
    let valid = anyhook(&scratch, &["validate", "-"], &old.to_string());
    assert_eq!(valid.exit, Some(0), "{valid:?}");
    assert_eq!(convert(&[], &old).json().unwrap(), manifest, "back again");
    let arguments = ["convert", "-", "--to", "cursor", "--spec", "0.1"];
    let refused = anyhook(&scratch, &arguments, &manifest.to_string());
    assert!(refused.stderr.contains("`--spec` is for"), "{refused:?}");
}

/// The example of docs/prompts.md, unchanged.
#[test]
fn the_example_of_the_prompts_page_works() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/prompts.md"
    ))
    .unwrap();
    let block = |language: &str, containing: &str| {
        let start = format!("```{language}\n");
        let blocks = page
            .split(&start)
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap());
        blocks
            .filter(|block| block.contains(containing))
            .last()
            .unwrap()
            .to_owned()
    };
    let scratch = Scratch::new().unwrap();
    scratch
        .file(".anyhook/hooks.yaml", &block("yaml", "type: prompt"))
        .unwrap();
    scratch
        .file(
            scratch.config().join("config.yaml"),
            &block("yaml", "command: ./judge.sh"),
        )
        .unwrap();
    scratch
        .exec(scratch.config().join("judge.sh"), &block("sh", "#!/bin/sh"))
        .unwrap();
    for (command, denied) in [("ls ../secrets", true), ("ls", false)] {
        let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": scratch.project(),
            "tool_name": "Bash", "tool_input": {"command": command}});
        let ran = anyhook(
            &scratch,
            &["run", "--agent", "claude-code"],
            &payload.to_string(),
        );
        assert_eq!(
            ran.stdout.contains("leads out of the project"),
            denied,
            "{command}: {ran:?}"
        );
    }
}

/// A wrapper that knows the file of a stop passes it to contract hooks.
#[test]
fn a_contract_caller_names_a_file_at_stop() {
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{"event": "agent_stop",
        "handler": {"type": "command", "command": "cat > seen.json", "dialect": "contract"}}]});
    scratch
        .file(".anyhook/hooks.json", &manifest.to_string())
        .unwrap();
    let stop = json!({"tool_name": "Stop", "tool_input": {"session_id": "s", "cwd": scratch.project(),
        "transcript_path": "/t.jsonl", "file_path": "a.rs", "stop_hook_active": true}});
    let ran = anyhook(&scratch, &["run", "--agent", "contract"], &stop.to_string());
    assert_eq!((ran.exit, ran.stdout.trim()), (Some(0), "{}"), "{ran:?}");
    let seen = std::fs::read_to_string(scratch.project().join("seen.json")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    for key in ["transcript_path", "file_path", "stop_hook_active"] {
        assert_eq!(seen["tool_input"][key], stop["tool_input"][key], "{seen}");
    }
}

/// A guard beside the manifest holds, whether its path begins with `./` or not.
#[test]
fn a_script_with_a_slash_is_found_beside_the_manifest() {
    for command in [
        "scripts/guard.sh",
        "./scripts/guard.sh",
        "sh scripts/guard.sh",
    ] {
        let scratch = Scratch::new().unwrap();
        scratch
            .exec(
                ".anyhook/scripts/guard.sh",
                "#!/bin/sh\necho no >&2\nexit 2\n",
            )
            .unwrap();
        let manifest = json!({"spec": "hooks/1.0", "hooks": [{"event": "before_tool_execute", "blocking": true,
            "handler": {"type": "command", "command": command}}]});
        scratch
            .file(".anyhook/hooks.json", &manifest.to_string())
            .unwrap();
        let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": scratch.project(),
            "tool_name": "Bash", "tool_input": {"command": "ls"}});
        let ran = anyhook(
            &scratch,
            &["run", "--agent", "claude-code"],
            &payload.to_string(),
        );
        assert!(ran.stdout.contains("deny"), "{command}: {ran:?}");
    }
}

/// An http hook at an event where the target runs none becomes a command, with a warning.
#[test]
fn an_http_hook_where_the_target_runs_none_is_reported() {
    let scratch = Scratch::new().unwrap();
    for (event, is_reported) in [("session_start", true), ("before_tool_execute", false)] {
        let manifest = json!({"spec": "hooks/1.0", "hooks": [{"event": event,
            "handler": {"type": "http", "url": "https://hooks.example.com/x"}}]});
        let arguments = [
            "convert",
            "-",
            "--from",
            "canonical",
            "--to",
            "claude-code",
            "--json",
        ];
        let ran = anyhook(&scratch, &arguments, &manifest.to_string())
            .json()
            .unwrap();
        let warnings = ran["warnings"].as_array().unwrap();
        let mut severe = warnings.iter().filter(|it| it["severity"] != "info");
        assert_eq!(
            severe.any(|it| it.to_string().contains("http")),
            is_reported,
            "{ran}"
        );
    }
}
