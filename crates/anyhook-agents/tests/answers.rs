//! The answer table: every kind of response × every event × every agent,
//! rendered by the adapter and judged by the reference model of the agent.
//!
//! `agents/<slug>/cases/answers.json` states what the agent does with each.
//! `UPDATE=1` rewrites it; read the difference before you commit it.

#![cfg(test)]

use std::collections::BTreeMap;
use std::path::Path;

use anyhook_agents::respond::RenderOptions;
use anyhook_agents::spec::{Blocking, EventSpec, MatcherSubject};
use anyhook_agents::{Adapter, RenderedAnswer};
use anyhook_model::{Decision, HookEvent, HookResponse};
use anyhook_testkit::Golden;
use anyhook_testkit::reference_model::{self, Action, Reaction};
use serde_json::{Value, json};

const REASON: &str = "reason-7319: not here";
const CONTEXT: &str = "context-4410: mind the gap";
const MESSAGE: &str = "message-8821: for the user";

fn kinds() -> Vec<(&'static str, HookResponse)> {
    let base = HookResponse::default;
    let text = |text: &str| Some(text.to_owned());
    vec![
        (
            "allow",
            HookResponse {
                decision: Some(Decision::Allow),
                ..base()
            },
        ),
        ("deny", HookResponse::deny(REASON)),
        (
            "ask",
            HookResponse {
                decision: Some(Decision::Ask),
                reason: text(REASON),
                ..base()
            },
        ),
        (
            "context",
            HookResponse {
                context: text(CONTEXT),
                ..base()
            },
        ),
        (
            "message",
            HookResponse {
                system_message: text(MESSAGE),
                ..base()
            },
        ),
        (
            "rewrite",
            HookResponse {
                updated_input: json!({"command": "echo changed"}).as_object().cloned(),
                ..base()
            },
        ),
        (
            "stop",
            HookResponse {
                should_continue: Some(false),
                reason: text(REASON),
                ..base()
            },
        ),
        (
            "suppress",
            HookResponse {
                suppress_output: Some(true),
                ..base()
            },
        ),
        (
            "everything",
            HookResponse {
                decision: Some(Decision::Deny),
                reason: text(REASON),
                context: text(CONTEXT),
                system_message: text(MESSAGE),
                suppress_output: Some(true),
                should_continue: Some(false),
                ..base()
            },
        ),
        (
            "talk",
            HookResponse {
                context: text(CONTEXT),
                system_message: text(MESSAGE),
                ..base()
            },
        ),
    ]
}

/// A plausible payload for an event: the first capture that fits, else one
/// that is made from canonical data.
fn payload(adapter: &Adapter, spec: &EventSpec) -> (HookEvent, Value) {
    let tool = spec.tools.first().map_or("shell", AsRef::as_ref);
    let mut event = HookEvent {
        event: spec.is.as_deref().unwrap_or(&spec.native).to_owned(),
        source: "elsewhere".into(),
        session_id: Some("s-1".into()),
        cwd: Some("/home/dev/proj".into()),
        timestamp: Some("2026-11-15T19:00:00.000Z".into()),
        ..HookEvent::default()
    };
    event.data = json!({"prompt": "go", "transcript_path": "/tmp/t.jsonl", "model": "m"})
        .as_object()
        .cloned()
        .unwrap();
    let is_tool = spec.matcher == MatcherSubject::Tool || !spec.tools.is_empty();
    if is_tool {
        let input = match tool {
            "file_write" => json!({"path": "/home/dev/proj/a.txt", "content": "x"}),
            "file_read" | "file_edit" => json!({"path": "/home/dev/proj/a.txt"}),
            "mcp" => json!({"text": "hi"}),
            _ => json!({"command": "echo hi", "description": "d"}),
        };
        event.data.insert("tool_input".into(), input);
        if tool == "mcp" {
            event.data.insert("tool_name".into(), json!("echo_back"));
            event
                .data
                .insert("mcp".into(), json!({"server": "e2e", "tool": "echo_back"}));
        } else {
            event.data.insert("tool_name".into(), json!(tool));
        }
        event.data.insert("tool_call_id".into(), json!("call_1"));
    }
    let made = adapter.encode(&event, Some(&spec.native)).unwrap().payload;
    let decoded = adapter.decode(&made, Some(&spec.native)).unwrap().event;
    (decoded, made)
}

/// What the agent does, in a few words.
fn row(rendered: &RenderedAnswer, reaction: &Reaction) -> String {
    let mut words: Vec<String> = Vec::new();
    match reaction.action {
        Action::Blocked => words.push("blocked".into()),
        Action::AskUser => words.push("asks".into()),
        Action::Proceeds => {}
    }
    if reaction.retries {
        words.push("goes on working".into());
    }
    for (who, texts) in [
        ("model", &reaction.model_sees),
        ("user", &reaction.user_sees),
    ] {
        for (what, mark) in [
            ("reason", REASON),
            ("context", CONTEXT),
            ("message", MESSAGE),
        ] {
            if texts.iter().any(|text| text.contains(mark)) {
                words.push(format!("{who} reads {what}"));
            }
        }
    }
    if reaction.new_input.is_some() {
        words.push("input changed".into());
    }
    if reaction.session_ends {
        words.push("run ends".into());
    }
    if reaction.output_suppressed {
        words.push("output hidden".into());
    }
    if reaction.skips_approval {
        words.push("approval skipped".into());
    }
    for loss in &rendered.lost {
        words.push(format!("lost {}", loss.field));
    }
    if words.is_empty() {
        "nothing".into()
    } else {
        words.join(", ")
    }
}

