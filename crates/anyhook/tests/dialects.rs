//! Any hook under any agent: a deny, a context and a rewrite in each dialect,
//! run under every agent by the real binary, end as that agent's own, judged by
//! the reference model of the agent; or the loss is in the journal.
//!
//! The hooks are made: what a hook of a dialect prints is what that agent's own
//! table says it obeys.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

mod support;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::respond::RenderOptions;
use anyhook_model::{Answer, HookEvent, HookResponse};
use anyhook_testkit::Scratch;
use anyhook_testkit::reference_model::{self, Action, Reaction};
use serde_json::{Value, json};
use support::journal;

const REASON: &str = "reason-7319: it's \"not\" here";
const CONTEXT: &str = "context-4410: mind the gap";
const COMMAND: &str = "echo changed-5127";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deny,
    Context,
    Rewrite,
}

impl Kind {
    fn response(self) -> HookResponse {
        match self {
            Self::Deny => HookResponse::deny(REASON),
            Self::Context => HookResponse {
                context: Some(CONTEXT.to_owned()),
                ..HookResponse::default()
            },
            Self::Rewrite => HookResponse {
                updated_input: json!({"command": COMMAND}).as_object().cloned(),
                ..HookResponse::default()
            },
        }
    }

    /// Events at which the kind makes sense, the usual one first.
    fn events(self) -> &'static [&'static str] {
        match self {
            Self::Deny | Self::Rewrite => &["before_tool_execute"],
            Self::Context => &["before_tool_execute", "before_prompt", "session_start"],
        }
    }

    fn lost_as(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Context => "context",
            Self::Rewrite => "updated_input",
        }
    }
}

/// An event as it would come from an agent that is none of them.
fn event(name: &str, session: &str, folder: &str) -> HookEvent {
    let mut event = HookEvent {
        event: name.to_owned(),
        source: "elsewhere".to_owned(),
        session_id: Some(session.to_owned()),
        cwd: Some(folder.to_owned()),
        timestamp: Some("2026-11-15T19:00:00.000Z".to_owned()),
        ..HookEvent::default()
    };
    let data = match name {
        "before_tool_execute" => json!({"tool_name": "shell", "tool_call_id": session,
            "tool_input": {"command": "echo original", "description": "a test"}}),
        "before_prompt" => json!({"prompt": "go"}),
        _ => json!({"start_source": "startup"}),
    };
    event.data.clone_from(data.as_object().unwrap());
    event
}

/// What a hook of a dialect prints, if the dialect has words for it there.
fn said(dialect: &str, kind: Kind, name: &str) -> Option<Answer> {
    let response = kind.response();
    let Some(adapter) = clients().find(|adapter| adapter.spec.id == dialect) else {
        let stdout = serde_json::to_string(&response).unwrap();
        return Some(Answer {
            stdout,
            ..Answer::default()
        });
    };
    let made = adapter.encode(&event(name, "s", "/home/dev/proj"), None)?;
    let asked = adapter
        .decode(&made.payload, Some(&made.native_event))
        .unwrap();
    let rendered = adapter.render(&asked.event, &response, RenderOptions::default());
    rendered.lost.is_empty().then_some(Answer {
        stdout: rendered.stdout,
        stderr: rendered.stderr,
        exit: rendered.exit,
    })
}

/// A project with one hook that keeps what it was asked and prints the answer.
fn project(dialect: &str, kind: Kind, name: &str, answer: &Answer) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file("stdout", &answer.stdout).unwrap();
    scratch.file("stderr", &answer.stderr).unwrap();
    let command = format!(
        "cat >asked; cat stdout; cat stderr >&2; exit {}",
        answer.exit
    );
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{
        "name": "hook", "event": name, "blocking": kind == Kind::Deny,
        "handler": {"type": "command", "command": command, "dialect": dialect},
    }]});
    scratch
        .file(".anyhook/hooks.json", &manifest.to_string())
        .unwrap();
    scratch
}

/// A hook sees its own agent's payload, whoever calls.
fn check_asked(scratch: &Scratch, dialect: &str, name: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(scratch.project().join("asked")).unwrap_or_default();
    let payload: Value =
        serde_json::from_str(&text).map_err(|error| format!("it was asked {text:?}: {error}"))?;
    let (event, input) = match clients().find(|adapter| adapter.spec.id == dialect) {
        Some(adapter) => {
            let native = adapter.event_for(name, Some("shell")).unwrap();
            let decoded = adapter.decode(&payload, Some(&native.native));
            let event = decoded.map_err(|error| error.to_string())?.event;
            (event.event.clone(), event.tool_input().cloned())
        }
        None if dialect == "canonical" => {
            let event: HookEvent = serde_json::from_value(payload).unwrap();
            (event.event.clone(), event.tool_input().cloned())
        }
        // The contract names a tool, not an event.
        None => (name.to_owned(), payload["tool_input"].as_object().cloned()),
    };
    if event != name {
        return Err(format!("it was asked about {event}"));
    }
    let command = input.and_then(|input| input.get("command")?.as_str().map(str::to_owned));
    if name == "before_tool_execute" && command.as_deref() != Some("echo original") {
        return Err(format!("it was asked about the command {command:?}"));
    }
    Ok(())
}

