//! Tool calls that have begun: pairs the event before a call with the event after it.

use anyhook_model::Decision;
use anyhook_util::hash;
use serde::{Deserialize, Serialize};

use super::super::ids::SpanId;
use super::super::names;
use super::super::span::{AttributeList, SpanSink, UnplacedSpan};
use super::hook_runs::{add_decision, is_denied};
use super::role::EventRole;
use crate::content::{ContentLevel, content_text, shortened};
use crate::recorded_event::{RecordedEvent, raw_text};

/// Calls beyond this number are ended, the oldest first.
const MAX_OPEN_CALLS: usize = 128;
/// Denied calls of which a later event may still come.
const MAX_DENIED_CALLS: usize = 32;
const MAX_ENDED_CALLS: usize = 32;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct CallCounts {
    pub(super) calls: i64,
    pub(super) denied: i64,
    pub(super) asked: i64,
}

/// By what a later event of the same call is recognised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CallIdentity {
    id: Option<String>,
    tool: String,
    /// A hash of the input.
    input: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct OpenCall {
    identity: CallIdentity,
    span: SpanId,
    parent: SpanId,
    start: u64,
    /// The end of the event before the call.
    known_end: u64,
    name: String,
    /// The tool by anyhook's name.
    canonical: String,
    attributes: AttributeList,
    error: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EndedCall {
    call: OpenCall,
    end: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenCalls {
    pub(super) counts: CallCounts,
    open: Vec<OpenCall>,
    denied: Vec<(CallIdentity, SpanId)>,
    /// Calls whose end was recorded before their start: each is written by its own process.
    ended: Vec<EndedCall>,
}

impl OpenCalls {
    /// The open call that an event belongs to.
    pub(super) fn find(&self, event: &RecordedEvent<'_>) -> Option<SpanId> {
        let index = self.position(&CallIdentity::from_event(event))?;
        self.open.get(index).map(|call| call.span)
    }

    /// The newest open call of a tool that starts sub-agents.
    pub(super) fn newest_agent_call(&self, is_free: impl Fn(SpanId) -> bool) -> Option<SpanId> {
        let calls = self.open.iter().rev();
        calls
            .filter(|call| call.canonical == "agent")
            .map(|call| call.span)
            .find(|span| is_free(*span))
    }

    fn position(&self, wanted: &CallIdentity) -> Option<usize> {
        let find = |is_same: &dyn Fn(&CallIdentity) -> bool| {
            self.open.iter().position(|call| is_same(&call.identity))
        };
        if wanted.id.is_some() {
            return find(&|known| known.id == wanted.id)
                .or_else(|| find(&|known| known.id.is_none() && known.is_same_input(wanted)));
        }
        find(&|known| known.is_same_input(wanted)).or_else(|| find(&|it| it.tool == wanted.tool))
    }

    /// A call begins, or an open one has another event before it runs.
    pub(super) fn start(
        &mut self,
        event: &RecordedEvent<'_>,
        role: EventRole,
        parent: SpanId,
        content: ContentLevel,
        sink: &mut SpanSink<'_>,
    ) -> SpanId {
        let identity = CallIdentity::from_event(event);
        let is_repeated = |known: &CallIdentity| match (&known.id, &identity.id) {
            (Some(id), Some(other)) => id == other && known.tool == identity.tool,
            // Without ids two calls may be equal; a question about permission is no new call.
            _ => role == EventRole::Permission && known.is_same_input(&identity),
        };
        let known = self.open.iter_mut().find(|it| is_repeated(&it.identity));
        let mut ended = self.ended.iter();
        let ended = ended.position(|it| is_repeated(&it.call.identity));
        if event.decision == Some(Decision::Ask) {
            self.counts.asked += 1;
        }
        if let Some(call) = known {
            add_start_event(call, event);
            return call.span;
        }
        let mut call = OpenCall::new(event, identity, parent, content);
        add_start_event(&mut call, event);
        if let Some(index) = ended {
            let EndedCall { call: known, end } = self.ended.remove(index);
            // Hooks of the end are below this span already.
            call.span = known.span;
            call.attributes.add_missing(known.attributes);
            call.attributes.remove(names::TOOL_START);
            call.error = known.error;
            let span = call.span;
            call.finish(end, sink);
            return span;
        }
        self.counts.calls += 1;
        let span = call.span;
        self.open.push(call);
        while self.open.len() > MAX_OPEN_CALLS {
            self.open.remove(0).finish_unseen(sink);
        }
        span
    }

    /// Ends a call; a call whose start was not seen begins and ends here.
    pub(super) fn end(
        &mut self,
        event: &RecordedEvent<'_>,
        parent: SpanId,
        content: ContentLevel,
        sink: &mut SpanSink<'_>,
    ) -> SpanId {
        let identity = CallIdentity::from_event(event);
        let denied = |(known, _): &&(CallIdentity, SpanId)| match (&known.id, &identity.id) {
            (Some(known), Some(id)) => known == id,
            _ => known.is_same_input(&identity),
        };
        let known = self.position(&identity);
        let is_start_unseen = known.is_none();
        let mut call = if let Some(index) = known {
            self.open.remove(index)
        } else {
            // Some agents report a denied call as one that failed.
            if let Some((_, span)) = self.denied.iter().find(denied) {
                return *span;
            }
            self.counts.calls += 1;
            let mut call = OpenCall::new(event, identity, parent, content);
            call.attributes.text(names::TOOL_START, "unknown");
            call
        };
        call.add_end_event(event, content);
        let span = call.span;
        // The tool ended before the agent called about it.
        let end = event.start_nanos().unwrap_or(call.known_end);
        if is_start_unseen && call.identity.id.is_some() {
            self.ended.push(EndedCall { call, end });
            if self.ended.len() > MAX_ENDED_CALLS {
                let EndedCall { call, end } = self.ended.remove(0);
                call.finish(end, sink);
            }
        } else {
            call.finish(end, sink);
        }
        span
    }

    pub(super) fn deny(
        &mut self,
        span: SpanId,
        event: &RecordedEvent<'_>,
        sink: &mut SpanSink<'_>,
    ) {
        let Some(index) = self.open.iter().position(|call| call.span == span) else {
            return;
        };
        let mut call = self.open.remove(index);
        self.counts.denied += 1;
        if self.denied.len() >= MAX_DENIED_CALLS {
            self.denied.remove(0);
        }
        self.denied.push((call.identity.clone(), span));
        call.attributes.text(names::ERROR_TYPE, "denied");
        let reason = event.response.reason.as_deref();
        let reason = reason.or(event.event.data.reason.as_deref());
        call.error = Some(shortened(reason.unwrap_or("denied")).into_owned());
        call.finish(event.end_nanos().unwrap_or_default(), sink);
    }

    pub(super) fn finish_all(&mut self, sink: &mut SpanSink<'_>) {
        for call in self.open.drain(..) {
            call.finish_unseen(sink);
        }
        for EndedCall { call, end } in self.ended.drain(..) {
            call.finish(end, sink);
        }
    }
}

impl CallIdentity {
    fn from_event(event: &RecordedEvent<'_>) -> Self {
        let data = &event.event.data;
        let tool = data.native_tool_name.as_ref().or(data.tool_name.as_ref());
        let input = data
            .tool_input
            .map(|raw| hash::sha256(raw.get().as_bytes()));
        Self {
            id: data.tool_call_id.as_ref().map(ToString::to_string),
            tool: tool.map(ToString::to_string).unwrap_or_default(),
            input: input.unwrap_or_default(),
        }
    }

    fn is_same_input(&self, other: &Self) -> bool {
        self.tool == other.tool && self.input == other.input
    }
}

impl OpenCall {
    fn new(
        event: &RecordedEvent<'_>,
        identity: CallIdentity,
        parent: SpanId,
        content: ContentLevel,
    ) -> Self {
        let data = &event.event.data;
        let start = event.start_nanos().unwrap_or_default();
        let canonical = data.tool_name.as_deref().unwrap_or_default();
        let mut attributes = AttributeList::default();
        attributes.text(names::OPERATION, "execute_tool");
        attributes.text(names::SPAN_KIND, "TOOL");
        attributes.text(names::AGENT_NAME, event.agent.as_ref());
        attributes.optional_text(names::AGENT_ID, data.agent_id.as_deref());
        attributes.text(names::TOOL_NAME, identity.tool.clone());
        attributes.text(names::OI_TOOL_NAME, identity.tool.clone());
        attributes.text(names::CANONICAL_TOOL, canonical);
        attributes.optional_text(names::TOOL_CALL_ID, data.tool_call_id.as_deref());
        attributes.text(names::EVENT_ID, event.id.as_ref());
        let server = data.mcp.and_then(|raw| mcp_server(raw.get()));
        attributes.text(
            names::TOOL_TYPE,
            if server.is_some() {
                "extension"
            } else {
                "function"
            },
        );
        attributes.optional_text(names::MCP_SERVER, server.as_deref());
        if let Some(input) = data.tool_input.filter(|_| content.has_tools()) {
            let text = content_text(input);
            attributes.text(names::TOOL_ARGUMENTS, text.clone());
            attributes.text(names::OI_INPUT, text);
        }
        Self {
            span: SpanId::of_record("tool", &event.id, 0),
            parent,
            start,
            known_end: event.end_nanos().unwrap_or(start),
            name: format!("execute_tool {}", identity.tool),
            canonical: canonical.to_owned(),
            identity,
            attributes,
            error: None,
        }
    }

    fn add_end_event(&mut self, event: &RecordedEvent<'_>, content: ContentLevel) {
        let data = &event.event.data;
        if let Some(output) = data.tool_output.filter(|_| content.has_tools()) {
            let text = content_text(output);
            self.attributes.text(names::TOOL_RESULT, text.clone());
            self.attributes.text(names::OI_OUTPUT, text);
        }
        let is_failure = event.event.event != "after_tool_execute"
            || matches!(data.status.as_deref(), Some("error" | "failure"));
        if is_failure {
            self.attributes.text(names::ERROR_TYPE, "tool_error");
            // What a tool writes is content.
            let message = data
                .error
                .filter(|_| content.has_tools())
                .and_then(raw_text);
            let message = message.unwrap_or("the tool failed".into());
            self.error = Some(shortened(&message).into_owned());
        }
        if event.decision.is_some() && !is_denied(event) {
            return;
        }
        add_decision(&mut self.attributes, event);
    }

    fn finish_unseen(mut self, sink: &mut SpanSink<'_>) {
        self.attributes.text(names::TOOL_END, "unknown");
        let end = self.known_end;
        self.finish(end, sink);
    }

    fn finish(self, end: u64, sink: &mut SpanSink<'_>) {
        sink.push(UnplacedSpan {
            id: self.span,
            parent: self.parent,
            name: self.name,
            start: self.start,
            end,
            attributes: self.attributes,
            error: self.error,
        });
    }
}

/// Adds what hooks said about a call before it ran.
fn add_start_event(call: &mut OpenCall, event: &RecordedEvent<'_>) {
    add_decision(&mut call.attributes, event);
    if event.response.updated_input.is_some() {
        call.attributes.flag(names::REWRITTEN);
    }
    let lost = event.lost.iter().map(|loss| loss.field.to_string());
    call.attributes.list(names::LOST, lost.collect());
    call.known_end = call.known_end.max(event.end_nanos().unwrap_or_default());
}

fn mcp_server(json: &str) -> Option<String> {
    let mcp: serde_json::Value = serde_json::from_str(json).ok()?;
    mcp.get("server")?.as_str().map(str::to_owned)
}
