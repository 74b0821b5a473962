//! `pre_write_code` and `post_write_code` tell writes and edits in one shape.

use anyhook_model::HookEvent;
use anyhook_model::event::NATIVE;
use serde_json::{Map, Value, json};

use crate::Quirks;

pub struct Windsurf;

pub static QUIRKS: Windsurf = Windsurf;

impl Quirks for Windsurf {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if !event.native_event.ends_with("_write_code") {
            return;
        }
        let info = payload.get("tool_info").cloned().unwrap_or_default();
        let edits: Vec<Value> = info
            .get("edits")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|edit| json!({"old": edit.get("old_string"), "new": edit.get("new_string")}))
            .collect();
        let path = info.get("file_path").cloned().unwrap_or_default();
        // An edit of nothing is the making of a file.
        let created = matches!(edits.as_slice(), [one] if one.get("old") == Some(&json!("")));
        let mut input = Map::new();
        input.insert("path".into(), path);
        if created {
            let content = edits.first().and_then(|edit| edit.get("new")).cloned().unwrap_or_default();
            input.insert("content".into(), content);
        } else {
            input.insert("edits".into(), Value::Array(edits));
        }
        let name = if created { "file_write" } else { "file_edit" };
        event.data.insert("tool_name".into(), json!(name));
        event.data.insert(crate::payload::TOOL_KINDS.into(), json!(["file_write", "file_edit"]));
        event.data.insert("tool_input".into(), Value::Object(input));
        event.metadata.entry(NATIVE).or_insert_with(|| json!({}));
        if let Some(Value::Object(native)) = event.metadata.get_mut(NATIVE) {
            native.insert("tool_info".into(), info);
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let writes = payload.get("agent_action_name").and_then(Value::as_str).is_some_and(|name| name.ends_with("_write_code"));
        if !writes || event.source == "windsurf" {
            return;
        }
        let input = event.tool_input().cloned().unwrap_or_default();
        let edits = match input.get("content") {
            Some(content) => vec![json!({"old_string": "", "new_string": content})],
            None => input
                .get("edits")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|edit| json!({"old_string": edit.get("old"), "new_string": edit.get("new")}))
                .collect(),
        };
        if let Value::Object(payload) = payload {
            payload.insert("tool_info".into(), json!({"file_path": input.get("path"), "edits": edits}));
        }
    }
}