fn check_reaction(kind: Kind, reaction: &Reaction, lost: &[String]) -> Result<(), String> {
    let model = |mark: &str| reaction.model_sees.iter().any(|text| text.contains(mark));
    let user = |mark: &str| reaction.user_sees.iter().any(|text| text.contains(mark));
    let is_lost = lost.iter().any(|field| field == kind.lost_as());
    let check = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
    check(reaction.accepted, "the agent calls the answer malformed")?;
    match kind {
        Kind::Deny => {
            check(reaction.action == Action::Blocked, "it is not blocked")?;
            // Who sees the reason when the whole run ends is up to the client.
            let is_heard = model(REASON) || user(REASON) || reaction.session_ends;
            check(is_heard, "nobody reads the reason")
        }
        Kind::Context if is_lost => Ok(()),
        Kind::Context => {
            check(reaction.action == Action::Proceeds, "words alone block")?;
            check(model(CONTEXT), "the model does not read the context")
        }
        // A change that cannot be applied must not let the unchanged call through.
        Kind::Rewrite if is_lost => check(reaction.action == Action::Blocked, "the original runs"),
        Kind::Rewrite => {
            let new = reaction.new_input.clone().unwrap_or_default().to_string();
            check(new.contains(COMMAND), "the input is not changed")?;
            check(
                !new.contains("echo original"),
                "the original is still there",
            )
        }
    }
}

fn under(
    agent: &'static Adapter,
    scratch: &Scratch,
    dialect: &str,
    kind: Kind,
    name: &str,
) -> Option<Result<(), String>> {
    let id = agent.spec.id.as_ref();
    let project = scratch.project();
    // An event of its own each time: none may look like one delivered before.
    let session = format!("{id}-{kind:?}-{dialect}");
    let made = agent.encode(&event(name, &session, project.to_str().unwrap()), None)?;
    let _ = std::fs::remove_file(project.join("asked"));
    let binary = scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .env("ANYHOOK_TRUST", "all");
    let arguments = ["run", "--agent", id, "--event", &made.native_event];
    let ran = binary.run(arguments, &made.payload.to_string()).unwrap();
    let reaction =
        reference_model::react(id, &made.native_event, &made.payload, &ran.answer(), false);
    let record = journal(scratch).pop()?;
    let lost: Vec<String> = record.lost.iter().map(|loss| loss.field.clone()).collect();
    let checked =
        check_asked(scratch, dialect, name).and_then(|()| check_reaction(kind, &reaction, &lost));
    Some(checked.map_err(|why| {
        format!("a {kind:?} of `{dialect}` at {name} under {id}: {why}\n   {ran:?}\n   {reaction:?}\n   lost {lost:?} warnings {:?}", record.warnings)
    }))
}

/// Runs the whole row of one kind; what failed, and how many dialects and
/// pairs there were.
fn matrix(kind: Kind) -> (Vec<String>, usize, usize) {
    let mut failures = Vec::new();
    let (mut dialects, mut pairs) = (0, 0);
    let names = ["canonical", "contract"].into_iter();
    for dialect in names.chain(clients().map(|adapter| adapter.spec.id.as_ref())) {
        let mut has_words = false;
        for name in kind.events() {
            let Some(answer) = said(dialect, kind, name) else {
                continue;
            };
            has_words = true;
            let scratch = project(dialect, kind, name, &answer);
            for agent in clients() {
                if let Some(result) = under(agent, &scratch, dialect, kind, name) {
                    pairs += 1;
                    failures.extend(result.err());
                }
            }
        }
        dialects += usize::from(has_words);
    }
    (failures, dialects, pairs)
}

#[track_caller]
fn assert_matrix(kind: Kind, least_dialects: usize) {
    let (failures, dialects, pairs) = matrix(kind);
    assert!(
        failures.is_empty(),
        "{} of {pairs}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(dialects >= least_dialects, "{dialects} dialects");
    assert!(
        pairs >= dialects * 10,
        "{pairs} pairs of {dialects} dialects"
    );
}

#[test]
fn a_deny_is_a_deny() {
    assert_matrix(Kind::Deny, 2 + clients().count());
}

#[test]
fn a_context_is_a_context() {
    assert_matrix(Kind::Context, 12);
}

#[test]
fn a_rewrite_is_a_rewrite() {
    assert_matrix(Kind::Rewrite, 11);
}

/// Asking is a decision too: without a user no one is asked.
#[test]
fn a_question_is_a_deny_where_nobody_sits() {
    let answer = Answer {
        stdout: json!({"decision": "ask", "reason": REASON}).to_string(),
        ..Answer::default()
    };
    let name = "before_tool_execute";
    let scratch = project("canonical", Kind::Deny, name, &answer);
    let mut asked = 0;
    for agent in clients() {
        let id = agent.spec.id.as_ref();
        let made = agent
            .encode(&event(name, id, scratch.project().to_str().unwrap()), None)
            .unwrap();
        let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
        let binary = binary.env("ANYHOOK_TRUST", "all").env("CI", "true");
        let arguments = ["run", "--agent", id, "--event", &made.native_event];
        let ran = binary.run(arguments, &made.payload.to_string()).unwrap();
        let reaction =
            reference_model::react(id, &made.native_event, &made.payload, &ran.answer(), true);
        // An editor has a user even there.
        assert_ne!(
            reaction.action,
            Action::Proceeds,
            "{id}: {ran:?} {reaction:?}"
        );
        asked += usize::from(reaction.action == Action::AskUser);
        assert!(reaction.accepted, "{id}: {ran:?}");
    }
    assert!(asked <= 1, "{asked} agents would ask");
}
