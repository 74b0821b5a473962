//! The seam to the agents: a native payload in, a native answer out.
//!
//! [`resolve`] is the only place that knows which agents there are. `canonical`
//! is one: its payload is a `HookEvent`, its answer a `HookResponse`.

use anyhook_model::registry::EVENTS;
use anyhook_model::{Answer, HookEvent, HookResponse, Loss, resolve_ask};

use crate::beside::Voice;
use crate::engine::is_preventable;
use crate::json;
use crate::native::{self, Caller};

/// A payload, understood.
#[derive(Debug)]
pub struct Decoded {
    pub event: HookEvent,
    /// Whether there is a person who can be asked.
    pub can_ask: bool,
    /// How much of the answer is given.
    pub voice: Voice,
}

/// An answer, ready to be written.
#[derive(Debug, Default)]
pub struct Rendered {
    pub answer: Answer,
    /// What this agent cannot be told.
    pub lost: Vec<Loss>,
}

/// The event that an unreadable payload seems to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    pub native: String,
    pub canonical: String,
}

pub trait Agent {
    fn slug(&self) -> &str;

    /// `event` is the native event's name, for agents that do not say it.
    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<Decoded, String>;

    fn render(&self, event: &HookEvent, response: &HookResponse, can_ask: bool) -> Rendered;

    /// Which event a payload is that could not be understood: by what the
    /// caller says, else by the names in its bytes. Of several, the one at
    /// which most is at stake.
    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<Suspect>;

    /// The answer when the payload could not be understood: `message` to the
    /// user, and a refusal only when `block` is set. Without an event the
    /// refusal is one that holds wherever this agent heeds one.
    fn failure(&self, event: Option<&str>, message: &str, block: bool) -> Answer;
}

/// The agent of that name, or the one that the surroundings and the payload
/// give away; with the reason for the choice.
pub fn resolve(name: Option<&str>, payload: &[u8]) -> Result<(Box<dyn Agent>, String), String> {
    match name {
        Some("canonical") => Ok((Box::new(Canonical), "named".to_owned())),
        Some(name) => match anyhook_agents::caller(name) {
            Some(caller) => Ok((Box::new(Caller(caller)), "named".to_owned())),
            None => Err(format!("there is no agent `{name}`")),
        },
        None => match native::detect(payload)
            .and_then(|(adapter, why)| Some((anyhook_agents::caller(&adapter.spec.id)?, why)))
        {
            Some((caller, why)) => Ok((Box::new(Caller(caller)), why)),
            None => Err("which agent calls cannot be told: `--agent NAME`".to_owned()),
        },
    }
}

struct Canonical;

impl Agent for Canonical {
    fn slug(&self) -> &'static str {
        "canonical"
    }

    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<Decoded, String> {
        let decoded = serde_json::from_slice(payload).or_else(|error| {
            let text = std::str::from_utf8(payload).unwrap_or_default();
            json::parse(text)
                .and_then(serde_json::from_value)
                .map_err(|_| format!("the payload is not a HookEvent: {error}"))
        });
        let mut decoded: HookEvent = decoded?;
        if let Some(event) = event {
            event.clone_into(&mut decoded.event);
        }
        Ok(Decoded {
            event: decoded,
            can_ask: true,
            voice: Voice::Full,
        })
    }

    fn render(&self, _event: &HookEvent, response: &HookResponse, can_ask: bool) -> Rendered {
        let response = resolve_ask(response.clone(), can_ask);
        Rendered {
            answer: written(&response),
            lost: Vec::new(),
        }
    }

    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<Suspect> {
        let names = || EVENTS.iter().map(|event| (event.name, event.name));
        suspect(names, payload, event)
    }

    fn failure(&self, _event: Option<&str>, message: &str, block: bool) -> Answer {
        let mut response = HookResponse {
            system_message: Some(message.to_owned()),
            ..HookResponse::default()
        };
        if block {
            response = HookResponse::deny(message);
        }
        written(&response)
    }
}

/// Looks among names of events, each with its canonical name.
pub(crate) fn suspect<'a, Names: Iterator<Item = (&'a str, &'a str)>>(
    names: impl Fn() -> Names,
    payload: &[u8],
    event: Option<&str>,
) -> Option<Suspect> {
    let of = |(native, canonical): (&str, &str)| Suspect {
        native: native.to_owned(),
        canonical: canonical.to_owned(),
    };
    let said = event.and_then(|event| names().find(|(native, _)| *native == event));
    if said.is_some() {
        return said.map(of);
    }
    let mut found: Option<Suspect> = None;
    for word in payload.split(|byte| *byte == b'"') {
        let Some(name) = names().find(|(native, _)| native.as_bytes() == word) else {
            continue;
        };
        if is_preventable(name.1) {
            return Some(of(name));
        }
        found.get_or_insert_with(|| of(name));
    }
    found
}

fn written(response: &HookResponse) -> Answer {
    let mut stdout = serde_json::to_string(response).unwrap_or_else(|_| "{}".to_owned());
    stdout.push('\n');
    Answer {
        stdout,
        ..Answer::default()
    }
}
