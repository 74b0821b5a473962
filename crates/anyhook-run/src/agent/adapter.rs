//! The agents of `anyhook-agents` as callers: decodes their payloads, renders
//! their answers, and detects which of them calls.

use std::cmp::Reverse;
use std::time::Duration;

use anyhook_agents::payload::BEFORE_TOOL_EVENT;
use anyhook_agents::respond::RenderOptions;
use anyhook_agents::{Adapter, AgentHandle};
use anyhook_model::event::{NATIVE, field};
use anyhook_model::lenient_json;
use anyhook_model::{Answer, Decision, HookEvent, HookResponse};
use anyhook_util::env;
use serde_json::Value;

use crate::agent::{self, Agent, DecodedCall, RenderedAnswer, SuspectedEvent, shared_config};

/// How far up [`started_headless`] looks.
#[cfg(target_os = "linux")]
const MAX_ANCESTOR_PROCESSES: usize = 6;

/// An agent that calls. Only the part of its table that the event needs is loaded.
pub(crate) struct AdapterAgent(pub(crate) AgentHandle);

impl AdapterAgent {
    /// The agent that sent the event; it may differ from the named one.
    fn caller(&self, event: &HookEvent) -> AgentHandle {
        match event.source.as_str() {
            "" => self.0,
            source => anyhook_agents::agent_handle(source).unwrap_or(self.0),
        }
    }

    fn adapter(&self, event: &HookEvent) -> Option<&'static Adapter> {
        self.caller(event).for_event(&event.native_event)
    }

    /// A deny for an unknown event: exit code 2, which nearly every agent takes
    /// for a deny, with the output of this agent's most important event. If by
    /// its table that output needs another exit code, it gets that one.
    fn deny_any_event(&self, message: &str) -> Answer {
        let deny = Answer {
            stderr: format!("{message}\n"),
            exit: 2,
            ..Answer::default()
        };
        let found = anyhook_agents::get_for_run(self.0.slug()).and_then(|adapter| {
            let mut events = adapter.spec.events.iter();
            let before = events.find(|event| event.is.as_deref() == Some(BEFORE_TOOL_EVENT))?;
            Some((adapter, before))
        });
        let Some((adapter, before)) = found else {
            return deny;
        };
        let event = HookEvent {
            event: BEFORE_TOOL_EVENT.to_owned(),
            source: self.0.slug().to_owned(),
            native_event: before.native.to_string(),
            ..HookEvent::default()
        };
        let (own, _) = self.render(&event, &HookResponse::deny(message), false);
        let understood =
            adapter.decode_answer(&event, &before.native, &own.stdout, &deny.stderr, 2);
        if !understood.response.is_deny() && !own.stdout.is_empty() {
            return own;
        }
        Answer {
            stdout: own.stdout,
            ..deny
        }
    }
}

impl Agent for AdapterAgent {
    fn slug(&self) -> &str {
        self.0.slug()
    }

    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<DecodedCall, String> {
        let json = lenient_json::parse_payload(payload)
            .map_err(|error| format!("the payload is not JSON: {error}"))?;
        let adapter = self.0.for_payload(&json, event);
        let mut adapter = adapter.ok_or("the agent's table cannot be read")?;
        let caller = shared_config::caller(adapter, &json, event);
        if let Some(other) = caller.and_then(|caller| caller.for_payload(&json, event)) {
            adapter = other;
        }
        let decoded = adapter.decode(&json, event);
        let mut decoded = decoded.map_err(|error| error.to_string())?;
        take_ids(&mut decoded.event);
        Ok(DecodedCall {
            event: decoded.event,
            can_ask: true,
            notices: decoded.notices,
        })
    }

    fn render(&self, event: &HookEvent, response: &HookResponse, can_ask: bool) -> RenderedAnswer {
        let Some(adapter) = self.adapter(event) else {
            return Default::default();
        };
        // Whether the session is interactive takes a look at /proc: only a question needs it.
        let can_ask =
            can_ask && (response.decision != Some(Decision::Ask) || is_interactive(adapter));
        let options = RenderOptions {
            can_ask,
            ..RenderOptions::default()
        };
        let rendered = adapter.render(event, response, options);
        let answer = Answer {
            stdout: rendered.stdout,
            stderr: rendered.stderr,
            exit: rendered.exit,
        };
        (answer, rendered.lost)
    }

    fn has_user(&self, event: &HookEvent) -> bool {
        self.adapter(event).is_none_or(is_interactive)
    }

