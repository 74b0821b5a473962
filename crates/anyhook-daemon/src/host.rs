//! The seam to the hooks: who the agents are, and how a call of one is answered.
//!
//! The daemon knows no agent and runs no hook; whoever embeds it brings both.

use anyhook_model::{Answer, HookResponse, Record};

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
    /// The agent's own name of the event, where the payload does not say it.
    pub event: Option<String>,
    /// A JSON object.
    pub payload: Vec<u8>,
    /// Where the caller works, where the payload does not say it.
    pub cwd: Option<String>,
    /// The caller knows that there is nobody to ask.
    pub unattended: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookReply {
    /// What the agent is told.
    pub answer: Answer,
    /// The merged response that the answer was rendered from.
    pub response: HookResponse,
    /// As it went into the journal.
    pub record: Option<Record>,
}

/// Calls block, and run side by side on several threads.
pub trait HookHost: Send + Sync + 'static {
    fn agents(&self) -> Vec<AgentName>;

    /// Runs the hooks of one event and writes the journal.
    fn handle(&self, request: HookRequest) -> HookReply;

    /// The reply, when nothing is to be run for it and nothing to be waited for;
    /// otherwise the request, unchanged. It is called where others wait.
    ///
    /// # Errors
    /// The request, for [`HookHost::handle`].
    fn handle_at_once(&self, request: HookRequest) -> Result<HookReply, HookRequest> {
        Err(request)
    }

    /// Takes secrets out of a record that was not redacted by its sender.
    fn redact(&self, record: &mut Record) {
        let _ = record;
    }
}
