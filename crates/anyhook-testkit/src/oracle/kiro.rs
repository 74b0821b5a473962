//! Kiro, v1 hook files (IDE 1.x, CLI 3.x). From documentation. There is no JSON:
//! what is printed at exit 0 is context or nothing, and exit 2 blocks.

use super::Reaction;
use super::call::Call;

pub(super) const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "PreTaskExec",
    "PostTaskExec",
    "PostFileCreate",
    "PostFileSave",
    "PostFileDelete",
    "Manual",
];

pub(super) fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    match call.exit {
        Some(0) => {
            if matches!(call.event, "SessionStart" | "UserPromptSubmit") {
                r.tell_model(Some(call.stdout));
            }
        }
        Some(2) => match call.event {
            "PreToolUse" | "PreTaskExec" => r.deny(Some(call.stderr)),
            "UserPromptSubmit" => {
                r.deny(Some(call.stderr));
                r.say("documented; IDE 1.0.337 lets the prompt through");
            }
            _ => {
                r = Reaction::failed("exit 2 does not block here");
                r.tell_user(Some(call.stderr));
            }
        },
        _ => {
            r = Reaction::failed("a warning");
            r.tell_user(Some(call.stderr));
        }
    }
    r
}
