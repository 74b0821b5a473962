//! A record as the store keeps it: the line itself, and the columns that are asked for.
//!
//! Owns the way from [`Record`] to columns. Touches no database.

use anyhook_model::{Record, event::field};
use jiff::Timestamp;
use serde_json::Value;

use crate::query::EventSummary;

const ID_LIMIT: usize = 256;
const NAME_LIMIT: usize = 512;
const DETAIL_LIMIT: usize = 400;
const TEXT_LIMIT: usize = 64 * 1024;

/// One event, ready to be inserted.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    pub id: String,
    pub time_us: i64,
    pub kind: String,
    pub agent: String,
    pub event: String,
    pub unified: String,
    pub native_event: Option<String>,
    pub session_id: Option<String>,
    pub machine: Option<String>,
    pub cwd: Option<String>,
    pub tool: Option<String>,
    pub detail: Option<String>,
    pub decision: Option<String>,
    pub reason: Option<String>,
    pub duration_ms: f64,
    pub text: String,
    pub body: String,
    pub runs: Vec<RunRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub hook: String,
    pub manifest: String,
    pub outcome: String,
    pub duration_ms: f64,
}

impl EventRow {
    /// Parses one journal line, keeping it as it is. `None` when it is no record.
    pub fn from_line(line: &str) -> Option<Self> {
        let record: Record = serde_json::from_str(line).ok()?;
        Self::new(&record, line.to_owned())
    }

    pub fn from_record(record: &Record) -> Option<Self> {
        Self::new(record, serde_json::to_string(record).ok()?)
    }

    fn new(record: &Record, body: String) -> Option<Self> {
        if record.id.is_empty() || record.id.len() > ID_LIMIT || record.id.contains('\0') {
            return None;
        }
        let event = &record.event;
        let name = |text: &str| clean(text, NAME_LIMIT);
        let optional = |text: Option<&str>| {
            text.filter(|text| !text.is_empty())
                .map(|text| clean(text, NAME_LIMIT))
        };
        let mut text = String::new();
        collect_text(record, &mut text);
        Some(Self {
            id: record.id.clone(),
            time_us: micros(&record.time).unwrap_or_else(|| Timestamp::now().as_microsecond()),
            kind: snake(&record.kind),
            agent: name(&record.agent),
            event: name(&event.event),
            unified: name(&unified_type(&event.event, &event.native_event)),
            native_event: optional(Some(&event.native_event)),
            session_id: optional(event.session_id.as_deref()),
            machine: optional(event.machine_id.as_deref()),
            cwd: optional(event.cwd.as_deref()),
            tool: optional(event.tool_name()),
            detail: detail(record).map(|text| clean(&text, DETAIL_LIMIT)),
            decision: record.decision.map(|decision| decision.as_str().to_owned()),
            reason: record
                .response
                .reason
                .as_deref()
                .map(|text| clean(text, DETAIL_LIMIT)),
            duration_ms: finite(record.duration_ms),
            text,
            body,
            runs: record
                .hooks
                .iter()
                .map(|run| RunRow {
                    hook: name(&run.hook),
                    manifest: name(&run.manifest),
                    outcome: snake(&run.outcome),
                    duration_ms: finite(run.duration_ms),
                })
                .collect(),
        })
    }

    /// As a timeline shows it.
    pub fn summary(&self, seq: i64) -> EventSummary {
        EventSummary {
            seq,
            id: self.id.clone(),
            time: rfc3339(self.time_us),
            kind: self.kind.clone(),
            agent: self.agent.clone(),
            event: self.event.clone(),
            unified: self.unified.clone(),
            native_event: self.native_event.clone(),
            session_id: self.session_id.clone(),
            machine: self.machine.clone(),
            cwd: self.cwd.clone(),
            tool: self.tool.clone(),
            detail: self.detail.clone(),
            decision: self.decision.clone(),
            reason: self.reason.clone(),
            duration_ms: self.duration_ms,
            hooks: i64::try_from(self.runs.len()).unwrap_or(i64::MAX),
        }
    }

    /// What this row weighs, for retention by size.
    pub fn bytes(&self) -> i64 {
        const ROW: usize = 256;
        const RUN: usize = 96;
        i64::try_from(self.body.len() + self.text.len() + ROW + RUN * self.runs.len())
            .unwrap_or(i64::MAX)
    }
}

/// RFC 3339 to microseconds of the epoch.
pub fn micros(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_microsecond)
}