    fn longest_wait(&self, event: &HookEvent) -> Option<Duration> {
        let adapter = self.adapter(event)?;
        let of_event = adapter
            .event_by_native(&event.native_event)
            .and_then(|event| event.max_timeout);
        let of_agent = self.caller(event).longest_wait();
        let seconds = [of_agent, of_event]
            .into_iter()
            .flatten()
            .reduce(f64::min)?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<SuspectedEvent> {
        let adapter = anyhook_agents::get_for_run(self.0.slug())?;
        let names = adapter.spec.events.iter().flat_map(|event| {
            let canonical = event.is.as_deref().unwrap_or(&event.native);
            let names = std::iter::once(&event.native)
                .chain(&event.payload_name)
                .chain(&event.aliases);
            names.map(move |name| (name.as_ref(), canonical))
        });
        agent::suspect(&names.collect::<Vec<_>>(), payload, event)
    }

    fn answers_unreadable(&self) -> bool {
        anyhook_agents::get_for_run(self.0.slug())
            .is_some_and(|adapter| adapter.spec.unreadable.is_some())
    }

    fn failure(&self, event: Option<&str>, message: &str, block: bool) -> Answer {
        let table = anyhook_agents::get_for_run(self.0.slug());
        if let Some(answer) = table.and_then(|table| table.spec.unreadable.as_ref())
            && !block
        {
            return Answer {
                stdout: format!("{}\n", serde_json::json!(answer)),
                stderr: format!("{message}\n"),
                exit: 0,
            };
        }
        if block && event.is_none() {
            return self.deny_any_event(message);
        }
        let event = HookEvent {
            source: self.0.slug().to_owned(),
            native_event: event.unwrap_or_default().to_owned(),
            ..HookEvent::default()
        };
        let response = agent::failure_response(message, block);
        let (mut answer, lost) = self.render(&event, &response, false);
        let is_lost = lost.iter().any(|loss| loss.field == "system_message");
        if answer.stderr.is_empty() && (answer.stdout.is_empty() || is_lost) {
            // The agent shows no message for this event, but it may log stderr.
            answer.stderr = format!("{message}\n");
        }
        answer
    }
}

/// Moves identifiers that a dispatcher has added to a payload to the event's own fields.
fn take_ids(event: &mut HookEvent) {
    let Some(Value::Object(native)) = event.metadata.get_mut(NATIVE) else {
        return;
    };
    for (key, place) in [
        ("machine_id", &mut event.machine_id),
        ("user_id", &mut event.user_id),
        ("project_id", &mut event.project_id),
        ("workflow_id", &mut event.workflow_id),
    ] {
        let id = native.get(key).and_then(Value::as_str);
        if let Some(id) = id.filter(|id| !id.is_empty() && place.is_none()) {
            *place = Some(id.to_owned());
            native.shift_remove(key);
        }
    }
    if native.is_empty() {
        event.metadata.shift_remove(NATIVE);
    }
}

/// Whether a person can answer a question of this agent's session.
pub(crate) fn is_attended(slug: &str) -> bool {
    anyhook_agents::get_for_run(slug).is_none_or(is_interactive)
}

/// A headless agent would wait for an answer forever, or take none for consent.
fn is_interactive(adapter: &Adapter) -> bool {
    let is_ci = env::CI
        .os()
        .is_some_and(|value| !value.is_empty() && value != "false" && value != "0");
    let detect = &adapter.spec.detect;
    if is_ci || detect.unattended.iter().any(|mark| has_variable(mark)) {
        return false;
    }
    !started_headless(&detect.headless)
}

/// Whether one of the processes above this one was started with such a flag.
#[cfg(target_os = "linux")]
fn started_headless(flags: &[anyhook_agents::spec::Str]) -> bool {
    let mut pid = Some(std::os::unix::process::parent_id());
    for _ in 0..MAX_ANCESTOR_PROCESSES {
        let Some(line) = pid.and_then(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok())
        else {
            return false;
        };
        let mut words = line.split(|byte| *byte == 0).skip(1);
        if words.any(|word| flags.iter().any(|flag| flag.as_bytes() == word)) {
            return true;
        }
        pid = pid.and_then(parent_process);
    }
    false
}

/// The parent of a process, unless that is `init`.
#[cfg(target_os = "linux")]
fn parent_process(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let parent = fields.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 1).then_some(parent)
}

#[cfg(not(target_os = "linux"))]
fn started_headless(_flags: &[anyhook_agents::spec::Str]) -> bool {
    false
}

/// The first of an agent's marks in the environment: `NAME` or `NAME=value`.
pub(crate) fn variable_in_env(adapter: &Adapter) -> Option<&str> {
    let mut marks = adapter.spec.detect.env.iter().map(AsRef::as_ref);
    marks.find(|mark| has_variable(mark))
}

/// Whether an agent's variable is set that runs this one's hooks with payloads of
/// the same form.
pub(crate) fn has_caller_variable(adapter: &Adapter) -> bool {
    let mut marks = adapter.spec.detect.caller_env.iter();
    marks.any(|mark| has_variable(mark))
}

