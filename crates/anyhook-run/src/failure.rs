//! The answer to a payload that cannot be understood.
//!
//! It breaks no agent: it says that no hook has run. Where the managed policy
//! is `fail_closed`, it refuses, unless the event is known to be one at which
//! nothing can be prevented: what we cannot read may be what a guard is for.

use anyhook_model::{Answer, HookEvent};

use crate::agent::Agent;
use crate::engine::{Engine, is_preventable};

/// What a payload came to that could not be read.
#[derive(Debug)]
pub struct Failure {
    pub answer: Answer,
    /// As far as it is known.
    pub event: HookEvent,
    pub message: String,
    pub blocks: bool,
}

impl Failure {
    /// `event` is what the caller says it is.
    pub fn new(
        engine: &Engine,
        agent: &dyn Agent,
        payload: &[u8],
        event: Option<&str>,
        why: &str,
    ) -> Self {
        let message = format!("anyhook: no hook has run: {why}");
        let suspect = agent.suspect(payload, event);
        let prevents = suspect
            .as_ref()
            .is_none_or(|suspect| is_preventable(&suspect.canonical));
        let blocks = prevents && !engine.off && engine.fails_closed();
        let native = suspect.as_ref().map(|suspect| suspect.native.as_str());
        let answer = agent.failure(native, &message, blocks);
        let event = HookEvent {
            event: suspect.as_ref().map_or_else(
                || event.unwrap_or_default().to_owned(),
                |suspect| suspect.canonical.clone(),
            ),
            native_event: native.unwrap_or_default().to_owned(),
            source: agent.slug().to_owned(),
            ..HookEvent::default()
        };
        Self {
            answer,
            event,
            message,
            blocks,
        }
    }
}
