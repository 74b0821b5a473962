//! A journal line as an exporter sees it.
//!
//! Large values (inputs, outputs) stay text inside the line, so that an export of names and
//! numbers costs neither time nor memory for them. Every value of an agent may have any
//! type: a surprising one counts as absent and never costs the line.

use std::borrow::Cow;

use anyhook_model::{Decision, RecordKind, RunOutcome, WithoutEffect};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// One line of the journal.
#[derive(Debug, Deserialize)]
pub struct RecordedEvent<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    #[serde(default)]
    pub kind: RecordKind,
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    #[serde(borrow)]
    pub event: HookEventView<'a>,
    #[serde(default)]
    pub decision: Option<Decision>,
    #[serde(default, borrow)]
    pub response: ResponseView<'a>,
    #[serde(default, borrow)]
    pub hooks: Vec<HookRunView<'a>>,
    #[serde(default, borrow)]
    pub lost: Vec<LossView<'a>>,
    #[serde(default, borrow)]
    pub warnings: Vec<Cow<'a, str>>,
    #[serde(default)]
    pub duration_ms: f64,
    /// For the end of a detached hook: the record that started it.
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub launched_in: Option<Cow<'a, str>>,
}

/// The event of a record.
#[derive(Debug, Default, Deserialize)]
pub struct HookEventView<'a> {
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    #[serde(default, borrow)]
    pub native_event: Cow<'a, str>,
    #[serde(default, borrow)]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub machine_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub user_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub project_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub workflow_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub data: EventDataView<'a>,
    #[serde(default, borrow)]
    pub metadata: Option<&'a RawValue>,
}

/// The fields of an event that mean the same for every agent; see
/// [`anyhook_model::event::field`].
#[derive(Debug, Default, Deserialize)]
pub struct EventDataView<'a> {
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub tool_name: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub native_tool_name: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub tool_call_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub tool_input: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub tool_output: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub status: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub prompt: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub last_message: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub transcript_path: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub reason: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub mcp: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub agent_type: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "any_text")]
    pub permission_mode: Option<Cow<'a, str>>,
}

/// The parts of the merged response that an export shows.
#[derive(Debug, Default, Deserialize)]
pub struct ResponseView<'a> {
    #[serde(default, borrow)]
    pub reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub updated_input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub struct HookRunView<'a> {
    #[serde(borrow)]
    pub hook: Cow<'a, str>,
    #[serde(default, borrow)]
    pub manifest: Cow<'a, str>,
    #[serde(default)]
    pub outcome: RunOutcome,
    #[serde(default)]
    pub exit: Option<i32>,
    #[serde(default)]
    pub duration_ms: f64,
    #[serde(default, borrow)]
    pub message: Option<Cow<'a, str>>,
    #[serde(default)]
    pub without_effect: Option<WithoutEffect>,
}

#[derive(Debug, Deserialize)]
pub struct LossView<'a> {
    #[serde(borrow)]
    pub field: Cow<'a, str>,
}

impl<'a> RecordedEvent<'a> {
    /// `None` if the line is not a record.
    pub fn parse(line: &'a str) -> Option<Self> {
        serde_json::from_str(line)
            .ok()
            .filter(|event: &Self| !event.id.is_empty())
    }

    /// Whether the event is not older than a time in microseconds since 1970. An event
    /// without a readable time is exported rather than lost.
    pub fn is_since(&self, since_us: Option<i64>) -> bool {
        let time = anyhook_store::parse_micros(&self.time);
        since_us.is_none_or(|since| time.is_none_or(|time| time >= since))
    }

    /// Nanoseconds since 1970 at which the answer was ready.
    pub(crate) fn end_nanos(&self) -> Option<u64> {
        let micros = anyhook_store::parse_micros(&self.time)?;
        u64::try_from(micros).ok()?.checked_mul(1000)
    }

    /// Nanoseconds since 1970 at which the agent called.
    pub(crate) fn start_nanos(&self) -> Option<u64> {
        let nanos = duration_nanos(self.duration_ms);
        Some(self.end_nanos()?.saturating_sub(nanos))
    }
}

/// A duration of a record in nanoseconds; a nonsensical one is none.
pub(crate) fn duration_nanos(milliseconds: f64) -> u64 {
    const MAX_MILLISECONDS: f64 = 86_400_000.0;
    if !(0.0..=MAX_MILLISECONDS).contains(&milliseconds) {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    let nanos = (milliseconds * 1_000_000.0) as u64;
    nanos
}

/// A string, a number as text, or nothing.
fn any_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    let raw = Option::<&'a RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(raw_text))
}

/// The text of a JSON string or number.
pub(crate) fn raw_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    if text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return Some(text.into());
    }
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(inner.into());
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_surprising_type_costs_the_value_and_not_the_line() {
        let line = r#"{"v":1,"id":"a","time":"2026-01-01T00:00:00Z","kind":"event","agent":"x",
            "event":{"event":"before_tool_execute","source":"x","data":{"tool_name":"a\nb",
            "tool_call_id":7,"model":{"id":"m"},"agent_id":null,"tool_input":[1]}},
            "duration_ms":1.5,"later":true}"#;
        let event = RecordedEvent::parse(line).unwrap();
        let data = &event.event.data;
        assert_eq!(data.tool_name.as_deref(), Some("a\nb"));
        assert_eq!(data.tool_call_id.as_deref(), Some("7"));
        assert_eq!(data.model, None);
        assert_eq!(data.tool_input.map(RawValue::get), Some("[1]"));
        assert_eq!(
            event.end_nanos().unwrap() - event.start_nanos().unwrap(),
            1_500_000
        );
    }

    #[test]
    fn nonsensical_durations_are_none() {
        for milliseconds in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
            assert_eq!(duration_nanos(milliseconds), 0);
        }
    }
}
