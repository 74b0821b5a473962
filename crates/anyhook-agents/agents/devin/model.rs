//! Devin Local and CLI. From documentation and third-party captures. Exit 2 or
//! `{"decision": "block"}` blocks; of the nested form only the context of a
//! finished tool call is known to be read.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PermissionRequest",
        "UserPromptSubmit",
        "Stop",
        "PostCompaction",
        "SessionStart",
        "SessionEnd",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let json = call.json().unwrap_or(Value::Null);
    let block = match call.exit {
        Some(0) if text(&json, "/decision") == Some("block") => Some(text(&json, "/reason")),
        Some(0) => None,
        Some(2) if call.stderr.is_empty() => Some(text(&json, "/reason")),
        Some(2) => Some(Some(call.stderr)),
        _ => {
            let mut r = Reaction::failed("logged, the agent goes on");
            if call.event == "PermissionRequest" {
                r.action = Action::AskUser;
            }
            return r;
        }
    };
    let mut r = Reaction::default();
    match (call.event, block) {
        ("PreToolUse" | "PermissionRequest", Some(reason)) => r.deny(reason),
        ("PermissionRequest", None) => r.action = Action::AskUser,
        ("UserPromptSubmit", Some(reason)) => {
            r.block();
            r.show_user(reason);
        }
        ("Stop", Some(reason)) => r.send_back(reason),
        ("PostToolUse", None) => {
            r.show_model(text(&json, "/hookSpecificOutput/additionalContext"));
        }
        (_, Some(_)) => r.add_note("nobody saw a block have an effect here"),
        _ => {}
    }
    r
}
