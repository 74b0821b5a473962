//! Factory Droid 0.215. JSON is read at every exit code. For a tool call the order
//! is: `continue: false`, exit 3, the permission decision, exit 2, a bare rewrite.

use crate::reference_model::call::{Call, is_false, is_true, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "UserPromptSubmit",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "SessionStart",
        "SessionEnd",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let Some(code) = call.exit else {
        return Reaction::failed("hook killed by a signal");
    };
    let json = call.json();
    let malformed = call.stdout.starts_with('{') && json.is_none();
    let json = json.unwrap_or(Value::Null);
    let mut r = Reaction {
        output_suppressed: is_true(&json, "/suppressOutput"),
        accepted: !malformed && (json.is_object() || matches!(code, 0 | 2 | 3)),
        ..Reaction::default()
    };
    r.show_user(text(&json, "/systemMessage"));
    let stderr = Some(call.stderr);
    let stops = is_false(&json, "/continue");
    let stop_reason = text(&json, "/stopReason");
    let context = text(&json, "/hookSpecificOutput/additionalContext");
    match call.event {
        "PreToolUse" => pre_tool(call, code, &json, &mut r),
        "PostToolUse" => {
            if code == 2 {
                r.show_model(stderr);
            }
            r.show_model(context);
        }
        "UserPromptSubmit" => {
            if stops {
                r.block();
                r.end_session(stop_reason);
            } else if code == 2 || code == 3 {
                r.block();
                r.show_user(stderr);
            } else {
                r.show_model(text(&json, "/hookSpecificOutput/updatedInput/prompt"));
            }
        }
        "Stop" => {
            if stops || code == 3 {
                r.end_session(stop_reason.or(stderr));
            } else if code == 2 {
                r.send_back(stderr);
            } else if text(&json, "/decision") == Some("block") {
                r.send_back(text(&json, "/reason"));
            }
            if r.retries {
                r.add_note("without a limit");
            }
        }
        "PreCompact" if code == 2 || code == 3 => {
            r.block();
            r.show_user(stderr);
        }
        "SessionStart" => {
            if json.is_object() {
                r.show_model(context);
            } else if code == 0 && !malformed {
                r.show_model(Some(call.stdout));
            }
        }
        // The result of SubagentStop is ignored; the others observe.
        _ => {}
    }
    r
}

fn pre_tool(call: &Call, code: i32, json: &Value, r: &mut Reaction) {
    if is_false(json, "/continue") {
        r.block();
        r.end_session(text(json, "/stopReason"));
        return;
    }
    if code == 3 {
        r.block();
        r.session_ends = true;
        return;
    }
    let nested = json.get("hookSpecificOutput").unwrap_or(&Value::Null);
    match text(nested, "/permissionDecision") {
        Some("allow") => {
            r.skips_approval = true;
            merge(call, nested, r);
            return;
        }
        Some("deny") => {
            r.deny(text(nested, "/permissionDecisionReason"));
            return;
        }
        Some("ask") => r.add_note("ask is only logged"),
        _ => {}
    }
    if code == 2 {
        r.deny(Some(call.stderr));
        return;
    }
    if text(nested, "/permissionDecision").is_none() {
        merge(call, nested, r);
    }
    if code == 1 && !call.stderr.is_empty() {
        r.show_model(Some(call.stderr));
        r.add_note("stderr is placed before the tool's result");
    }
}

/// The update is laid over the original, key by key.
fn merge(call: &Call, nested: &Value, r: &mut Reaction) {
    if let Some(update) = nested.get("updatedInput").and_then(Value::as_object) {
        let mut input = call.tool_input("/tool_input");
        input.extend(update.clone());
        r.new_input = Some(Value::Object(input));
    }
}
