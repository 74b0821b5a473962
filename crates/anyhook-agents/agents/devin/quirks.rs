//! `PostToolUse` has a success flag, and accepts context instead of a block.

use anyhook_model::event::field;
use anyhook_model::{HookEvent, HookResponse};
use serde_json::{Value, json};

use crate::Quirks;
use crate::quirks::{ALREADY_HAPPENED, feedback, set_status};
use crate::respond::RenderedAnswer;

pub(super) struct DevinQuirks;

pub(super) static QUIRKS: DevinQuirks = DevinQuirks;

const POST_TOOL: &str = "PostToolUse";

impl Quirks for DevinQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        let success = payload.pointer("/tool_response/success");
        if let Some(success) = success.and_then(Value::as_bool) {
            set_status(event, success);
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "devin" || payload.get("hook_event_name") != Some(&json!(POST_TOOL)) {
            return;
        }
        let success = event.text(field::STATUS) != Some("error");
        crate::pointer::put(payload, "/tool_response/success", json!(success));
    }

    fn rendered(&self, event: &HookEvent, response: &HookResponse, rendered: &mut RenderedAnswer) {
        if event.native_event == POST_TOOL
            && let Some(text) = feedback(response)
        {
            let output = json!({"hookEventName": POST_TOOL, "additionalContext": text});
            rendered.stdout = format!("{}\n", json!({ "hookSpecificOutput": output }));
            rendered.effect = vec![ALREADY_HAPPENED.into()];
        }
    }
}
