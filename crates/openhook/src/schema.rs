//! The JSON Schemas, as text.
//!
//! They say what [`crate::validate`] counts as an error, except for what a
//! schema cannot say: a date that does not exist.

use serde_json::Value;

/// The name and the text; the envelope first.
const SCHEMAS: [(&str, &str); 8] = [
    ("envelope", include_str!("../schemas/envelope.schema.json")),
    (
        "session-start",
        include_str!("../schemas/session-start.schema.json"),
    ),
    (
        "session-end",
        include_str!("../schemas/session-end.schema.json"),
    ),
    (
        "prompt-submit",
        include_str!("../schemas/prompt-submit.schema.json"),
    ),
    (
        "tool-start",
        include_str!("../schemas/tool-start.schema.json"),
    ),
    ("tool-end", include_str!("../schemas/tool-end.schema.json")),
    (
        "file-write",
        include_str!("../schemas/file-write.schema.json"),
    ),
    (
        "discovery",
        include_str!("../schemas/discovery.schema.json"),
    ),
];

/// A schema by its name: `envelope`, `discovery`, or an event type's, for its
/// `data`, written `session-end` or `session.end`.
///
/// `envelope` refers to the schemas of `data` by their URNs; for one document
/// that needs no other, take [`bundle`].
///
/// ```
/// assert!(openhook::schema("tool.end").is_some_and(|text| text.contains("duration_ms")));
/// assert!(openhook::schema("nonsense").is_none());
/// ```
pub fn schema(name: &str) -> Option<&'static str> {
    let name = name.replace('.', "-");
    SCHEMAS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// What [`schema`] knows.
pub fn schema_names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name)
}

/// The schema of the envelope, with all others inside it under `$defs`: those
/// of `data`, and that of discovery files as `#/$defs/discovery`.
pub fn bundle() -> Value {
    let mut parts = SCHEMAS.iter().map(|(name, text)| {
        let schema: Value = serde_json::from_str(text).unwrap_or_default();
        (*name, schema)
    });
    let mut envelope = parts.next().map(|(_, schema)| schema).unwrap_or_default();
    let defs: serde_json::Map<String, Value> = parts
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    if let Value::Object(map) = &mut envelope {
        map.insert("$defs".to_owned(), defs.into());
    }
    envelope
}
