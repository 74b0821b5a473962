//! The interface to the hooks: which agents exist, and how a call of one is answered.
//!
//! The daemon knows no agent and runs no hook; the program that embeds it provides both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhook_model::{Answer, Decision, Record};
use anyhook_store::EventFilter;
use serde::Serialize;
use serde_json::{Value, json};

use crate::wrapped::WrappedForm;

/// An agent as callers may spell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentName {
    pub slug: String,
    pub aliases: Vec<String>,
}

/// One call of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookRequest {
    /// The agent's slug.
    pub agent: String,
    /// The agent's own name of the event, if the payload does not contain it.
    pub event: Option<String>,
    /// The agent's native payload: UTF-8 text that starts with `{`, not parsed yet.
    pub payload: Vec<u8>,
    /// The caller's folder, if the payload does not contain one.
    pub cwd: Option<String>,
    /// The folders of projects that the caller works for, in addition to its own.
    pub projects: Vec<String>,
    /// The caller knows that no user can be asked.
    pub unattended: bool,
    /// An `ask` becomes a deny, even where the agent itself could handle it.
    pub must_not_ask: bool,
    /// The agent's entry that started the caller.
    pub entry: Option<String>,
    /// The caller is an installed http entry, which knows nothing but the payload.
    pub is_http_entry: bool,
    /// How long the agent waits for the answer, if the caller says so.
    pub answer_limit: Option<Duration>,
    /// When the call came.
    pub received: Option<Instant>,
    /// The form that the answer must have; without one it is the agent's own.
    pub form: Option<WrappedForm>,
}

/// Whose hooks a host runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostSetup {
    /// No hook runs.
    pub off: bool,
    /// Equal for all processes that find the same hooks of the user.
    pub folders: String,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookReply {
    /// Exactly what is sent to the caller, and what the record holds.
    pub answer: Answer,
    /// What the hooks decided together.
    pub decision: Option<Decision>,
    /// The record, if no journal brings it to the store.
    pub record: Option<Record>,
}

/// A call that waits for the user's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    pub record: Record,
    /// A hook has changed the call: the record has it as it will run.
    pub is_rewritten: bool,
    /// How long its agent still waits; 0: an answer counts for the next try.
    pub seconds_left: u64,
}

/// The reply to a call whose hooks could not be run, for the given reason. `None`: the
/// caller gets an error, which is not a decision. May block.
pub type FailureReply = Box<dyn FnOnce(&str) -> Option<HookReply> + Send>;

/// Runs hooks. Its calls block, and happen on several threads at the same time.
pub trait HookHost: Send + Sync + 'static {
    fn agents(&self) -> Vec<AgentName>;

    /// Decodes a request, once. Called on threads that serve other connections too, so it
    /// must not run a hook or wait for one.
    fn prepare(self: Arc<Self>, request: HookRequest) -> Box<dyn PreparedCall>;

    /// Calls that wait for the user's answer. Reads files.
    fn open_questions(&self) -> Vec<OpenQuestion> {
        Vec::new()
    }

    /// Answers a question; returns what became of the answer, or why there is none. Waits
    /// until the held call has taken it.
    fn answer_question(&self, id: &str, decision: Decision) -> Result<&'static str, String> {
        let _ = decision;
        Err(format!("there is no open question `{id}`"))
    }

    /// Tokens and cost of model calls that a filter selects, as JSON. Only `agent`,
    /// `session` and times of the filter count. Reads files.
    fn usage(&self, filter: &EventFilter) -> Result<Value, String> {
        let _ = filter;
        Ok(json!({"calls": 0, "by_model": [], "by_session": [], "by_day": []}))
    }

    /// Whose hooks run, for a client that compares it with its own setup.
    fn setup(&self) -> HostSetup {
        HostSetup::default()
    }

    /// Removes secrets from a record that its sender did not redact.
    fn redact(&self, record: &mut Record) {
        let _ = record;
    }
}

/// A decoded request whose hooks have not run yet.
pub trait PreparedCall: Send {
    /// Nothing will run, so [`PreparedCall::run`] returns at once. Only true for now:
    /// configuration may change while a call waits.
    fn is_quiet(&self) -> bool;

    /// The payload, if it could not be decoded.
    fn undecoded(&self) -> Option<&[u8]>;

    /// The folder in whose name the hooks run, so that one project cannot use up everything.
    fn project(&self) -> Option<&str> {
        None
    }

    /// Finds the hooks; returns how long they may take together, if that is known. May block.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// How this call is answered if its hooks cannot be run.
    fn failure(&self) -> Option<FailureReply> {
        None
    }

    /// Runs the hooks and writes the journal.
    fn run(self: Box<Self>) -> HookReply;
}
