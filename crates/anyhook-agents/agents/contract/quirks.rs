//! Events that are about no tool stand in the tool's place.

use anyhook_model::HookEvent;
use serde_json::{Value, json};

use crate::Quirks;

pub struct Contract;

pub static QUIRKS: Contract = Contract;

/// Canonical events and the contract's names for them in payloads.
const NAMES: [(&str, &str); 5] = [
    ("session_start", "SessionStart"),
    ("before_prompt", "beforeSubmitPrompt"),
    ("agent_stop", "Stop"),
    ("before_compact", "PreCompact"),
    ("session_end", "SessionEnd"),
];

impl Quirks for Contract {
    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let Value::Object(payload) = payload else {
            return;
        };
        if let Some((_, name)) = NAMES.iter().find(|(one, _)| *one == event.event) {
            payload.insert("tool_name".into(), json!(name));
        }
        payload.entry("tool_input").or_insert_with(|| json!({}));
    }
}
