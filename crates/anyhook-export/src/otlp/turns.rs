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

/// Sessions beyond this number are forgotten, the longest idle one first.
const MAX_SESSIONS: usize = 1000;
/// Calls of models that wait for their turns.
const MAX_WAITING_CALLS: usize = 4000;
/// What is open at the end of a batch, as it is saved; beyond it turns are ended, the longest
/// idle ones first.
const MAX_OPEN_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnOptions {
    pub content: ContentLevel,
    /// A turn without an event for this long has ended.
    pub idle_nanos: u64,
    /// Nanoseconds since 1970. What events date later counts as now: a clock that is ahead
    /// must not end the turns of others, nor keep its own open.
    pub now: u64,
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
        let now = event.end_nanos()?.min(options.now);
        if !matches!(event.kind, RecordKind::Event | RecordKind::AsyncEnd) {
            return self.current_turn(event);
        }
        let key = session_key(event);
        let session = self.session(key, spans);
        session.close_if_stale(now, options.idle_nanos, spans);
        session.observe(event, options, spans)
    }

    /// Ends turns that had no event for a while, and sends calls that belong to none.
    pub(crate) fn close_idle(&mut self, now: u64, idle_nanos: u64, spans: &mut Vec<FinishedSpan>) {
        for session in self.sessions.values_mut() {
            session.close_if_stale(now, idle_nanos, spans);
            session.send_calls(now, idle_nanos, spans);
        }
    }

    /// A call of a model, for the turn in which it happened.
    pub(crate) fn add_call(&mut self, call: PricedCall, spans: &mut Vec<FinishedSpan>) {
        let key = format!("{}\n{}", call.call.agent, call.call.session);
        self.session(key, spans).add_call(call);
    }

    /// Sends the calls that belong to turns that were sent already.
    pub(crate) fn send_late_calls(&mut self, spans: &mut Vec<FinishedSpan>) {
        for session in self.sessions.values_mut() {
            session.send_late_calls(spans);
        }
    }

    /// How many calls may be added before others are sent.
    pub(crate) fn room_for_calls(&self) -> usize {
        let waiting = self.sessions.values().map(SessionState::waiting_calls);
        MAX_WAITING_CALLS.saturating_sub(waiting.sum())
    }

    /// Ends turns if too much is open: what agents wrote is kept until then.
    pub(crate) fn bound(&mut self, spans: &mut Vec<FinishedSpan>) {
        while saved_size(self) > MAX_OPEN_BYTES {
            let open = self
                .sessions
                .iter()
                .filter(|(_, session)| session.is_turn_open());
            let mut open: Vec<_> = open
                .map(|(key, session)| (session.last_activity(), key.clone()))
                .collect();
            if open.is_empty() {
                return;
            }
            open.sort();
            open.truncate(open.len().div_ceil(2));
            for (_, key) in open {
                self.forget(&key, spans);
            }
        }
    }

    fn current_turn(&self, event: &RecordedEvent<'_>) -> Option<SpanRef> {
        self.sessions.get(&session_key(event))?.turn_span()
    }

    fn session(&mut self, key: String, spans: &mut Vec<FinishedSpan>) -> &mut SessionState {
        while self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&key) {
            let oldest = self
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.last_activity())
                .map(|(key, _)| key.clone());
            match oldest {
                Some(key) => self.forget(&key, spans),
                None => break,
            }
        }
        self.sessions.entry(key).or_default()
    }

    fn forget(&mut self, key: &str, spans: &mut Vec<FinishedSpan>) {
        if let Some(session) = self.sessions.remove(key) {
            session.close(spans);
        }
    }
}

/// The length of the saved form.
fn saved_size(tracker: &TurnTracker) -> usize {
    let mut counter = ByteCounter(0);
    // Counting does not fail.
    let _ = serde_json::to_writer(&mut counter, tracker);
    counter.0
}

struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Agents number their sessions independently of each other.
fn session_key(event: &RecordedEvent<'_>) -> String {
    let session = event.event.session_id.as_deref();
    let place = session.or(event.event.cwd.as_deref()).unwrap_or_default();
    format!("{}\n{place}", event.agent)
}
