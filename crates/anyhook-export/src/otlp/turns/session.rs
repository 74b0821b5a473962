//! One session of one agent: at most one open turn.

use anyhook_model::RecordKind;
use serde::{Deserialize, Serialize};

use super::super::ids::{SpanId, SpanRef, TraceId};
use super::super::names;
use super::super::span::{AttributeList, FinishedSpan, SpanSink};
use super::TurnOptions;
use super::chat::{GRACE_NANOS, PricedCall, SentCalls, WaitingCalls};
use super::hook_runs::{add_decision, is_denied, push_hook_spans};
use super::role::EventRole;
use super::turn::{EndReason, EndedTurn, OpenTurn, common_attributes};
use crate::content::{ContentLevel, content_text};
use crate::recorded_event::RecordedEvent;

/// Turns that were sent, of which calls of the model may still be found.
const MAX_RECENT_TURNS: usize = 4;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SessionState {
    /// When the last event was, by a clock that is not ahead of this machine's.
    last: u64,
    turn: Option<OpenTurn>,
    /// The newest last.
    #[serde(default)]
    recent: Vec<EndedTurn>,
    model: Option<String>,
    #[serde(default)]
    calls: WaitingCalls,
    #[serde(default)]
    sent_calls: SentCalls,
    /// The time of the last call.
    #[serde(default)]
    last_call: u64,
}

impl SessionState {
    pub(super) fn last_activity(&self) -> u64 {
        self.last.max(self.last_call)
    }

    pub(super) fn is_turn_open(&self) -> bool {
        self.turn.is_some()
    }

    pub(super) fn waiting_calls(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn add_call(&mut self, call: PricedCall) {
        self.last_call = self.last_call.max(call.nanos());
        self.calls.add(call);
    }

    pub(super) fn turn_span(&self) -> Option<SpanRef> {
        self.turn.as_ref().map(|turn| turn.at)
    }

    pub(super) fn close_if_stale(
        &mut self,
        now: u64,
        idle_nanos: u64,
        spans: &mut Vec<FinishedSpan>,
    ) {
        let turn = self.turn.as_ref();
        let reason = turn.and_then(|turn| turn.stale_reason(now, self.last, idle_nanos));
        if let Some(reason) = reason {
            self.close_turn(reason, None, now, spans);
        }
    }

    /// `until` is the time of the last call of a model that may belong to the turn.
    fn close_turn(
        &mut self,
        reason: EndReason,
        end: Option<u64>,
        until: u64,
        spans: &mut Vec<FinishedSpan>,
    ) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        let (at, start) = (turn.at, turn.start);
        self.push_late_calls(|time| time < start, spans);
        let calls = self.calls.take_if(|time| time <= until);
        let ended = turn.finish(reason, end, &calls, spans);
        for call in calls {
            self.sent_calls.push_span(call, Some(at), spans);
        }
        if self.recent.len() >= MAX_RECENT_TURNS {
            self.recent.remove(0);
        }
        self.recent.push(ended);
    }

    /// Ends everything, because the session is forgotten.
    pub(super) fn close(mut self, spans: &mut Vec<FinishedSpan>) {
        self.close_turn(EndReason::Limit, None, u64::MAX, spans);
        self.send_calls(u64::MAX, 0, spans);
    }

    /// Sends the calls of turns that were sent before these were found.
    pub(super) fn send_late_calls(&mut self, spans: &mut Vec<FinishedSpan>) {
        let open = self.turn.as_ref().map(|turn| turn.start);
        let Some(ended) = self.recent.last().map(|turn| turn.end) else {
            return;
        };
        let ended = ended.saturating_add(GRACE_NANOS);
        let is_late = |time: u64| time <= ended && open.is_none_or(|start| time < start);
        self.push_late_calls(is_late, spans);
    }

