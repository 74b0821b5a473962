//! The boundary to the agents: a native payload in, a native answer out.
//!
//! [`resolve`] is the only place that knows which agents exist. `canonical` is
//! one of them: its payload is a `HookEvent`, its answer a `HookResponse`.

pub(crate) mod adapter;
pub mod failure;
pub mod own;
pub(crate) mod shared_config;

use std::time::Duration;

use anyhook_agents::likeness::complete_call;
use anyhook_model::lenient_json;
use anyhook_model::registry::{EVENTS, event_name};
use anyhook_model::{Answer, HookEvent, HookResponse, Loss, resolve_ask};

use self::adapter::AdapterAgent;
pub use self::adapter::shell_agent;
use crate::engine::is_preventable;

/// One decoded call of an agent.
pub struct DecodedCall {
    pub event: HookEvent,
    /// Whether a person can be asked.
    pub can_ask: bool,
    /// What the user should know if hooks run for this call.
    pub notices: Vec<String>,
}

impl DecodedCall {
    /// Sets the event's folder to this process's own where the payload has none, or one
    /// that cannot exist.
    #[must_use]
    pub fn or_current_dir(mut self) -> Self {
        let cwd = &mut self.event.cwd;
        let is_none = |cwd: &str| cwd.is_empty() || cwd.contains('\0');
        if cwd.as_deref().is_none_or(is_none) {
            let folder = std::env::current_dir().ok();
            *cwd = folder.map(|path| path.to_string_lossy().into_owned());
        }
        self
    }
}

/// The event that an unreadable payload seems to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspectedEvent {
    pub native: String,
    pub canonical: String,
}

/// The native answer, and the parts of the response that the agent cannot express.
pub type RenderedAnswer = (Answer, Vec<Loss>);

/// The least timeout of an entry that `anyhook install` writes, if the agent permits it.
pub const MIN_ENTRY_TIMEOUT: Duration = Duration::from_secs(60);

pub trait Agent: Send {
    fn slug(&self) -> &str;

    /// `event` is the native event's name, for payloads that do not contain it.
    /// The event's folder stays empty where the payload has none: what fills it
    /// depends on the caller.
    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<DecodedCall, String>;

    fn render(&self, event: &HookEvent, response: &HookResponse, can_ask: bool) -> RenderedAnswer;

    /// Whether a user sits at the agent who could answer a question.
    fn has_user(&self, event: &HookEvent) -> bool {
        let _ = event;
        true
    }

    /// How long the agent waits for an answer to this event at most, whatever its entry
    /// says; `None` if the entry decides.
    fn longest_wait(&self, event: &HookEvent) -> Option<Duration> {
        let _ = event;
        None
    }

    /// Which event an unreadable payload is: the one that the caller names,
    /// else one whose name is in its bytes, preferably one that a deny prevents.
    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<SuspectedEvent>;

    /// Whether the agent's contract defines the answer to a payload that is no JSON.
    fn answers_unreadable(&self) -> bool {
        false
    }

    /// The answer to an unreadable payload: `message` for the user, and a deny
    /// only if `block` is set. Without an event the deny has a form that works
    /// for every event of this agent that can be denied.
    fn failure(&self, event: Option<&str>, message: &str, block: bool) -> Answer;
}

/// The agent of that name, or the one that the environment or the payload
/// identifies; with the reason for the choice.
pub fn resolve(name: Option<&str>, payload: &[u8]) -> Result<(Box<dyn Agent>, String), String> {
    let (slug, why) = match name {
        Some("canonical") => return Ok((Box::new(Canonical), "named".to_owned())),
        Some(name) => (name, "named".to_owned()),
        None => adapter::detect(payload)
            .ok_or("could not detect which agent is calling; pass `--agent <NAME>`")?,
    };
    let caller = own::find_caller(slug, payload).ok_or_else(|| unknown_agent(slug))?;
    Ok((Box::new(AdapterAgent(caller)), why))
}

/// Why there is no such agent: perhaps its table cannot be used.
fn unknown_agent(name: &str) -> String {
    let mut problems = own::load_own_agents().iter();
    match problems.find(|problem| problem.contains(name)) {
        Some(problem) => format!("there is no agent `{name}`: {problem}"),
        None => format!("there is no agent `{name}`"),
    }
}

struct Canonical;

impl Agent for Canonical {
    fn slug(&self) -> &'static str {
        "canonical"
    }

    fn decode(&self, payload: &[u8], event: Option<&str>) -> Result<DecodedCall, String> {
        let decoded = serde_json::from_slice(payload).or_else(|error| {
            let text = std::str::from_utf8(payload).unwrap_or_default();
            lenient_json::parse(text)
                .and_then(serde_json::from_value)
                .map_err(|_| format!("the payload is not a HookEvent: {error}"))
        });
        let mut decoded: HookEvent = decoded?;
        if let Some(event) = event {
            event.clone_into(&mut decoded.event);
        }
        let name = event_name(&decoded.event).to_owned();
        decoded.event = name;
        complete_call(&mut decoded);
        Ok(DecodedCall {
            event: decoded,
            can_ask: true,
            notices: Vec::new(),
        })
    }

    fn render(&self, _: &HookEvent, response: &HookResponse, can_ask: bool) -> RenderedAnswer {
        let response = resolve_ask(response.clone(), can_ask);
        (canonical_answer(&response), Vec::new())
    }

    fn suspect(&self, payload: &[u8], event: Option<&str>) -> Option<SuspectedEvent> {
        let names = EVENTS.iter().map(|event| (event.name, event.name));
        suspect(&names.collect::<Vec<_>>(), payload, event)
    }

    fn failure(&self, _event: Option<&str>, message: &str, block: bool) -> Answer {
        canonical_answer(&failure_response(message, block))
    }
}

/// Searches among pairs of native and canonical event names.
fn suspect(names: &[(&str, &str)], payload: &[u8], event: Option<&str>) -> Option<SuspectedEvent> {
    let by_native = |word: &[u8]| names.iter().find(|(native, _)| native.as_bytes() == word);
    let quoted = || payload.split(|byte| *byte == b'"').filter_map(by_native);
    let found = event
        .and_then(|event| by_native(event.as_bytes()))
        .or_else(|| quoted().find(|(_, canonical)| is_preventable(canonical)))
        .or_else(|| quoted().next());
    found.map(|(native, canonical)| SuspectedEvent {
        native: (*native).to_owned(),
        canonical: (*canonical).to_owned(),
    })
}

/// The response to a failure: a deny, or only a message to the user.
pub fn failure_response(message: &str, block: bool) -> HookResponse {
    if block {
        return HookResponse::deny(message);
    }
    HookResponse {
        system_message: Some(message.to_owned()),
        ..HookResponse::default()
    }
}

fn canonical_answer(response: &HookResponse) -> Answer {
    let json = serde_json::to_string(response).unwrap_or_else(|_| "{}".to_owned());
    Answer {
        stdout: json + "\n",
        ..Answer::default()
    }
}
