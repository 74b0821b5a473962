//! Events of the todo list have two phases; only the first can be denied.

use anyhook_model::HookEvent;
use serde_json::{Value, json};

use crate::Quirks;

pub(super) struct QwenCodeQuirks;

pub(super) static QUIRKS: QwenCodeQuirks = QwenCodeQuirks;

impl Quirks for QwenCodeQuirks {
    /// A script that is asked by another agent is asked before the fact.
    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let todo = matches!(
            payload.get("hook_event_name").and_then(Value::as_str),
            Some("TodoCreated" | "TodoCompleted")
        );
        if todo
            && event.source != "qwen-code"
            && let Value::Object(payload) = payload
        {
            payload.insert("phase".into(), json!("validation"));
        }
    }
}