    /// Sends those calls, and after a while also those that belong to no turn.
    pub(super) fn send_calls(&mut self, now: u64, idle_nanos: u64, spans: &mut Vec<FinishedSpan>) {
        self.send_late_calls(spans);
        if self.turn.is_some() {
            return;
        }
        let is_old = |time: u64| now.saturating_sub(time) >= idle_nanos;
        for call in self.calls.take_if(is_old) {
            let turn = self.turn_of(call.nanos());
            self.sent_calls.push_span(call, turn, spans);
        }
    }

    /// Of those that are wanted, the calls during or after a turn that was sent.
    fn push_late_calls(&mut self, is_wanted: impl Fn(u64) -> bool, spans: &mut Vec<FinishedSpan>) {
        let Some(first) = self.recent.first().map(|turn| turn.start) else {
            return;
        };
        let late = self.calls.take_if(|time| time >= first && is_wanted(time));
        for call in late {
            let turn = self.turn_of(call.nanos());
            self.sent_calls.push_span(call, turn, spans);
        }
    }

    /// The turn that was sent and had begun last before a time.
    fn turn_of(&self, time: u64) -> Option<SpanRef> {
        let mut turns = self.recent.iter().rev();
        turns.find(|turn| turn.start <= time).map(|turn| turn.at)
    }

    pub(super) fn observe(
        &mut self,
        event: &RecordedEvent<'_>,
        options: TurnOptions,
        spans: &mut Vec<FinishedSpan>,
    ) -> Option<SpanRef> {
        let (start, now) = (event.start_nanos()?, event.end_nanos()?);
        self.last = self.last.max(now.min(options.now));
        if event.kind == RecordKind::AsyncEnd {
            return self.observe_async_end(event, spans);
        }
        if let Some(model) = event.event.data.model.as_deref() {
            self.model = Some(model.to_owned());
        }
        let role = EventRole::from_event(event);
        self.begin_turn_if_needed(event, role, start, spans);
        let model = self.model.as_deref();
        let Some(turn) = &mut self.turn else {
            return push_event_span(event, spans);
        };
        turn.add_activity(now, role == EventRole::Prompt);
        if let Some(model) = model {
            turn.add_model(model);
        }
        let at = observe_in_turn(turn, event, role, options, spans);
        push_hook_spans(event, at, &turn.common, spans);
        let end = match role {
            EventRole::Prompt if is_denied(event) => Some(EndReason::PromptDenied),
            // A hook that denies the stop makes the agent go on.
            EventRole::Stop if !is_denied(event) => Some(EndReason::Stop),
            EventRole::SessionEnd => Some(EndReason::SessionEnd),
            _ => None,
        };
        if let Some(reason) = end {
            self.close_turn(reason, Some(now), now.saturating_add(GRACE_NANOS), spans);
        }
        Some(at)
    }

    /// A detached hook has ended. Its record repeats the event that started it, which must
    /// not count again: a prompt would begin another turn.
    fn observe_async_end(
        &self,
        event: &RecordedEvent<'_>,
        spans: &mut Vec<FinishedSpan>,
    ) -> Option<SpanRef> {
        let Some(turn) = &self.turn else {
            return push_event_span(event, spans);
        };
        let call = turn.calls.find(event);
        let span = call.or_else(|| turn.subagents.span_of(event));
        let at = SpanRef {
            trace: turn.at.trace,
            span: span.unwrap_or(turn.at.span),
        };
        push_hook_spans(event, at, &turn.common, spans);
        Some(at)
    }

    fn begin_turn_if_needed(
        &mut self,
        event: &RecordedEvent<'_>,
        role: EventRole,
        start: u64,
        spans: &mut Vec<FinishedSpan>,
    ) {
        let is_prompt = role == EventRole::Prompt;
        let is_open = match &self.turn {
            Some(turn) => !is_prompt || turn.is_same_prompt(event),
            None => !is_prompt && !role.needs_turn(),
        };
        if !is_open {
            self.close_turn(EndReason::NextPrompt, None, start, spans);
            let previous = self.recent.last().map(|turn| turn.at);
            self.turn = Some(OpenTurn::begin(event, is_prompt, previous, start));
        }
    }
}

