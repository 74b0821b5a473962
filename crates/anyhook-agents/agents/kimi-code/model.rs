//! Kimi Code 2.1.0, from headless runs. Three events can block; at all others
//! the client starts the hook and looks at nothing.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionResult",
        "UserPromptSubmit",
        "UserPromptQueued",
        "TurnStarted",
        "Stop",
        "StopFailure",
        "Interrupt",
        "SessionStart",
        "SessionEnd",
        "SessionHeartbeat",
        "SubagentStart",
        "SubagentStop",
        "TaskStarted",
        "PreCompact",
        "PostCompact",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    match (call.event, call.exit) {
        ("PreToolUse", Some(2)) => r.deny(Some(call.stderr)),
        ("PreToolUse", Some(0)) => pre_tool(call, &mut r),
        ("UserPromptSubmit", Some(2)) => {
            r.block();
            r.add_note("`kimi -p` ends with 1");
        }
        ("UserPromptSubmit", Some(0)) => prompt(call, &mut r),
        ("Stop", Some(2)) => {
            r.send_back(Some(call.stderr));
            r.add_note("once in a turn");
        }
        // Its own question follows, whatever the hook says.
        ("PermissionRequest", _) => r.action = Action::AskUser,
        (_, Some(0)) => {}
        _ => return Reaction::failed("the hook failed: the client goes on"),
    }
    r
}

/// Anything but a deny lets the call run as it is: no ask, no rewrite, no context.
fn pre_tool(call: &Call, r: &mut Reaction) {
    let Some(json) = call.json() else {
        if !call.stdout.is_empty() {
            *r = Reaction::failed("no JSON: the client goes on");
        }
        return;
    };
    let nested = json.get("hookSpecificOutput").unwrap_or(&Value::Null);
    if text(nested, "/permissionDecision") == Some("deny") {
        r.deny(text(nested, "/permissionDecisionReason"));
    }
}

/// `message` of a JSON object, or the text itself, even if that is JSON of another shape.
fn prompt(call: &Call, r: &mut Reaction) {
    let json = call.json().unwrap_or_default();
    let message = text(&json, "/message");
    r.show_model(message.or(Some(call.stdout)));
}
