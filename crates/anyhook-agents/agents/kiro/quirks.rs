//! Each subagent is a tool with a name of its own.

use serde_json::{Map, Value, json};

use crate::Quirks;

pub(super) struct KiroQuirks;

pub(super) static QUIRKS: KiroQuirks = KiroQuirks;

const PREFIX: &str = "subagent_";

/// Canonical key and native key.
const KEYS: [(&str, &str); 2] = [("prompt", "prompt"), ("description", "explanation")];

impl Quirks for KiroQuirks {
    fn decode_tool(&self, native: &str, input: &Value) -> Option<(String, Map<String, Value>)> {
        let agent = native.strip_prefix(PREFIX)?;
        let mut out = Map::new();
        out.insert("type".into(), json!(agent));
        for (key, value) in input.as_object()? {
            let canonical = KEYS.iter().find(|(_, native)| native == key);
            let name = canonical.map_or(key.as_str(), |(canonical, _)| canonical);
            out.insert(name.to_owned(), value.clone());
        }
        Some(("agent".to_owned(), out))
    }

    fn encode_tool(&self, native: &str, input: &Map<String, Value>) -> Option<Map<String, Value>> {
        native.strip_prefix(PREFIX)?;
        let mut out = Map::new();
        for (key, value) in input.iter().filter(|(key, _)| *key != "type") {
            let place = KEYS.iter().find(|(canonical, _)| canonical == key);
            let name = place.map_or(key.as_str(), |(_, native)| native);
            out.insert(name.to_owned(), value.clone());
        }
        Some(out)
    }
}
