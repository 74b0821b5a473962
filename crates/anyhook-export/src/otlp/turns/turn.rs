//! A turn that has not ended yet.

use serde::{Deserialize, Serialize};

use super::super::ids::{SpanId, SpanRef, TraceId};
use super::super::names;
use super::super::span::{AttributeList, FinishedSpan, SpanSink};
use super::calls::OpenCalls;
use super::chat::{PricedCall, add_sums};
use super::hook_runs::add_decision;
use super::subagents::OpenSubagents;
use crate::content::{ContentLevel, content_text};
use crate::recorded_event::RecordedEvent;

/// A turn that never pauses is ended after this time: receivers expect traces of minutes.
const MAX_TURN_NANOS: u64 = 4 * 3600 * 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    Stop,
    PromptDenied,
    NextPrompt,
    SessionEnd,
    Idle,
    Limit,
}

impl EndReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::PromptDenied => "prompt_denied",
            Self::NextPrompt => "next_prompt",
            Self::SessionEnd => "session_end",
            Self::Idle => "idle",
            Self::Limit => "limit",
        }
    }

    /// Whether the end was seen.
    fn is_complete(self) -> bool {
        matches!(self, Self::Stop | Self::PromptDenied)
    }
}

/// A turn that was sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndedTurn {
    pub(super) at: SpanRef,
    pub(super) start: u64,
    pub(super) end: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OpenTurn {
    pub(super) at: SpanRef,
    pub(super) start: u64,
    /// The end of the last event.
    pub(super) last: u64,
    /// The agent's name of the prompt event; absent if the turn began with another event.
    prompt_event: Option<String>,
    /// Something happened after the prompt.
    has_activity: bool,
    /// For every span of the turn.
    pub(super) common: AttributeList,
    attributes: AttributeList,
    agent: String,
    previous: Option<SpanRef>,
    error: Option<String>,
    pub(super) calls: OpenCalls,
    pub(super) subagents: OpenSubagents,
}

impl OpenTurn {
    pub(super) fn begin(
        event: &RecordedEvent<'_>,
        is_prompt: bool,
        previous: Option<SpanRef>,
        start: u64,
    ) -> Self {
        let hook_event = &event.event;
        let mut attributes = AttributeList::default();
        attributes.text(names::OPERATION, "invoke_agent");
        attributes.text(names::SPAN_KIND, "AGENT");
        attributes.text(names::AGENT_NAME, event.agent.as_ref());
        attributes.text(names::EVENT_ID, event.id.as_ref());
        attributes.optional_text(names::USER_ID, hook_event.user_id.as_deref());
        attributes.optional_text(names::WORKING_DIRECTORY, hook_event.cwd.as_deref());
        if !is_prompt {
            attributes.flag(names::IMPLICIT_START);
        }
        Self {
            at: SpanRef {
                trace: TraceId::of_record(&event.id),
                span: SpanId::of_record("turn", &event.id, 0),
            },
            start,
            last: start,
            prompt_event: is_prompt.then(|| hook_event.native_event.to_string()),
            has_activity: false,
            common: common_attributes(event),
            attributes,
            agent: event.agent.to_string(),
            previous,
            error: None,
            calls: OpenCalls::default(),
            subagents: OpenSubagents::default(),
        }
    }

    pub(super) fn add_prompt(&mut self, event: &RecordedEvent<'_>, content: ContentLevel) {
        if let Some(prompt) = event.event.data.prompt.filter(|_| content.has_prompts()) {
            self.attributes.text(names::OI_INPUT, content_text(prompt));
        }
        add_decision(&mut self.attributes, event);
    }

    pub(super) fn add_last_message(&mut self, event: &RecordedEvent<'_>, content: ContentLevel) {
        if let Some(message) = event.event.data.last_message
            && content.has_prompts()
        {
            self.attributes
                .text(names::OI_OUTPUT, content_text(message));
        }
    }

    pub(super) fn add_model(&mut self, model: &str) {
        self.attributes.text(names::MODEL, model);
    }

    pub(super) fn add_error(&mut self, message: &str) {
        self.attributes.text(names::ERROR_TYPE, "agent_error");
        self.error = Some(message.to_owned());
    }

    /// Some agents have two events for one prompt.
    pub(super) fn is_same_prompt(&self, event: &RecordedEvent<'_>) -> bool {
        let native = self.prompt_event.as_deref();
        !self.has_activity && native.is_some_and(|native| native != event.event.native_event)
    }

    pub(super) fn add_activity(&mut self, now: u64, is_prompt: bool) {
        self.last = self.last.max(now);
        self.has_activity |= !is_prompt;
    }

    /// Why the turn has ended by `now` without an event that says so. `last` is the time of
    /// the session's last event.
    pub(super) fn stale_reason(&self, now: u64, last: u64, idle_nanos: u64) -> Option<EndReason> {
        if now.saturating_sub(last) >= idle_nanos {
            return Some(EndReason::Idle);
        }
        (now.saturating_sub(self.start) >= MAX_TURN_NANOS).then_some(EndReason::Limit)
    }

    pub(super) fn finish(
        mut self,
        reason: EndReason,
        end: Option<u64>,
        calls: &[PricedCall],
        spans: &mut Vec<FinishedSpan>,
    ) -> EndedTurn {
        let end = end.unwrap_or(self.last);
        let mut sink = SpanSink {
            trace: self.at.trace,
            common: &self.common,
            spans,
        };
        self.calls.finish_all(&mut sink);
        self.subagents.finish_all(end, &mut sink);
        add_sums(calls, &mut self.attributes);
        let is_complete = reason.is_complete();
        let attributes = &mut self.attributes;
        attributes.text(names::END_REASON, reason.as_str());
        if !is_complete {
            attributes.flag(names::INCOMPLETE);
        }
        let counts = self.calls.counts;
        attributes.int(names::TURN_TOOL_CALLS, counts.calls);
        attributes.int(names::TURN_DENIED, counts.denied);
        attributes.int(names::TURN_ASKED, counts.asked);
        if reason == EndReason::PromptDenied {
            attributes.text(names::ERROR_TYPE, "denied");
            self.error = Some("a hook denied the prompt".to_owned());
        }
        attributes.extend(&self.common);
        spans.push(FinishedSpan {
            at: self.at,
            parent: None,
            name: format!("invoke_agent {}", self.agent),
            start: self.start,
            end,
            attributes: self.attributes,
            link: self.previous,
            error: self.error,
        });
        EndedTurn {
            at: self.at,
            start: self.start,
            end,
        }
    }
}

/// What every span of a session has.
pub(super) fn common_attributes(event: &RecordedEvent<'_>) -> AttributeList {
    let mut common = AttributeList::default();
    let session = event.event.session_id.as_deref();
    common.optional_text(names::CONVERSATION, session);
    common.optional_text(names::SESSION, session);
    common
}
