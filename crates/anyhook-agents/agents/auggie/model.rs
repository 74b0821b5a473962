//! Augment Auggie CLI 0.36. JSON is read at exit 0 and 2; exit 2 blocks only
//! tool calls; most other events only observe.

use crate::reference_model::call::{Call, is_false, is_true, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionStart",
        "SessionEnd",
        "Notification",
        "PromptSubmit",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let Some(code @ (0 | 2)) = call.exit else {
        let mut r = Reaction::failed("hook failed: JSON is not read");
        r.show_user(Some(call.stderr));
        return r;
    };
    let mut r = Reaction::default();
    let json = match call.json() {
        Some(json) if schema_error(call.event, &json).is_none() => json,
        Some(_) => {
            r = Reaction::failed("JSON does not fit the schema: treated as text");
            r.show_user(Some(call.stdout));
            Value::Null
        }
        None => {
            r.show_user(Some(call.stdout));
            Value::Null
        }
    };
    r.output_suppressed = is_true(&json, "/suppressOutput");
    r.show_user(text(&json, "/systemMessage"));
    match call.event {
        "PreToolUse" => pre_tool(call, code, &json, &mut r),
        "PostToolUse" => {
            if code == 2 {
                r.show_model(Some(call.stderr));
            }
            r.show_model(text(&json, "/hookSpecificOutput/additionalContext"));
            if is_false(&json, "/continue")
                && text(&json, "/hookSpecificOutput/decision") == Some("block")
            {
                r.show_model(text(&json, "/hookSpecificOutput/reason"));
            }
        }
        // Stop, PromptSubmit and SessionStart run, and their result is dropped.
        _ => {}
    }
    r
}

fn pre_tool(call: &Call, code: i32, json: &Value, r: &mut Reaction) {
    let nested = json.get("hookSpecificOutput").unwrap_or(&Value::Null);
    let reason = text(nested, "/permissionDecisionReason");
    if code == 2 {
        r.deny(Some(call.stderr).filter(|s| !s.is_empty()).or(reason));
        return;
    }
    match text(nested, "/permissionDecision") {
        Some("deny") => {
            r.deny(reason);
            return;
        }
        Some("ask") => r.add_note("ask has no effect"),
        _ => {}
    }
    if is_false(json, "/continue") {
        r.deny(text(json, "/stopReason"));
        r.add_note("only this tool call is blocked");
        return;
    }
    r.new_input = nested
        .get("updatedInput")
        .filter(|input| input.is_object())
        .cloned();
}

fn schema_error(event: &str, json: &Value) -> Option<&'static str> {
    if ["continue", "suppressOutput"]
        .iter()
        .any(|key| json.get(key).is_some_and(|v| !v.is_boolean()))
        || ["stopReason", "systemMessage", "additionalContext"]
            .iter()
            .any(|key| json.get(key).is_some_and(|v| !v.is_string()))
    {
        return Some("a field has the wrong type");
    }
    let nested = json.get("hookSpecificOutput")?;
    if text(nested, "/hookEventName") != Some(event) {
        return Some("hookSpecificOutput does not name this event");
    }
    match nested.get("permissionDecision") {
        Some(decision) if !matches!(decision.as_str(), Some("allow" | "deny" | "ask")) => {
            Some("permissionDecision is unknown")
        }
        _ => None,
    }
}
