//! `pre_write_code` and `post_write_code` have writes and edits in one shape.

use anyhook_model::HookEvent;
use anyhook_model::event::NATIVE;
use serde_json::{Value, json};

use crate::Quirks;
use crate::quirks::{decode_file_edits, encode_file_edits};

pub(super) struct WindsurfQuirks;

pub(super) static QUIRKS: WindsurfQuirks = WindsurfQuirks;

impl Quirks for WindsurfQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if !event.native_event.ends_with("_write_code") {
            return;
        }
        let info = payload.get("tool_info").cloned().unwrap_or_default();
        decode_file_edits(&info, event);
        event.metadata.entry(NATIVE).or_insert_with(|| json!({}));
        if let Some(Value::Object(native)) = event.metadata.get_mut(NATIVE) {
            native.insert("tool_info".into(), info);
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let name = payload.get("agent_action_name").and_then(Value::as_str);
        let is_write = name.is_some_and(|name| name.ends_with("_write_code"));
        if is_write
            && event.source != "windsurf"
            && let Value::Object(payload) = payload
        {
            payload.insert("tool_info".into(), encode_file_edits(event));
        }
    }
}
