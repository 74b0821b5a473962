//! `PostToolUse` tells success as a flag, and takes no block but context.

use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent, HookResponse};
use serde_json::{Value, json};

use crate::Quirks;
use crate::respond::Rendered;

pub struct Devin;

pub static QUIRKS: Devin = Devin;

const POST_TOOL: &str = "PostToolUse";

impl Quirks for Devin {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        if let Some(success) = payload
            .pointer("/tool_response/success")
            .and_then(Value::as_bool)
        {
            let status = if success { "success" } else { "error" };
            event.data.insert(field::STATUS.into(), json!(status));
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "devin" || payload.get("hook_event_name") != Some(&json!(POST_TOOL)) {
            return;
        }
        let success = event.text(field::STATUS) != Some("error");
        crate::pointer::put(payload, "/tool_response/success", json!(success));
    }

    /// What has happened cannot be denied, but the model can be told why it
    /// should not have.
    fn rendered(&self, event: &HookEvent, response: &HookResponse, rendered: &mut Rendered) {
        let denied = event.native_event == POST_TOOL && response.decision == Some(Decision::Deny);
        let Some(reason) = response.reason.as_deref().filter(|_| denied) else {
            return;
        };
        let words: Vec<&str> = std::iter::once(reason)
            .chain(response.context.as_deref())
            .collect();
        let told = json!({"hookEventName": POST_TOOL, "additionalContext": words.join("\n\n")});
        rendered.stdout = format!("{}\n", json!({ "hookSpecificOutput": told }));
        rendered.effect = vec!["it has happened; the model reads the reason".into()];
    }
}
