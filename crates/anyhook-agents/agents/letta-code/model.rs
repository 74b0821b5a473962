//! Letta Code 0.25.9, from its source (`hooks/executor`, `hooks/index`): the exit
//! code decides. JSON is read only where hooks run side by side (after a tool).
//! Its PermissionRequest is left out: a hook that ends with 0 grants the permission,
//! so a guard without an objection would approve.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    let words = Some(call.stderr).filter(|words| !words.is_empty());
    match (call.event, call.exit) {
        ("PreToolUse", Some(2)) => r.deny(words.or(Some("Blocked by hook"))),
        ("UserPromptSubmit", Some(2)) => {
            r.block();
            r.show_user(words);
        }
        ("UserPromptSubmit" | "SessionStart", Some(0)) => r.show_model(Some(call.stdout)),
        ("Stop", Some(2)) => r.send_back(words.or(Some("Stop hook blocked"))),
        ("PreCompact", Some(2)) => {
            r.block();
            r.show_user(words);
        }
        ("PostToolUse" | "PostToolUseFailure", Some(2)) => r.show_model(words),
        ("PostToolUse" | "PostToolUseFailure", Some(0)) => {
            let json = call.json().unwrap_or_default();
            let nested = text(&json, "/hookSpecificOutput/additionalContext");
            r.show_model(nested.or(text(&json, "/additionalContext")));
        }
        (_, Some(0 | 2)) => {}
        _ => r = Reaction::failed("an error: the client goes on"),
    }
    r
}
