//! Without `--agent`: the surroundings give the agent away, else the payload.
#![cfg(unix)] // the parents of a process are shells
#![cfg(test)]

mod support;

use std::collections::BTreeSet;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_testkit::Scratch;
use serde_json::Value;
use support::captures;

/// Payloads whose form does not tell their agent: agent, where, what is taken
/// for it, and why.
const EXCEPTIONS: [(&str, &str, Option<&str>, &str); 4] = [
    (
        "copilot-cli",
        "claude-dialect/SessionEnd.json",
        Some("gemini-cli"),
        "VS Code does not have the event; Gemini CLI sends this form, and neither reads an answer",
    ),
    (
        "copilot-cli",
        "claude-dialect/",
        Some("vs-code-copilot"),
        "both products send this form and take the same answers; COPILOT_CLI tells them apart",
    ),
    (
        "codex",
        "examples/SessionStart-no_transcript.json",
        Some("claude-code"),
        "without the path of a transcript both send this form, and take the same answers",
    ),
    (
        "kilo",
        "",
        Some("opencode"),
        "a fork with the same plugin, which names its agent: only a payload by hand has no name",
    ),
];

fn explain(scratch: &Scratch, payload: &Value, variable: Option<(&str, &str)>) -> Option<Value> {
    let mut binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    if let Some((name, value)) = variable {
        binary = binary.env(name, value);
    }
    let ran = binary
        .run(["explain", "--json"], &payload.to_string())
        .unwrap();
    if ran.exit == Some(0) {
        return Some(ran.json().unwrap());
    }
    assert!(ran.stderr.contains("--agent <NAME>"), "{ran:?}");
    None
}

#[test]
fn by_the_form_of_the_payload() {
    let scratch = Scratch::new().unwrap();
    let mut failures = Vec::new();
    let mut used = BTreeSet::new();
    for capture in captures() {
        let agent = capture.adapter.spec.id.as_ref();
        let path = &capture.path;
        let report = explain(&scratch, &capture.payload, None);
        let found = report
            .as_ref()
            .map(|report| report["agent"].as_str().unwrap());
        if found == Some(agent) {
            // Named, the event would be the same.
            let named = capture
                .adapter
                .decode(&capture.payload, Some(&capture.event));
            let said = report.as_ref().unwrap()["event"]["event"].as_str();
            if said != Some(&named.unwrap().event.event) {
                failures.push(format!("{agent} {path}: taken for {said:?}"));
            }
            continue;
        }
        let exception = EXCEPTIONS.iter().position(|(of, at, instead, _)| {
            *of == agent && path.starts_with(at) && found == *instead
        });
        match exception {
            Some(index) => {
                used.insert(index);
            }
            None => failures.push(format!("{agent} {path}: taken for {found:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(
        used.len(),
        EXCEPTIONS.len(),
        "an exception is none any more"
    );
}

/// Names an event of the agent in the place where it names one.
fn with_event(adapter: &Adapter, payload: &Value) -> Value {
    let mut payload = payload.clone();
    let place = adapter.spec.payload.event_at.as_deref().unwrap_or_default();
    if !place.is_empty() {
        payload[place.trim_start_matches('/')] = adapter.spec.events[0].native.as_ref().into();
    }
    payload
}

#[test]
fn by_a_variable_before_the_payload() {
    let scratch = Scratch::new().unwrap();
    let misleading =
        serde_json::json!({"hook_event_name": "stop", "cursor_version": "1", "hook": "x"});
    let all = captures();
    let mut tried = 0;
    for adapter in clients() {
        for mark in &adapter.spec.detect.env {
            let (name, value) = mark.split_once('=').unwrap_or((mark, "something"));
            let own = all
                .iter()
                .find(|capture| capture.adapter.spec.id == adapter.spec.id);
            let payload = own.map_or_else(
                || with_event(adapter, &misleading),
                |capture| capture.payload.clone(),
            );
            let report = explain(&scratch, &payload, Some((name, value))).unwrap();
            assert_eq!(report["agent"], adapter.spec.id.as_ref(), "{mark}");
            assert_eq!(report["why"], format!("the variable `{mark}`"));
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
    // That distinguishes two products that send the same form.
    let shared = all
        .iter()
        .find(|capture| capture.path == "claude-dialect/PreToolUse-Bash.json");
    let report = explain(
        &scratch,
        &shared.unwrap().payload,
        Some(("COPILOT_CLI", "1")),
    );
    assert_eq!(report.unwrap()["agent"], "copilot-cli");
}
