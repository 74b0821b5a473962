//! From events to spans: one trace per turn.
//!
//! A turn begins with a prompt and ends with the agent's stop. Tool calls are sent when they
//! end, the turn's own span when the turn ends. What is open is part of the saved state, so
//! that memory is bounded and a restarted export continues with the same ids. Pure: reads no
//! clock and no file.

mod calls;
mod chat;
mod hook_runs;
mod role;
mod session;
mod subagents;
mod turn;

use std::collections::BTreeMap;

use anyhook_model::RecordKind;
use serde::{Deserialize, Serialize};

use super::ids::SpanRef;
use super::span::FinishedSpan;
use crate::content::ContentLevel;
use crate::recorded_event::RecordedEvent;
pub(crate) use chat::PricedCall;
pub(crate) use hook_runs::{add_decision, outcome_word};
use session::SessionState;
use turn::EndReason;

/// Sessions beyond this number are forgotten, the longest idle one first.
const MAX_SESSIONS: usize = 1000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnOptions {
    pub content: ContentLevel,
    /// A turn without an event for this long has ended.
    pub idle_nanos: u64,
}

/// The open turns of all sessions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TurnTracker {
    sessions: BTreeMap<String, SessionState>,
}

impl TurnTracker {
    /// Adds an event. Finished spans go to `spans`; returns the span that the event is
    /// part of.
    pub(crate) fn observe(
        &mut self,
        event: &RecordedEvent<'_>,
        options: TurnOptions,
        spans: &mut Vec<FinishedSpan>,
    ) -> Option<SpanRef> {
        let now = event.end_nanos()?;
        if !matches!(event.kind, RecordKind::Event | RecordKind::AsyncEnd) {
            return self.current_turn(event);
        }
        let key = session_key(event);
        if !self.sessions.contains_key(&key) {
            self.make_room(spans);
        }
        let session = self.sessions.entry(key).or_default();
        session.close_if_stale(now, options.idle_nanos, spans);
        session.observe(event, options, spans)
    }

    /// Ends turns that had no event for a while.
    pub(crate) fn close_idle(&mut self, now: u64, idle_nanos: u64, spans: &mut Vec<FinishedSpan>) {
        for session in self.sessions.values_mut() {
            session.close_if_stale(now, idle_nanos, spans);
        }
    }

    /// A call of a model, for the turn in which it happened.
    pub(crate) fn add_call(&mut self, call: PricedCall) {
        let key = format!("{}\n{}", call.call.agent, call.call.session);
        // Room is made by the session's events, which come with its calls.
        if self.sessions.len() < 2 * MAX_SESSIONS || self.sessions.contains_key(&key) {
            self.sessions.entry(key).or_default().add_call(call);
        }
    }

    fn current_turn(&self, event: &RecordedEvent<'_>) -> Option<SpanRef> {
        self.sessions.get(&session_key(event))?.turn_span()
    }

    fn make_room(&mut self, spans: &mut Vec<FinishedSpan>) {
        while self.sessions.len() >= MAX_SESSIONS {
            let oldest = self
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.last_event())
                .map(|(key, _)| key.clone());
            let Some(mut session) = oldest.and_then(|key| self.sessions.remove(&key)) else {
                return;
            };
            session.close_turn(EndReason::Limit, None, spans);
        }
    }
}

/// Agents number their sessions independently of each other.
fn session_key(event: &RecordedEvent<'_>) -> String {
    let session = event.event.session_id.as_deref();
    let place = session.or(event.event.cwd.as_deref()).unwrap_or_default();
    format!("{}\n{place}", event.agent)
}
