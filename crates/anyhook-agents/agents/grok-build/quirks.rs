//! Every field of a payload comes in two spellings, Grok's and Claude Code's.

use anyhook_model::HookEvent;
use anyhook_model::event::NATIVE;
use serde_json::{Value, json};

use crate::Quirks;
use crate::quirks::snake_case;

pub(super) struct GrokQuirks;

pub(super) static QUIRKS: GrokQuirks = GrokQuirks;

const ID: &str = "grok-build";

/// Claude Code's spelling and Grok's.
const TWIN_FIELDS: [(&str, &str); 8] = [
    ("session_id", "sessionId"),
    ("transcript_path", "transcriptPath"),
    ("permission_mode", "permissionMode"),
    ("tool_name", "toolName"),
    ("tool_use_id", "toolUseId"),
    ("tool_input", "toolInput"),
    ("tool_response", "toolResult"),
    ("duration_ms", "durationMs"),
];

impl Quirks for GrokQuirks {
    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == ID && event.metadata.contains_key(NATIVE) {
            return;
        }
        let Value::Object(payload) = payload else {
            return;
        };
        for (own, twin) in TWIN_FIELDS {
            if let Some(value) = payload.get(own).cloned() {
                payload.insert(twin.to_owned(), value);
            }
        }
        if let Some(name) = payload.get("hook_event_name").and_then(Value::as_str) {
            let name = snake_case(name);
            payload.insert("hookEventName".to_owned(), json!(name));
        }
        if let Some(folder) = payload.get("cwd").and_then(Value::as_str) {
            let root = format!("{}/", folder.trim_end_matches('/'));
            payload.insert("workspaceRoot".to_owned(), json!(root));
        }
    }
}
