//! No combination of what hooks may say makes an answer that an agent would
//! reject: every field with every decision, at every event of every agent,
//! judged by the reference model (for Codex with its own schemas).

#![cfg(test)]

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::respond::RenderOptions;
use anyhook_agents::spec::{Blocking, EventSpec, MatcherSubject};
use anyhook_model::{Decision, HookEvent, HookResponse};
use anyhook_testkit::reference_model::{self, Action, Answer};
use serde_json::{Value, json};

/// Every decision with every choice of the other fields.
fn responses() -> Vec<HookResponse> {
    let decisions = [
        None,
        Some(Decision::Allow),
        Some(Decision::Ask),
        Some(Decision::Deny),
    ];
    let text = |chosen: bool, text: &str| chosen.then(|| text.to_owned());
    let mut all = Vec::new();
    for decision in decisions {
        for bits in 0..64_u32 {
            let bit = |n: u32| bits & (1 << n) != 0;
            let rewrite = json!({"command": "echo changed", "prompt": "another"});
            all.push(HookResponse {
                decision,
                reason: text(bit(0), "because: \"quotes\"\nand lines"),
                context: text(bit(1), "context"),
                system_message: text(bit(2), "message"),
                should_continue: bit(3).then_some(false),
                suppress_output: bit(4).then_some(true),
                updated_input: rewrite.as_object().filter(|_| bit(5)).cloned(),
                ..HookResponse::default()
            });
        }
    }
    all
}

/// An event of this agent, made from canonical data.
fn asked(adapter: &Adapter, spec: &EventSpec) -> (HookEvent, Value) {
    let mut event = HookEvent {
        event: spec.is.as_deref().unwrap_or(&spec.native).to_owned(),
        source: "elsewhere".to_owned(),
        session_id: Some("s".to_owned()),
        cwd: Some("/home/dev/proj".to_owned()),
        timestamp: Some("2026-11-15T19:00:00.000Z".to_owned()),
        ..HookEvent::default()
    };
    let tool = spec.tools.first().map_or("shell", AsRef::as_ref);
    let data = match tool {
        "mcp" => {
            json!({"tool_name": "echo_back", "mcp": {"server": "e2e", "tool": "echo_back"}, "tool_input": {"text": "hi"}})
        }
        "shell" => json!({"tool_name": "shell", "tool_input": {"command": "echo hi"}}),
        _ => {
            json!({"tool_name": tool, "tool_input": {"path": "/home/dev/proj/a.txt", "content": "x"}})
        }
    };
    if spec.matcher == MatcherSubject::Tool || !spec.tools.is_empty() {
        event.data.clone_from(data.as_object().unwrap());
    }
    event.data.insert("prompt".to_owned(), json!("go"));
    let payload = adapter.encode(&event, Some(&spec.native)).unwrap().payload;
    let event = adapter.decode(&payload, Some(&spec.native)).unwrap().event;
    (event, payload)
}

#[test]
fn no_combination_is_malformed() {
    let mut failures = Vec::new();
    let mut count = 0;
    for adapter in clients() {
        // An event for which no answer is harmless is never asked for.
        let events = adapter
            .spec
            .events
            .iter()
            .filter(|event| !event.noisy || event.answer.is_some());
        for spec in events {
            let (event, payload) = asked(adapter, spec);
            for response in responses() {
                for can_ask in [true, false] {
                    let options = RenderOptions {
                        can_ask,
                        ..RenderOptions::default()
                    };
                    let rendered = adapter.render(&event, &response, options);
                    let answer = Answer {
                        exit: Some(rendered.exit),
                        stdout: &rendered.stdout,
                        stderr: &rendered.stderr,
                    };
                    let reaction = reference_model::react(
                        &adapter.spec.id,
                        &spec.native,
                        &payload,
                        &answer,
                        !can_ask,
                    );
                    count += 1;
                    let prevents = spec.blocking == Blocking::Prevent && response.is_deny();
                    let why = if !reaction.accepted {
                        "the agent rejects it"
                    } else if prevents && reaction.action != Action::Blocked {
                        "what else is said undoes the deny"
                    } else {
                        continue;
                    };
                    failures.push(format!(
                        "{} {}: {why}\n   {}\n   {rendered:?}\n   {reaction:?}",
                        adapter.spec.id,
                        spec.native,
                        serde_json::to_string(&response).unwrap()
                    ));
                }
            }
        }
    }
    assert!(count > 50_000, "{count}");
    let shown = failures
        .iter()
        .take(12)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        failures.is_empty(),
        "{} of {count}:\n{shown}",
        failures.len()
    );
}
