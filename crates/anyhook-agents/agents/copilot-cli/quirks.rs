//! Two dialects in one agent: camelCase payloads do not name their event,
//! permission requests have a separate form, and PascalCase payloads show
//! Claude's tool names.

use anyhook_model::HookEvent;
use serde_json::{Map, Value, json};

use crate::Quirks;
use crate::patch;
use crate::payload::TOOL_KINDS;
use crate::quirks::set_mcp;

pub(super) struct CopilotCliQuirks;

pub(super) static QUIRKS: CopilotCliQuirks = CopilotCliQuirks;

/// Runtime name → the name that the PascalCase dialect shows.
const SHOWN_TOOL_NAMES: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("view", "Read"),
    ("create", "Write"),
    ("edit", "Edit"),
    ("grep", "Grep"),
    ("glob", "Glob"),
    ("web_fetch", "WebFetch"),
    ("web_search", "WebSearch"),
    ("task", "Agent"),
];

const PERMISSION: &str = "permissionRequest";

impl Quirks for CopilotCliQuirks {
    /// Of the camelCase events only the notification is named, in the other
    /// dialect's spelling.
    fn event_name(&self, payload: &Value) -> Option<String> {
        let named = payload.get("hook_event_name").and_then(Value::as_str);
        (named == Some("Notification") && payload.get("sessionId").is_some())
            .then(|| "notification".to_owned())
    }

    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if payload.get("hookName").and_then(Value::as_str) != Some(PERMISSION) {
            return;
        }
        let tool = payload.get("toolName").and_then(Value::as_str);
        if let Some((server, tool)) = tool.and_then(|name| name.split_once('/')) {
            set_mcp(event, server, tool);
        }
        if tool == Some("edit") {
            let kinds = json!(["file_edit", "file_write"]);
            event.data.insert(TOOL_KINDS.into(), kinds);
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let Value::Object(payload) = payload else {
            return;
        };
        let named = payload.get("hook_event_name").and_then(Value::as_str);
        let named = named.unwrap_or_default().to_owned();
        if named.starts_with(|first: char| first.is_ascii_lowercase()) {
            payload.shift_remove("hook_event_name");
        }
        if named == PERMISSION {
            payload.insert("hookName".into(), json!(PERMISSION));
            if let Some((server, tool)) = event.mcp() {
                payload.insert("toolName".into(), json!(format!("{server}/{tool}")));
            }
        }
        if event.source == "copilot-cli" {
            return;
        }
        let tool = payload.get("tool_name").and_then(Value::as_str);
        if let Some((_, shown)) = SHOWN_TOOL_NAMES
            .iter()
            .find(|(runtime, _)| Some(*runtime) == tool)
        {
            payload.insert("tool_name".into(), json!(shown));
        }
    }

    fn decode_tool(&self, native: &str, input: &Value) -> Option<(String, Map<String, Value>)> {
        let mut out = Map::new();
        match native {
            // A permission request has every write as a diff of one file.
            "edit" => {
                out.insert("path".into(), input.get("file_path")?.clone());
                out.insert("diff".into(), input.get("diff")?.clone());
            }
            "apply_patch" => {
                let text = patch_text(input)?;
                out.extend(input.as_object().cloned().unwrap_or_default());
                out.insert("patch".into(), json!(text));
                patch::insert_files(text, &mut out);
            }
            _ => return None,
        }
        Some(("file_edit".into(), out))
    }

    fn encode_tool(&self, native: &str, input: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut out = Map::new();
        match native {
            "edit" => {
                out.insert("file_path".into(), input.get("path")?.clone());
                out.insert("diff".into(), input.get("diff")?.clone());
            }
            "apply_patch" => {
                // Its own key still holds the patch; the others were added.
                let patch = input.get("patch")?;
                let mut values = input.iter();
                let own = values.any(|(key, value)| key != "patch" && value == patch);
                out.extend(input.clone());
                for added in ["files", "path", "edits", "content"] {
                    out.shift_remove(added);
                }
                if own {
                    out.shift_remove("patch");
                }
            }
            _ => return None,
        }
        Some(out)
    }
}

/// The patch, whether it is the whole input or the value of some key.
fn patch_text(input: &Value) -> Option<&str> {
    let is_patch = |text: &&str| text.trim_start().starts_with("*** Begin Patch");
    match input {
        Value::Object(map) => map.values().filter_map(Value::as_str).find(is_patch),
        other => other.as_str().filter(is_patch),
    }
}
