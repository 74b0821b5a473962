//! The name of an MCP tool looks like that of a built-in one, and deletions are a
//! list of paths.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::{Map, Value, json};

use crate::Quirks;
use crate::quirks::{set_mcp, set_status};

pub(super) struct AuggieQuirks;

pub(super) static QUIRKS: AuggieQuirks = AuggieQuirks;

const REMOVE: &str = "remove-files";
const PATHS: &str = "file_paths";

impl Quirks for AuggieQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        let name = payload.get("tool_name").and_then(Value::as_str);
        if let Some(name) = name {
            event.data.shift_remove(field::MCP);
            let is_mcp = payload.get("is_mcp_tool") == Some(&Value::Bool(true));
            // Tools have underscores more often than servers do.
            if let Some((tool, server)) = name.rsplit_once('_').filter(|_| is_mcp) {
                set_mcp(event, server, tool);
            }
        }
        if event.native_event == "PostToolUse" {
            let error = payload.get("tool_error");
            set_status(event, error.is_none_or(Value::is_null));
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "auggie" {
            return;
        }
        if let Value::Object(payload) = payload
            && payload.contains_key("tool_name")
        {
            let output = payload.entry("tool_output");
            output.or_insert_with(|| json!("[undefined]"));
            payload.entry("tool_error").or_insert(Value::Null);
            payload.insert("is_mcp_tool".into(), json!(event.mcp().is_some()));
        }
    }

    fn decode_tool(&self, native: &str, input: &Value) -> Option<(String, Map<String, Value>)> {
        let paths = input.get(PATHS).and_then(Value::as_array)?;
        if native != REMOVE {
            return None;
        }
        let mut out = Map::new();
        if let [path] = paths.as_slice() {
            out.insert("path".into(), path.clone());
        }
        let files = paths.iter();
        let files = files.map(|path| json!({"path": path, "operation": "delete"}));
        out.insert("files".into(), files.collect());
        let others = input.as_object()?.iter().filter(|(key, _)| *key != PATHS);
        out.extend(others.map(|(key, value)| (key.clone(), value.clone())));
        Some(("file_edit".to_owned(), out))
    }

    fn encode_tool(&self, native: &str, input: &Map<String, Value>) -> Option<Map<String, Value>> {
        if native != REMOVE {
            return None;
        }
        let mut out = input.clone();
        out.shift_remove("path");
        let paths = match out.shift_remove("files") {
            Some(Value::Array(files)) => files
                .iter()
                .filter_map(|file| file.get("path").cloned())
                .collect(),
            // A rewrite that names one path has dropped the list.
            _ => input.get("path").cloned().into_iter().collect(),
        };
        out.insert(PATHS.into(), Value::Array(paths));
        Some(out)
    }
}
