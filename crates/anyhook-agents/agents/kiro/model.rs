//! Kiro, v1 hook files (IDE 1.x, CLI 3.x). From documentation. There is no JSON:
//! what is printed at exit 0 is context or nothing, and exit 2 blocks.

use crate::reference_model::call::Call;
use crate::reference_model::{Model, Reaction};

pub(super) const MODEL: Model = Model {
    events: &[
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
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    match call.exit {
        Some(0) => {
            if matches!(call.event, "SessionStart" | "UserPromptSubmit") {
                r.show_model(Some(call.stdout));
            }
        }
        Some(2) => match call.event {
            "PreToolUse" | "PreTaskExec" => r.deny(Some(call.stderr)),
            "UserPromptSubmit" => {
                r.deny(Some(call.stderr));
                r.add_note("documented; IDE 1.0.337 lets the prompt through");
            }
            _ => {
                r = Reaction::failed("exit 2 does not block here");
                r.show_user(Some(call.stderr));
            }
        },
        _ => {
            r = Reaction::failed("a warning");
            r.show_user(Some(call.stderr));
        }
    }
    r
}
