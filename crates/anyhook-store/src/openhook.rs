//! OpenHook envelopes as records.
//!
//! Reads both texts of version 0.1 (`cwd`, or `context` as a URI) and keeps the
//! whole envelope; other versions are read as far as they go.

use anyhook_model::HookEvent;
use anyhook_model::{Record, RecordKind, record::RECORD_VERSION};
use serde_json::{Map, Value};

/// The field that makes an object an envelope.
pub const MARKER: &str = "openhook";

/// A record of this envelope, or what keeps it from being one.
pub fn record(envelope: &Map<String, Value>) -> std::result::Result<Record, String> {
    let text = |key: &str| match envelope.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(_) => Err(format!("`{key}` must be a text that is not empty")),
        None => Err(format!("`{key}` is missing")),
    };
    text(MARKER)?;
    let native = text("type")?;
    let time = text("time")?;
    if crate::row::micros(&time).is_none() {
        return Err(format!(
            "`time` is `{time}`; it must be a date and time with its zone, as 2026-02-23T10:15:30.123Z"
        ));
    }
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
            event: canonical(&native, &data),
            source: agent,
            native_event: native,
            session_id: Some(text("session_id")?),
            timestamp: Some(time),
            cwd: directory(envelope),
            metadata,
            data,
            ..HookEvent::default()
        },
        ..Record::default()
    })
}

fn canonical(native: &str, data: &Map<String, Value>) -> String {
    let operation = data.get("operation").and_then(Value::as_str);
    match (native, operation) {
        ("session.start", _) => "session_start",
        ("session.end", _) => "session_end",
        ("prompt.submit", _) => "before_prompt",
        ("tool.start", _) => "before_tool_execute",
        ("tool.end", _) => "after_tool_execute",
        ("file.write", Some("create")) => "file_created",
        ("file.write", Some("delete")) => "file_deleted",
        ("file.write", _) => "file_saved",
        (other, _) => other,
    }
    .to_owned()
}

fn directory(envelope: &Map<String, Value>) -> Option<String> {
    let text = |key| envelope.get(key).and_then(Value::as_str);
    if let Some(cwd) = text("cwd") {
        return Some(cwd.to_owned());
    }
    let path = text("context")?.strip_prefix("file://")?;
    Some(percent_decoded(
        path.strip_prefix("localhost").unwrap_or(path),
    ))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high * 16 + low);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
