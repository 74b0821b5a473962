//! An MCP tool's name does not tell itself from a built-in one, and deletions
//! are a list of bare paths.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::{Map, Value, json};

use crate::Quirks;

pub struct Auggie;

pub static QUIRKS: Auggie = Auggie;

const REMOVE: &str = "remove-files";
const PATHS: &str = "file_paths";

impl Quirks for Auggie {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        let name = payload.get("tool_name").and_then(Value::as_str);
        if let Some(name) = name {
            event.data.shift_remove(field::MCP);
            let is_mcp = payload.get("is_mcp_tool") == Some(&Value::Bool(true));
            // Tools have underscores more often than servers do.
            if let Some((tool, server)) = name.rsplit_once('_').filter(|_| is_mcp) {
                event
                    .data
                    .insert(field::MCP.into(), json!({"server": server, "tool": tool}));
            }
        }
        if event.native_event == "PostToolUse" {
            let failed = payload
                .get("tool_error")
                .is_some_and(|error| !error.is_null());
            let status = if failed { "error" } else { "success" };
            event.data.insert(field::STATUS.into(), json!(status));
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "auggie" {
            return;
        }
        if let Value::Object(payload) = payload
            && payload.contains_key("tool_name")
        {
            payload
                .entry("tool_output")
                .or_insert_with(|| json!("[undefined]"));
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
        let files: Vec<Value> = paths
            .iter()
            .map(|path| json!({"path": path, "operation": "delete"}))
            .collect();
        out.insert("files".into(), Value::Array(files));
        for (key, value) in input.as_object()? {
            if key != PATHS {
                out.insert(key.clone(), value.clone());
            }
        }
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
