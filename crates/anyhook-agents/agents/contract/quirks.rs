//! An event without a tool gets its own name as `tool_name`, and an empty input.

use anyhook_model::HookEvent;
use serde_json::{Value, json};

use crate::Quirks;

pub(super) struct ContractQuirks;

pub(super) static QUIRKS: ContractQuirks = ContractQuirks;

impl Quirks for ContractQuirks {
    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        let Value::Object(payload) = payload else {
            return;
        };
        let own = crate::get_for_run("contract")
            .and_then(|adapter| adapter.event_for(&event.event, None))
            .and_then(|event| event.payload_name.as_deref());
        if let Some(name) = own {
            payload.insert("tool_name".into(), json!(name));
        }
        payload.entry("tool_input").or_insert_with(|| json!({}));
    }
}
