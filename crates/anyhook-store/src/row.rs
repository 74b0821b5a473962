//! A record as the store keeps it: the journal line, and the columns that queries use.
//!
//! Owns the way from [`Record`] to columns. Touches no database.

use anyhook_model::event::field;
use anyhook_model::{HookRun, Record, registry};
use jiff::Timestamp;
use serde_json::Value;

use crate::error::{Result, StoreError};
use crate::query::{EventDetail, EventSummary};

const MAX_ID_BYTES: usize = 256;
const MAX_NAME_BYTES: usize = 512;
const MAX_DETAIL_BYTES: usize = 400;
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// One event, ready to be inserted.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Its `seq` is 0.
    pub summary: EventSummary,
    /// Lowercase, for searching.
    pub text: String,
    /// The record as JSON.
    pub body: String,
    pub runs: Vec<RunRow>,
}

/// One hook of an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRow {
    pub hook: String,
    /// Identifies what the hook is, wherever its manifest is; the manifest's path if the
    /// record does not say.
    pub content: String,
    pub manifest: String,
    pub outcome: String,
    pub duration_ms: f64,
}

impl EventRow {
    /// Parses one journal line, keeping it as it is. `None` if it is not a record.
    pub fn from_line(line: &str) -> Option<Self> {
        let record: Record = serde_json::from_str(line).ok()?;
        Self::new(&record, line.to_owned())
    }

    pub fn from_record(record: &Record) -> Option<Self> {
        Self::new(record, serde_json::to_string(record).ok()?)
    }

    /// An event as a store has it: its number and time count, whatever the record says.
    pub(crate) fn from_stored(seq: i64, time_us: i64, body: &str) -> Result<Self> {
        let mut row = Self::from_line(body).ok_or(StoreError::Shape("a record"))?;
        row.summary.seq = seq;
        if row.summary.time_us != time_us {
            row.summary.time_us = time_us;
            row.summary.time = rfc3339_micros(time_us);
        }
        Ok(row)
    }

    pub fn into_detail(self) -> Result<EventDetail> {
        let record = serde_json::from_str(&self.body);
        Ok(EventDetail {
            record: record.map_err(|_| StoreError::Shape("a record as JSON"))?,
            summary: self.summary,
        })
    }

    fn new(record: &Record, body: String) -> Option<Self> {
        if record.id.is_empty() || record.id.len() > MAX_ID_BYTES || record.id.contains('\0') {
            return None;
        }
        let event = &record.event;
        let name = |text: &str| cleaned(text, MAX_NAME_BYTES);
        let optional = |text: Option<&str>| {
            text.filter(|text| !text.is_empty())
                .map(|text| cleaned(text, MAX_NAME_BYTES))
        };
        let mut text = String::new();
        collect_search_text(record, &mut text);
        let time_us =
            parse_micros(&record.time).unwrap_or_else(|| Timestamp::now().as_microsecond());
        let reason = record.response.reason.as_deref();
        let summary = EventSummary {
            seq: 0,
            id: record.id.clone(),
            time: rfc3339_micros(time_us),
            time_us,
            kind: serialized_name(&record.kind),
            agent: name(&record.agent),
            event: name(&event.event),
            unified: name(&unified_event_type(&event.event, &event.native_event)),
            native_event: optional(Some(&event.native_event)),
            session_id: optional(event.session_id.as_deref()),
            machine: optional(event.machine_id.as_deref()),
            user_id: optional(event.user_id.as_deref()),
            project_id: optional(event.project_id.as_deref()),
            workflow_id: optional(event.workflow_id.as_deref()),
            cwd: optional(event.cwd.as_deref()),
            tool: optional(event.tool_name()),
            detail: event_detail(record).map(|text| cleaned(&text, MAX_DETAIL_BYTES)),
            decision: record.decision.map(|decision| decision.as_str().to_owned()),
            reason: reason.map(|text| cleaned(text, MAX_DETAIL_BYTES)),
            duration_ms: finite_or_zero(record.duration_ms),
            hooks: saturating_i64(record.hooks.len()),
            failed: saturating_i64(record.hooks.iter().filter(|run| run.has_failed()).count()),
        };
        Some(Self {
            summary,
            text,
            body,
            runs: record
                .hooks
                .iter()
                .map(|run| RunRow {
                    hook: name(&run.hook),
                    content: name(run.content.as_deref().unwrap_or(&run.manifest)),
                    manifest: name(&run.manifest),
                    outcome: outcome_name(run),
                    duration_ms: finite_or_zero(run.duration_ms),
                })
                .collect(),
        })
    }
}

impl RunRow {
    /// Hooks that a policy refused or an earlier deny skipped never ran: they have no latency.
    pub(crate) fn has_run(&self) -> bool {
        !matches!(self.outcome.as_str(), "skipped" | "refused" | "started")
    }

