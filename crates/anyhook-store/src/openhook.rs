//! OpenHook envelopes as records.
//!
//! Reads both drafts of version 0.1 (`cwd`, or `context` as a URI) and keeps the
//! whole envelope; of other versions, the fields that have the same names.

use ::openhook::{Timestamp, check_version};
use anyhook_model::HookEvent;
use anyhook_model::{Record, RecordKind, record::RECORD_VERSION};
use serde_json::{Map, Value};

/// The field that makes an object an envelope.
pub const MARKER: &str = "openhook";

/// A record of this envelope, or what is wrong with it.
pub fn envelope_record(envelope: &Map<String, Value>) -> std::result::Result<Record, String> {
    let text = |key: &str| match envelope.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(_) => Err(format!("`{key}` must be a text that is not empty")),
        None => Err(format!("`{key}` is missing")),
    };
    let version_warning = check_version(&text(MARKER)?).map(|finding| finding.message);
    let native = text("type")?;
    let time = text("time")?;
    let instant = time.parse::<Timestamp>().map_err(|error| {
        format!("`time` is `{time}`: {error}; it must be a date and time with its zone, as 2026-02-23T10:15:30.123Z")
    })?;
    // The store reads only the common forms of ISO 8601.
    let time = match crate::row::parse_micros(&time) {
        Some(_) => time,
        None => instant.to_string(),
    };
    let data = match envelope.get("data") {
        Some(Value::Object(data)) => data.clone(),
        None => Map::new(),
        Some(_) => return Err("`data` must be an object".to_owned()),
    };
    let mut metadata = Map::new();
    metadata.insert(
        anyhook_model::event::NATIVE.to_owned(),
        Value::Object(envelope.clone()),
    );
    let agent = text("source")?;
    Ok(Record {
        v: RECORD_VERSION,
        id: text("id")?,
        time: time.clone(),
        kind: RecordKind::Event,
        agent: agent.clone(),
        event: HookEvent {
            event: canonical_event(&native, &data),
            source: agent,
            native_event: native,
            session_id: Some(text("session_id")?),
            timestamp: Some(time),
            cwd: working_directory(envelope),
            metadata,
            data,
            ..HookEvent::default()
        },
        warnings: version_warning.into_iter().collect(),
        ..Record::default()
    })
}

fn canonical_event(native: &str, data: &Map<String, Value>) -> String {
    let operation = data.get("operation").and_then(Value::as_str);
    match (native, operation) {
        ("session.start", _) => "session_start",
        ("session.end", _) => "session_end",
        ("prompt.submit", _) => "before_prompt",
        ("tool.start", _) => "before_tool_execute",
        ("tool.end", _) => "after_tool_execute",
        ("file.write", Some("create")) => "file_created",
        ("file.write", Some("delete")) => "file_deleted",
        ("file.write", _) => "file_changed",
        (other, _) => other,
    }
    .to_owned()
}

fn working_directory(envelope: &Map<String, Value>) -> Option<String> {
    let text = |key| envelope.get(key).and_then(Value::as_str);
    if let Some(cwd) = text("cwd") {
        return Some(cwd.to_owned());
    }
    let path = text("context")?.strip_prefix("file://")?;
    Some(anyhook_util::percent::decode_lossy(
        path.strip_prefix("localhost").unwrap_or(path),
    ))
}