/// Updates the turn; returns the span to which the event and its hooks belong.
fn observe_in_turn(
    turn: &mut OpenTurn,
    event: &RecordedEvent<'_>,
    role: EventRole,
    options: TurnOptions,
    spans: &mut Vec<FinishedSpan>,
) -> SpanRef {
    let content = options.content;
    let trace = turn.at.trace;
    let in_trace = |span: SpanId| SpanRef { trace, span };
    let mut sink = SpanSink {
        trace,
        common: &turn.common,
        spans,
    };
    let parent = turn.subagents.span_of(event).unwrap_or(turn.at.span);
    match role {
        EventRole::Prompt => turn.add_prompt(event, content),
        EventRole::Stop => turn.add_last_message(event, content),
        EventRole::AgentError => turn.add_error(&error_text(event, content)),
        EventRole::CallStart | EventRole::Permission => {
            let parent = turn
                .subagents
                .span_or_begin(event, turn.at.span, &turn.calls);
            let call = turn.calls.start(event, role, parent, content, &mut sink);
            if is_denied(event) {
                turn.calls.deny(call, event, &mut sink);
            }
            return in_trace(call);
        }
        EventRole::PermissionDenied => {
            if let Some(call) = turn.calls.find(event) {
                turn.calls.deny(call, event, &mut sink);
                return in_trace(call);
            }
        }
        EventRole::CallEnd => {
            let parent = turn
                .subagents
                .span_or_begin(event, turn.at.span, &turn.calls);
            let call = turn.calls.end(event, parent, content, &mut sink);
            return in_trace(call);
        }
        EventRole::AgentStart => {
            let span = turn
                .subagents
                .begin(event, turn.at.span, &turn.calls, content);
            return in_trace(span);
        }
        EventRole::AgentStop => {
            let stopped = turn.subagents.stop(event, content, &mut sink);
            return in_trace(stopped.unwrap_or(parent));
        }
        EventRole::SessionEnd | EventRole::Other => {}
    }
    in_trace(parent)
}

/// An event outside of a turn is a trace of its own, if hooks ran.
fn push_event_span(event: &RecordedEvent<'_>, spans: &mut Vec<FinishedSpan>) -> Option<SpanRef> {
    if event.hooks.is_empty() {
        return None;
    }
    let at = SpanRef {
        trace: TraceId::of_record(&event.id),
        span: SpanId::of_record("event", &event.id, 0),
    };
    let common = common_attributes(event);
    let mut attributes = AttributeList::default();
    attributes.text(names::SPAN_KIND, "CHAIN");
    attributes.text(names::AGENT_NAME, event.agent.as_ref());
    attributes.text(names::EVENT_NAME, event.event.event.as_ref());
    attributes.text(names::NATIVE_EVENT, event.event.native_event.as_ref());
    attributes.text(names::EVENT_ID, event.id.as_ref());
    add_decision(&mut attributes, event);
    attributes.extend(&common);
    spans.push(FinishedSpan {
        at,
        parent: None,
        name: event.event.event.to_string(),
        start: event.start_nanos()?,
        end: event.end_nanos()?,
        attributes,
        link: None,
        error: None,
    });
    push_hook_spans(event, at, &common, spans);
    Some(at)
}

/// What an agent says may quote the hook's answer.
fn error_text(event: &RecordedEvent<'_>, content: ContentLevel) -> String {
    if !content.has_tools() {
        return "the agent reported an error".to_owned();
    }
    let data = &event.event.data;
    let error = data.error.map(content_text);
    let reason = || data.reason.clone();
    let text = error.or_else(reason).unwrap_or_default();
    if text.is_empty() {
        return "the agent reported an error".to_owned();
    }
    text.into_owned()
}