    pub(crate) fn is_denial(&self) -> bool {
        self.outcome == "deny"
    }

    pub(crate) fn is_trouble(&self) -> bool {
        matches!(self.outcome.as_str(), "error" | "timeout" | "warn")
    }
}

/// An outcome without effect does not count as that outcome: `would_deny`.
fn outcome_name(run: &HookRun) -> String {
    let outcome = serialized_name(&run.outcome);
    match run.without_effect {
        Some(_) => format!("would_{outcome}"),
        None => outcome,
    }
}

pub(crate) fn saturating_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// RFC 3339 to microseconds since 1970.
pub fn parse_micros(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_microsecond)
}

/// A date and time, or an age (`90s`, `15m`, `2h`, `7d`, `4w`), in microseconds since 1970.
pub fn parse_time_or_age(text: &str) -> Option<i64> {
    if let Some(time) = parse_micros(text) {
        return Some(time);
    }
    let back = parse_duration_seconds(text)?.checked_mul(1_000_000)?;
    Timestamp::now().as_microsecond().checked_sub(back)
}

/// The seconds of a duration: `90s`, `15m`, `2h`, `7d`, `4w`.
pub fn parse_duration_seconds(text: &str) -> Option<i64> {
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

pub fn rfc3339_micros(time_us: i64) -> String {
    Timestamp::from_microsecond(time_us)
        .map(|time| time.to_string())
        .unwrap_or_default()
}

/// An event's type in the unified event model: `BEFORE_TOOL`, `SESSION_START`, ...
///
/// That model has two types for the end of a turn; the agent's own event decides. It has
/// one for the end of a tool, whether that succeeded or not.
fn unified_event_type(event: &str, native_event: &str) -> String {
    if event == "agent_stop" && matches!(native_event, "AfterAgent" | "turn/completed") {
        return "AFTER_AGENT".to_owned();
    }
    if matches!(event, "after_tool_failure" | "tool_use_failure") {
        return "AFTER_TOOL".to_owned();
    }
    registry::event(event)
        .and_then(|known| known.unified)
        .map_or_else(|| event.to_uppercase(), str::to_owned)
}

/// What a timeline shows next to the tool's name.
/// What a call is about, in full: for whoever has to decide about it.
pub fn call_text(record: &Record) -> String {
    /// Keys that say nothing about what a command does.
    const SECONDARY_KEYS: [&str; 5] = ["command", "commands", "cwd", "description", "timeout"];
    let input = record.event.tool_input();
    let command = input.and_then(|input| input.get("command")?.as_str());
    match (input, command) {
        (Some(input), Some(command))
            if input
                .keys()
                .all(|key| SECONDARY_KEYS.contains(&key.as_str())) =>
        {
            command.to_owned()
        }
        (Some(input), _) if !input.is_empty() => {
            serde_json::to_string_pretty(input).unwrap_or_default()
        }
        _ => event_detail(record).unwrap_or_default(),
    }
}

fn event_detail(record: &Record) -> Option<String> {
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

/// Lowercase text of everything in a record that a person may search for.
fn collect_search_text(record: &Record, out: &mut String) {
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
        push_search_text(part, out);
    }
    for value in event.data.values().chain(event.metadata.values()) {
        push_value_text(value, out);
    }
    for run in &record.hooks {
        push_search_text(&run.hook, out);
        push_search_text(run.message.as_deref().unwrap_or_default(), out);
    }
    for warning in &record.warnings {
        push_search_text(warning, out);
    }
}

fn push_value_text(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => push_search_text(text, out),
        Value::Number(number) => push_search_text(&number.to_string(), out),
        Value::Array(items) => items.iter().for_each(|item| push_value_text(item, out)),
        Value::Object(fields) => fields.values().for_each(|item| push_value_text(item, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn push_search_text(part: &str, out: &mut String) {
    if part.is_empty() || out.len() >= MAX_TEXT_BYTES {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let part = truncated(part, MAX_TEXT_BYTES - out.len().min(MAX_TEXT_BYTES));
    let at = out.len();
    if part.is_ascii() && !part.contains('\0') {
        out.push_str(part);
        if let Some(added) = out.get_mut(at..) {
            added.make_ascii_lowercase();
        }
    } else {
        out.push_str(&lowercase(part));
    }
}

/// Text as it is compared: lowercase, without NUL, which PostgreSQL rejects.
pub(crate) fn lowercase(text: &str) -> String {
    text.to_lowercase().replace('\0', "\u{fffd}")
}

/// At most `limit` bytes, cut at a character, without NUL.
fn cleaned(text: &str, limit: usize) -> String {
    truncated(text, limit).replace('\0', "\u{fffd}")
}

/// At most `limit` bytes, cut at a character.
pub fn truncated(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn finite_or_zero(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

fn serialized_name<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}
