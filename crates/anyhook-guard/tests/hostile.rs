//! Hostile text: every guard answers, and what is too deep or too long is asked about.

#![cfg(test)]

#[path = "support/hostile_texts.rs"]
mod hostile_texts;

use std::path::PathBuf;

use anyhook_guard::{GuardContext, GuardInput, definitions, parse_guard};
use anyhook_model::{Decision, HookEvent};
use hostile_texts::hostile_texts;
use serde_json::json;

fn judge_all(command: &str, shell: &str) -> Vec<Option<Decision>> {
    let event: HookEvent = serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "cwd": "/home/dev/project",
        "data": {"tool_name": "shell", "native_tool_name": shell, "tool_input": {"command": command}},
    }))
    .unwrap();
    let context = GuardContext {
        project: Some(PathBuf::from("/home/dev/project")),
        home: Some(PathBuf::from("/home/dev")),
        ..GuardContext::default()
    };
    let input = GuardInput::new(&event, &context);
    definitions()
        .iter()
        .filter(|guard| !matches!(guard.name, "rules" | "network" | "paths" | "budget"))
        .map(|guard| {
            let guard = parse_guard(&[guard.name.to_owned()], &|_| Err(String::new())).unwrap();
            guard.judge_input(&input).map(|found| found.decision)
        })
        .collect()
}

#[test]
fn every_text_is_answered() {
    for (_, text) in hostile_texts() {
        for shell in ["bash", "powershell", "cmd"] {
            judge_all(&text, shell);
        }
    }
}

#[test]
fn deep_nesting_is_asked_about() {
    for open in ["$(", "(", "${x:-", "\"$("] {
        let command = format!("echo {}", open.repeat(5000));
        assert!(
            judge_all(&command, "bash")
                .iter()
                .all(std::option::Option::is_some),
            "{open}"
        );
    }
}

#[test]
fn long_text_is_asked_about() {
    for shell in ["bash", "powershell", "cmd"] {
        let command = format!("echo {}", "a".repeat(1 << 20));
        assert!(
            judge_all(&command, shell)
                .iter()
                .all(|answer| *answer == Some(Decision::Ask))
        );
    }
}

#[test]
fn broken_quotes_hide_nothing() {
    for command in [
        "echo 'a; \nrm -rf /\n' 'x; rm -rf /",
        "rm -rf / '",
        "rm -rf / \"",
        "rm -rf / `",
        "rm -rf / $(",
        "; ; rm -rf /",
        ") ) rm -rf /",
        "fi; rm -rf /",
        "\u{fffd}\u{fffd}; rm -rf /",
        "a\0b; r\0m -rf /",
    ] {
        if command.starts_with("echo") {
            judge_all(command, "bash");
            continue;
        }
        assert_eq!(
            judge_all(command, "bash").first(),
            Some(&Some(Decision::Deny)),
            "{command}"
        );
    }
}
