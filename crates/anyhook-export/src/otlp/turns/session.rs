//! One session of one agent: at most one open turn.

use anyhook_model::RecordKind;
use serde::{Deserialize, Serialize};

use super::super::ids::{SpanId, SpanRef, TraceId};
use super::super::names;
use super::super::span::{AttributeList, FinishedSpan, SpanSink};
use super::TurnOptions;
use super::chat::{PricedCall, WaitingCalls};
use super::hook_runs::{add_decision, is_denied, push_hook_spans};
use super::role::EventRole;
use super::turn::{EndReason, OpenTurn, common_attributes};
use crate::content::{ContentLevel, content_text};
use crate::recorded_event::RecordedEvent;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SessionState {
    last: u64,
    turn: Option<OpenTurn>,
    /// The turn before.
    previous: Option<SpanRef>,
    model: Option<String>,
    #[serde(default)]
    calls: WaitingCalls,
}

impl SessionState {
    pub(super) fn last_event(&self) -> u64 {
        self.last
    }

    pub(super) fn add_call(&mut self, call: PricedCall) {
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
        if let Some(reason) = turn.and_then(|turn| turn.stale_reason(now, idle_nanos)) {
            self.close_turn(reason, None, spans);
        }
    }

    pub(super) fn close_turn(
        &mut self,
        reason: EndReason,
        end: Option<u64>,
        spans: &mut Vec<FinishedSpan>,
    ) {
        if let Some(turn) = self.turn.take() {
            let until = end.unwrap_or_default().max(self.last);
            let calls = self.calls.take_until(until);
            self.previous = Some(turn.finish(reason, end, calls, spans));
        }
    }

    pub(super) fn observe(
        &mut self,
        event: &RecordedEvent<'_>,
        options: TurnOptions,
        spans: &mut Vec<FinishedSpan>,
    ) -> Option<SpanRef> {
        let (start, now) = (event.start_nanos()?, event.end_nanos()?);
        self.last = self.last.max(now);
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
        match role {
            EventRole::Prompt if is_denied(event) => {
                self.close_turn(EndReason::PromptDenied, Some(now), spans);
            }
            // A hook that denies the stop makes the agent go on.
            EventRole::Stop if !is_denied(event) => {
                self.close_turn(EndReason::Stop, Some(now), spans);
            }
            EventRole::SessionEnd => self.close_turn(EndReason::SessionEnd, Some(now), spans),
            _ => {}
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
            self.close_turn(EndReason::NextPrompt, None, spans);
            let previous = self.previous;
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
