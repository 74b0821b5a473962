//! Checks that guards answer to any command, that text after a dangerous command
//! does not hide it, and that quoted text is data.

use std::path::PathBuf;

use anyhook_guard::{GuardContext, GuardInput, definitions, parse_guard};
use anyhook_model::{Decision, HookEvent};
use serde_json::json;

/// What each guard that needs no options answers.
fn answers(command: &str, shell: &str) -> Vec<(&'static str, Option<Decision>)> {
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
    // Those that read commands without options.
    let guards = definitions()
        .iter()
        .filter(|guard| !matches!(guard.name, "rules" | "budget"));
    guards
        .map(|definition| {
            let guard = parse_guard(&[definition.name.to_owned()], &|_| Err(String::new()));
            let found = guard.unwrap().judge_input(&input);
            (definition.name, found.map(|found| found.decision))
        })
        .collect()
}

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for shell in ["bash", "powershell", "cmd"] {
        let given = answers(&text, shell);
        assert!(
            given
                .iter()
                .all(|(_, answer)| *answer != Some(Decision::Allow))
        );
    }

    // A shell runs the first line before it reads the rest.
    let first = format!("rm -rf /\n{text}");
    let given = answers(&first, "bash");
    let hidden = given.iter().find(|(name, _)| *name == "filesystem");
    assert!(
        hidden.is_some_and(|(_, answer)| answer.is_some()),
        "{first}"
    );

    // Whatever is in single quotes is printed, not run. Keys are still secrets.
    let quoted = format!("echo '{}'", text.replace('\'', ""));
    for (name, answer) in answers(&quoted, "bash") {
        assert!(name == "secrets" || answer.is_none(), "{name}: {quoted}");
    }
}
