//! Augment Auggie CLI 0.36. JSON counts at exit 0 and 2; exit 2 blocks a tool
//! call and nothing else; most other events only observe.

use super::Reaction;
use super::call::{Call, is_false, is_true, text};
use serde_json::Value;

pub(super) const EVENTS: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SessionStart",
    "SessionEnd",
    "Notification",
    "PromptSubmit",
];

pub(super) fn react(call: &Call) -> Reaction {
    let Some(code @ (0 | 2)) = call.exit else {
        let mut r = Reaction::failed("hook failed: JSON is not read");
        r.tell_user(Some(call.stderr));
        return r;
    };
    let mut r = Reaction::default();
    let json = match call.json() {
        Some(json) if schema_error(call.event, &json).is_none() => json,
        Some(_) => {
            r = Reaction::failed("JSON does not fit the schema: treated as text");
            r.tell_user(Some(call.stdout));
            Value::Null
        }
        None => {
            r.tell_user(Some(call.stdout));
            Value::Null
        }
    };
    r.output_suppressed = is_true(&json, "/suppressOutput");
    r.tell_user(text(&json, "/systemMessage"));
    match call.event {
        "PreToolUse" => pre_tool(call, code, &json, &mut r),
        "PostToolUse" => {
            if code == 2 {
                r.tell_model(Some(call.stderr));
            }
            r.tell_model(text(&json, "/hookSpecificOutput/additionalContext"));
            if is_false(&json, "/continue")
                && text(&json, "/hookSpecificOutput/decision") == Some("block")
            {
                r.tell_model(text(&json, "/hookSpecificOutput/reason"));
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
        Some("ask") => r.say("ask has no effect"),
        _ => {}
    }
    if is_false(json, "/continue") {
        r.deny(text(json, "/stopReason"));
        r.say("only this tool call is blocked");
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