fn has_variable(mark: &str) -> bool {
    match mark.split_once('=') {
        Some((name, value)) => env::by_name_os(name).is_some_and(|found| found == value),
        None => env::by_name_os(mark).is_some(),
    }
}

/// The agent that runs this process for its model, by the variables that agents
/// set for the commands of their shell tools, and the variable.
pub fn shell_agent() -> Option<(&'static str, &'static str)> {
    let is_set = |mark: &str| {
        let name = mark.split_once('=').map_or(mark, |(name, _)| name);
        has_variable(mark) && env::by_name_os(name).is_some_and(|value| !value.is_empty())
    };
    let by_table = anyhook_agents::all().find_map(|adapter| {
        let detect = &adapter.spec.detect;
        let mut marks = detect
            .shell_env
            .iter()
            .chain(&detect.env)
            .map(AsRef::as_ref);
        let mark = marks.find(|mark| is_set(mark))?;
        Some((adapter.spec.name.as_ref(), mark))
    });
    let by_convention =
        || is_set(env::AI_AGENT.name).then_some(("a coding agent", env::AI_AGENT.name));
    by_table.or_else(by_convention)
}

/// The slug of the agent that the environment or the payload identifies, and how.
pub(crate) fn detect(payload: &[u8]) -> Option<(&'static str, String)> {
    let json = lenient_json::parse_payload(payload).ok();
    let has_event = |adapter: &Adapter| json.as_ref().is_none_or(|json| may_have(adapter, json));
    let by_variable = anyhook_agents::all().find_map(|adapter| {
        let mark = variable_in_env(adapter).filter(|_| has_event(adapter))?;
        Some((&*adapter.spec.id, format!("the variable `{mark}`")))
    });
    by_variable.or_else(|| {
        let best = detect_by_form(json.as_ref()?)?;
        Some((&*best.spec.id, "the form of the payload".to_owned()))
    })
}

/// How well a payload fits an agent, the more important things first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    knows_tool: bool,
    has_all_marks: bool,
    marks: usize,
    unknown_fields: Reverse<usize>,
}

/// The agent whose marks a payload has and whose events include this one. A mark
/// that is not there yet counts less than another agent's event or tool.
fn detect_by_form(payload: &Value) -> Option<&'static Adapter> {
    let marked = anyhook_agents::all().filter(|adapter| adapter.may_recognise(payload));
    let (known, unknown): (Vec<_>, Vec<_>) = marked.partition(|adapter| may_have(adapter, payload));
    if known.is_empty() {
        // An unknown event may be a new one.
        let complete = unknown.into_iter().filter(|one| one.recognises(payload));
        return complete.max_by_key(|adapter| adapter.spec.detect.payload.len());
    }
    let likeness = |adapter: &Adapter| {
        let has_all_marks = adapter.recognises(payload);
        Likeness {
            knows_tool: knows_tool(adapter, payload),
            has_all_marks,
            marks: adapter.spec.detect.payload.len() * usize::from(has_all_marks),
            unknown_fields: Reverse(adapter.unknown_fields(payload)),
        }
    };
    let best = known.iter().map(|adapter| likeness(adapter)).max()?;
    let mut equals = known
        .into_iter()
        .filter(|adapter| likeness(adapter) == best);
    let first = equals.next()?;
    // Agents that take the same answer need not be told apart.
    let deny = |adapter: &Adapter| rendered_deny(adapter, payload);
    equals
        .all(|other| best.has_all_marks || deny(other) == deny(first))
        .then_some(first)
}

/// Whether the agent has the event of a payload, or the payload names none.
fn may_have(adapter: &Adapter, payload: &Value) -> bool {
    let decoded = adapter.decode(payload, None);
    decoded.map_or(true, |decoded| decoded.known)
}

/// Whether the agent has the tool of a payload, or the payload names none.
pub(crate) fn knows_tool(adapter: &Adapter, payload: &Value) -> bool {
    let Ok(decoded) = adapter.decode(payload, None) else {
        return true;
    };
    let event = decoded.event;
    let native = event
        .data
        .get(field::NATIVE_TOOL_NAME)
        .and_then(Value::as_str);
    event.data.contains_key(field::MCP)
        || native.is_none_or(|name| adapter.tool_by_native(name, None).is_some())
}

fn rendered_deny(adapter: &Adapter, payload: &Value) -> Option<(String, String, i32)> {
    let event = adapter.decode(payload, None).ok()?.event;
    let answer = adapter.render(&event, &HookResponse::deny("no"), RenderOptions::default());
    Some((answer.stdout, answer.stderr, answer.exit))
}