#[test]
fn every_answer_does_what_the_table_says() {
    let mut failures = Vec::new();
    let mut golden = Golden::default();
    // A form that is no client has no model.
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        let agent = adapter.spec.id.as_ref();
        let mut table: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
        for spec in &adapter.spec.events {
            if spec.noisy && spec.answer.is_none() {
                // The bridge never asks for it: there is no answer that does no harm.
                continue;
            }
            let (event, payload) = payload(adapter, spec);
            for (kind, response) in kinds() {
                let rendered = adapter.render(
                    &event,
                    &response,
                    RenderOptions {
                        can_ask: false,
                        ..RenderOptions::default()
                    },
                );
                let answer = reference_model::Answer {
                    exit: Some(rendered.exit),
                    stdout: &rendered.stdout,
                    stderr: &rendered.stderr,
                };
                let reaction = reference_model::react(agent, &spec.native, &payload, &answer, true);
                let told = row(&rendered, &reaction);
                if let Err(why) = law(spec, kind, &rendered, &reaction) {
                    failures.push(format!(
                        "{agent} {} {kind}: {why}\n   answer {rendered:?}\n   {reaction:?}",
                        spec.native
                    ));
                }
                table.entry(&spec.native).or_default().insert(kind, told);
            }
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("agents")
            .join(agent)
            .join("cases/answers.json");
        golden.json(path, &table).unwrap();
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
    golden.end();
}

/// What must hold for every agent, whatever its table says.
fn law(
    spec: &EventSpec,
    kind: &str,
    rendered: &RenderedAnswer,
    reaction: &Reaction,
) -> Result<(), String> {
    let lost = |field: &str| rendered.lost.iter().any(|loss| loss.field == field);
    let model = |mark: &str| reaction.model_sees.iter().any(|text| text.contains(mark));
    let user = |mark: &str| reaction.user_sees.iter().any(|text| text.contains(mark));
    let check = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
    check(
        reaction.accepted,
        "the agent would call the answer malformed",
    )?;
    // Events at which the agent asks its user unless the hook decides.
    let permission =
        spec.is.as_deref() == Some("permission_request") || reaction.action == Action::AskUser;
    let instead = spec.blocking == Blocking::Prevent
        && ((kind == "rewrite" && lost("updated_input")) || (kind == "stop" && lost("continue")));
    let denies = matches!(kind, "deny" | "everything") || instead || (kind == "ask" && lost("ask"));
    if denies && !lost("deny") {
        match spec.blocking {
            Blocking::Prevent => {
                check(reaction.action == Action::Blocked, "a deny does not block")?;
            }
            // Both "go on" and "end" were asked for: either is an answer.
            Blocking::Retry if kind == "everything" => check(
                reaction.retries || reaction.session_ends,
                "neither goes on nor ends",
            )?,
            Blocking::Retry => check(
                reaction.retries,
                "a deny does not send the agent back to work",
            )?,
            Blocking::Feedback => check(
                model(REASON) || reaction.session_ends || kind == "rewrite",
                "the model does not read the reason",
            )?,
            Blocking::Observe if kind == "rewrite" || kind == "ask" => {
                check(reaction.action == Action::Proceeds, "an observer blocks")?;
            }
            Blocking::Observe => return Err("an event that only observes claims to deny".into()),
        }
    }
    match kind {
        "deny" | "everything" => check(
            lost("deny") == (spec.blocking == Blocking::Observe),
            "deny is lost where the event can block, or said where it cannot",
        )?,
        "allow" if permission => check(
            lost("approve") || reaction.action != Action::Blocked,
            "a permission is not granted",
        )?,
        "allow" => {
            check(
                reaction.action == Action::Proceeds || permission,
                "an allow blocks",
            )?;
            check(
                !reaction.skips_approval,
                "a plain allow skips the user's approval",
            )?;
        }
        "context" | "talk" => check(
            lost("context") || model(CONTEXT),
            "the context does not reach the model",
        )?,
        "rewrite"
            if !lost("updated_input")
                && (spec.matcher == MatcherSubject::Tool || !spec.tools.is_empty()) =>
        {
            let new = reaction.new_input.clone().unwrap_or_default().to_string();
            check(new.contains("echo changed"), "the input is not changed")?;
        }
        "stop" => check(
            lost("continue")
                || reaction.session_ends
                || (spec.blocking == Blocking::Prevent && reaction.action == Action::Blocked),
            "the run does not end",
        )?,
        _ => {}
    }
    if matches!(kind, "message" | "talk") {
        check(
            lost("system_message") || user(MESSAGE),
            "the message does not reach the user",
        )?;
    }
    if matches!(kind, "context" | "message" | "suppress" | "talk") {
        // An agent that gives the model context at its stop must go on to do so.
        let told = spec.blocking == Blocking::Retry && model(CONTEXT);
        check(
            reaction.action == Action::Proceeds || permission || told,
            "words alone block",
        )?;
    }
    Ok(())
}
