//! `post_tool` says in a word of its own how the call ended.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use serde_json::{Value, json};

use crate::Quirks;
use crate::quirks::set_status;

pub(super) struct VibeQuirks;

pub(super) static QUIRKS: VibeQuirks = VibeQuirks;

const POST_TOOL: &str = "post_tool";
const SUCCESS: &str = "success";

impl Quirks for VibeQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if event.native_event == POST_TOOL {
            let status = payload.get("tool_status").and_then(Value::as_str);
            set_status(event, status.is_none_or(|status| status == SUCCESS));
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "mistral-vibe" {
            return;
        }
        let Value::Object(payload) = payload else {
            return;
        };
        // The client sends null for a session that no other one started.
        payload.insert("parent_session_id".to_owned(), Value::Null);
        if payload.get("hook_event_name") != Some(&json!(POST_TOOL)) {
            return;
        }
        let is_error = event.text(field::STATUS) == Some("error");
        let status = if is_error { "failure" } else { SUCCESS };
        payload.insert("tool_status".to_owned(), json!(status));
        let text = match payload.get("tool_output") {
            Some(Value::String(text)) => text.clone(),
            Some(output) => output.to_string(),
            None => String::new(),
        };
        payload.insert("tool_output_text".to_owned(), json!(text));
        payload.entry("tool_error").or_insert(Value::Null);
        payload.entry("duration_ms").or_insert_with(|| json!(0));
    }
}