/// A date and time, or how long ago (`90s`, `15m`, `2h`, `7d`, `4w`), in microseconds of the epoch.
pub fn moment(text: &str) -> Option<i64> {
    if let Some(time) = micros(text) {
        return Some(time);
    }
    let back = seconds(text)?.checked_mul(1_000_000)?;
    Timestamp::now().as_microsecond().checked_sub(back)
}

/// A length of time: `90s`, `15m`, `2h`, `7d`, `4w`.
pub fn seconds(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let each = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let count: i64 = text.strip_suffix(unit)?.parse().ok()?;
    count.checked_mul(each).filter(|length| *length >= 0)
}

pub fn rfc3339(time_us: i64) -> String {
    Timestamp::from_microsecond(time_us)
        .map(|time| time.to_string())
        .unwrap_or_default()
}

/// The daemon seed's name of an event: `BEFORE_TOOL`, `SESSION_START`, ...
///
/// Its table has two names for the end of a turn, told apart by who calls.
pub fn unified_type(event: &str, native_event: &str) -> String {
    let fixed = match event {
        "before_prompt" => "BEFORE_AGENT",
        "agent_stop" if matches!(native_event, "AfterAgent" | "turn/completed") => "AFTER_AGENT",
        "agent_stop" => "STOP",
        "before_tool_execute" => "BEFORE_TOOL",
        "after_tool_execute" => "AFTER_TOOL",
        "before_compact" => "PRE_COMPACT",
        other => return other.to_uppercase(),
    };
    fixed.to_owned()
}

/// What a reader of the timeline wants to see beside the tool's name.
fn detail(record: &Record) -> Option<String> {
    let event = &record.event;
    if let Some(input) = event.tool_input() {
        for key in ["command", "path", "url", "query", "pattern", "prompt"] {
            if let Some(text) = input.get(key).and_then(Value::as_str) {
                return Some(text.to_owned());
            }
        }
        if !input.is_empty() {
            return serde_json::to_string(input).ok();
        }
    }
    [
        field::PROMPT,
        field::MESSAGE,
        field::REASON,
        field::START_SOURCE,
        field::TRIGGER,
        field::LAST_MESSAGE,
    ]
    .into_iter()
    .find_map(|key| event.text(key))
    .map(str::to_owned)
    .or_else(|| record.warnings.first().cloned())
}

/// Lower-cased text of everything in a record that a person may search for.
fn collect_text(record: &Record, out: &mut String) {
    let event = &record.event;
    for part in [
        Some(record.agent.as_str()),
        Some(event.event.as_str()),
        Some(event.native_event.as_str()),
        event.session_id.as_deref(),
        event.cwd.as_deref(),
        record.response.reason.as_deref(),
        record.response.context.as_deref(),
        record.response.system_message.as_deref(),
    ]
    .into_iter()
    .flatten()
    {
        push(part, out);
    }
    for value in event.data.values().chain(event.metadata.values()) {
        push_value(value, out);
    }
    for run in &record.hooks {
        push(&run.hook, out);
        push(run.message.as_deref().unwrap_or_default(), out);
    }
    for warning in &record.warnings {
        push(warning, out);
    }
}

fn push_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => push(text, out),
        Value::Number(number) => push(&number.to_string(), out),
        Value::Array(items) => items.iter().for_each(|item| push_value(item, out)),
        Value::Object(fields) => fields.values().for_each(|item| push_value(item, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn push(part: &str, out: &mut String) {
    if part.is_empty() || out.len() >= TEXT_LIMIT {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let part = cut(part, TEXT_LIMIT - out.len().min(TEXT_LIMIT));
    let at = out.len();
    if part.is_ascii() && !part.contains('\0') {
        out.push_str(part);
        if let Some(added) = out.get_mut(at..) {
            added.make_ascii_lowercase();
        }
    } else {
        out.push_str(&fold(part));
    }
}

/// How text is compared: lower case, no NUL (PostgreSQL refuses it).
pub fn fold(text: &str) -> String {
    text.to_lowercase().replace('\0', "\u{fffd}")
}

/// At most `limit` bytes, cut at a character, no NUL.
fn clean(text: &str, limit: usize) -> String {
    let text = cut(text, limit);
    if text.contains('\0') {
        return text.replace('\0', "\u{fffd}");
    }
    text.to_owned()
}

fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

fn snake<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}
