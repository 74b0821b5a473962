//! The JSON Schemas, as text.
//!
//! They reject what [`crate::validate`] reports as an error, except for dates
//! that do not exist, which a schema cannot express.

use serde_json::Value;

macro_rules! schema_files {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../schemas/", $name, ".schema.json")))),+]
    };
}

/// Name and text; the envelope first.
const SCHEMAS: &[(&str, &str)] = schema_files![
    "envelope",
    "session-start",
    "session-end",
    "prompt-submit",
    "tool-start",
    "tool-end",
    "file-write",
    "discovery"
];

/// A schema by name: `envelope`, `discovery`, or an event type for the schema
/// of its `data`, written `session-end` or `session.end`.
///
/// `envelope` refers to the schemas of `data` by their URNs; [`bundle`] is one
/// self-contained document.
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

/// The names that [`schema`] accepts.
pub fn schema_names() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(name, _)| *name)
}

/// The schema of the envelope, with all others under `$defs`: those of `data`,
/// and that of discovery files as `#/$defs/discovery`.
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
