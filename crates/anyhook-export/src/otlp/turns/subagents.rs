//! Sub-agents of a turn: spans between the turn and its tool calls.

use serde::{Deserialize, Serialize};

use super::super::ids::SpanId;
use super::super::names;
use super::super::span::{AttributeList, SpanSink, UnplacedSpan};
use super::calls::OpenCalls;
use crate::content::{ContentLevel, content_text};
use crate::recorded_event::RecordedEvent;

const MAX_OPEN_SUBAGENTS: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
struct OpenSubagent {
    id: String,
    span: SpanId,
    parent: SpanId,
    start: u64,
    name: String,
    attributes: AttributeList,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenSubagents {
    open: Vec<OpenSubagent>,
}

impl OpenSubagents {
    /// The span of the sub-agent that an event comes from.
    pub(super) fn span_of(&self, event: &RecordedEvent<'_>) -> Option<SpanId> {
        let id = event.event.data.agent_id.as_deref()?;
        let agent = self.open.iter().rev().find(|agent| agent.id == id)?;
        Some(agent.span)
    }

    /// The parent of a call: the turn, or the sub-agent that it comes from, which begins
    /// here if its start was not seen.
    pub(super) fn span_or_begin(
        &mut self,
        event: &RecordedEvent<'_>,
        turn: SpanId,
        calls: &OpenCalls,
    ) -> SpanId {
        if event.event.data.agent_id.is_none() {
            return turn;
        }
        let known = self.span_of(event);
        known.unwrap_or_else(|| {
            let span = self.begin(event, turn, calls, ContentLevel::Metadata);
            if let Some(agent) = self.open.last_mut().filter(|agent| agent.span == span) {
                agent.attributes.flag(names::IMPLICIT_START);
            }
            span
        })
    }

    pub(super) fn begin(
        &mut self,
        event: &RecordedEvent<'_>,
        turn: SpanId,
        calls: &OpenCalls,
        content: ContentLevel,
    ) -> SpanId {
        if let Some(known) = self.span_of(event) {
            return known;
        }
        if self.open.len() >= MAX_OPEN_SUBAGENTS {
            return turn;
        }
        let data = &event.event.data;
        let is_free = |call| self.open.iter().all(|agent| agent.parent != call);
        let parent = calls.newest_agent_call(is_free).unwrap_or(turn);
        let name = data.agent_type.as_deref().unwrap_or("sub-agent");
        let mut attributes = AttributeList::default();
        attributes.text(names::OPERATION, "invoke_agent");
        attributes.text(names::SPAN_KIND, "AGENT");
        attributes.text(names::AGENT_NAME, name);
        attributes.optional_text(names::AGENT_ID, data.agent_id.as_deref());
        attributes.text(names::EVENT_ID, event.id.as_ref());
        if let Some(prompt) = data.prompt.filter(|_| content.has_prompts()) {
            attributes.text(names::OI_INPUT, content_text(prompt));
        }
        let span = SpanId::of_record("agent", &event.id, 0);
        self.open.push(OpenSubagent {
            id: data.agent_id.as_deref().unwrap_or_default().to_owned(),
            span,
            parent,
            start: event.start_nanos().unwrap_or_default(),
            name: name.to_owned(),
            attributes,
        });
        span
    }

    /// Ends the sub-agent of an event; without an id the one of its type, else the newest.
    pub(super) fn stop(
        &mut self,
        event: &RecordedEvent<'_>,
        content: ContentLevel,
        sink: &mut SpanSink<'_>,
    ) -> Option<SpanId> {
        let data = &event.event.data;
        let index = match (data.agent_id.as_deref(), data.agent_type.as_deref()) {
            (Some(id), _) => self.open.iter().rposition(|agent| agent.id == id),
            (None, Some(name)) => self.open.iter().rposition(|agent| agent.name == name),
            (None, None) => self.open.len().checked_sub(1),
        }?;
        let mut agent = self.open.remove(index);
        if let Some(message) = data.last_message.filter(|_| content.has_prompts()) {
            agent
                .attributes
                .text(names::OI_OUTPUT, content_text(message));
        }
        let span = agent.span;
        agent.finish(event.end_nanos().unwrap_or_default(), sink);
        Some(span)
    }

    pub(super) fn finish_all(&mut self, end: u64, sink: &mut SpanSink<'_>) {
        for mut agent in self.open.drain(..) {
            agent.attributes.flag(names::INCOMPLETE);
            agent.finish(end, sink);
        }
    }
}

impl OpenSubagent {
    fn finish(self, end: u64, sink: &mut SpanSink<'_>) {
        sink.push(UnplacedSpan {
            id: self.span,
            parent: self.parent,
            name: format!("invoke_agent {}", self.name),
            start: self.start,
            end,
            attributes: self.attributes,
            error: None,
        });
    }
}
