//! The answer to a payload that cannot be decoded.
//!
//! It must not break the agent: it only reports that no hook has run. If the
//! managed policy is `fail_closed`, it denies, unless the event is known to be
//! one that a deny cannot prevent: an unreadable payload may be the very call
//! that a guard exists for.

use anyhook_model::{Answer, HookEvent};

use crate::agent::Agent;
use crate::engine::{Engine, is_preventable};

/// How an unreadable payload is answered and recorded.
#[derive(Debug)]
pub struct DecodeFailure {
    pub answer: Answer,
    /// As much of the event as is known.
    pub event: HookEvent,
    pub message: String,
    pub blocks: bool,
}

impl DecodeFailure {
    /// `event` is the event's native name, if the caller gave one.
    pub fn new(
        engine: &Engine,
        agent: &dyn Agent,
        payload: &[u8],
        event: Option<&str>,
        why: &str,
    ) -> Self {
        let message = format!("anyhook: no hook has run: {why}");
        let suspect = agent.suspect(payload, event);
        let suspect = suspect.as_ref();
        let canonical = suspect.map(|suspect| suspect.canonical.as_str());
        let native = suspect.map(|suspect| suspect.native.as_str());
        let blocks = canonical.is_none_or(is_preventable) && !engine.off && engine.fails_closed();
        Self {
            answer: agent.failure(native, &message, blocks),
            event: HookEvent {
                event: canonical.or(event).unwrap_or_default().to_owned(),
                native_event: native.unwrap_or_default().to_owned(),
                source: agent.slug().to_owned(),
                ..HookEvent::default()
            },
            message,
            blocks,
        }
    }
}
