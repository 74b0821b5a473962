//! One log record per event, with the span that it belongs to.

use anyhook_model::{Decision, RecordKind, RunOutcome};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};

use super::ids::SpanRef;
use super::names;
use super::span::{AttributeList, text_value};
use super::turns::add_decision;
use crate::content::{ContentLevel, content_text, shortened};
use crate::recorded_event::RecordedEvent;

pub(crate) fn log_record(
    event: &RecordedEvent<'_>,
    at: Option<SpanRef>,
    content: ContentLevel,
) -> LogRecord {
    let (severity, word) = severity(event);
    let time = event.end_nanos().unwrap_or_default();
    LogRecord {
        time_unix_nano: event.start_nanos().unwrap_or(time),
        observed_time_unix_nano: time,
        severity_number: severity.into(),
        severity_text: word.to_owned(),
        body: Some(text_value(body_text(event))),
        attributes: log_attributes(event, content).into_key_values(),
        trace_id: at.map(|at| at.trace.to_vec()).unwrap_or_default(),
        span_id: at.map(|at| at.span.to_vec()).unwrap_or_default(),
        event_name: format!("anyhook.{}", event.event.event),
        ..LogRecord::default()
    }
}

fn severity(event: &RecordedEvent<'_>) -> (SeverityNumber, &'static str) {
    let has_trouble = |outcome: RunOutcome| {
        matches!(
            outcome,
            RunOutcome::Error | RunOutcome::Timeout | RunOutcome::Refused | RunOutcome::Warn
        )
    };
    if event.kind == RecordKind::Failure {
        (SeverityNumber::Error, "ERROR")
    } else if event.decision == Some(Decision::Deny)
        || !event.warnings.is_empty()
        || event.hooks.iter().any(|run| has_trouble(run.outcome))
    {
        (SeverityNumber::Warn, "WARN")
    } else {
        (SeverityNumber::Info, "INFO")
    }
}

/// `claude-code before_tool_execute Bash: deny, no shell here`
fn body_text(event: &RecordedEvent<'_>) -> String {
    let data = &event.event.data;
    let mut text = format!("{} {}", event.agent, event.event.event);
    if let Some(tool) = data.native_tool_name.as_ref().or(data.tool_name.as_ref()) {
        text.push(' ');
        text.push_str(tool);
    }
    if let Some(decision) = event.decision {
        text.push_str(": ");
        text.push_str(decision.as_str());
        if let Some(reason) = &event.response.reason {
            text.push_str(", ");
            text.push_str(&shortened(reason));
        }
    }
    text
}

fn log_attributes(event: &RecordedEvent<'_>, content: ContentLevel) -> AttributeList {
    let hook_event = &event.event;
    let data = &hook_event.data;
    let mut attributes = AttributeList::default();
    attributes.text(names::LOG_UID, event.id.as_ref());
    attributes.text(names::AGENT_NAME, event.agent.as_ref());
    attributes.optional_text(names::AGENT_ID, data.agent_id.as_deref());
    attributes.optional_text(names::CONVERSATION, hook_event.session_id.as_deref());
    attributes.optional_text(names::SESSION, hook_event.session_id.as_deref());
    attributes.optional_text(names::USER_ID, hook_event.user_id.as_deref());
    attributes.text(names::EVENT_NAME, hook_event.event.as_ref());
    attributes.text(names::NATIVE_EVENT, hook_event.native_event.as_ref());
    let kind = serde_json::to_value(event.kind).unwrap_or_default();
    attributes.optional_text(names::EVENT_KIND, kind.as_str());
    let native = data.native_tool_name.as_ref().or(data.tool_name.as_ref());
    attributes.optional_text(names::TOOL_NAME, native.map(AsRef::as_ref));
    attributes.optional_text(names::CANONICAL_TOOL, data.tool_name.as_deref());
    attributes.optional_text(names::TOOL_CALL_ID, data.tool_call_id.as_deref());
    add_decision(&mut attributes, event);
    if event.response.updated_input.is_some() {
        attributes.flag(names::REWRITTEN);
    }
    let lost = event.lost.iter().map(|loss| loss.field.to_string());
    attributes.list(names::LOST, lost.collect());
    let warnings = event.warnings.iter();
    attributes.list(
        names::WARNINGS,
        warnings.map(|text| shortened(text).into_owned()).collect(),
    );
    if content.has_tools() {
        for (name, value) in [
            (names::TOOL_ARGUMENTS, data.tool_input),
            (names::TOOL_RESULT, data.tool_output),
        ] {
            attributes.text(name, value.map(content_text).unwrap_or_default());
        }
    }
    if content.has_prompts() {
        for (name, value) in [
            (names::OI_INPUT, data.prompt),
            (names::OI_OUTPUT, data.last_message),
        ] {
            attributes.text(name, value.map(content_text).unwrap_or_default());
        }
    }
    attributes
}
