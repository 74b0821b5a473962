//! Goose, from its source of autumn 2026 (`crates/goose/src/hooks`): a tool call and
//! the end of a turn can be denied, by exit 2 or by `decision: block` at any code.
//! Of other events nothing is read.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PreToolUseResult",
        "PostToolUse",
        "PostToolUseFailure",
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "BeforeReadFile",
        "AfterFileEdit",
        "BeforeShellExecution",
        "AfterShellExecution",
        "Stop",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    if !matches!(call.event, "PreToolUse" | "Stop") {
        return match call.exit {
            Some(0) => Reaction::default(),
            _ => Reaction::failed("a line in the log"),
        };
    }
    let json = call.json().unwrap_or_default();
    let or_default = |words: Option<&str>| {
        let words = words.filter(|words| !words.is_empty());
        words.unwrap_or("denied by plugin hook").to_owned()
    };
    let decision = text(&json, "/decision");
    let denial = match (call.exit, decision) {
        (Some(2), _) => Some(or_default(Some(call.stderr))),
        (_, Some("block")) => Some(or_default(text(&json, "/reason"))),
        _ => None,
    };
    let mut r = Reaction::default();
    match denial {
        Some(reason) if call.event == "Stop" => r.send_back(Some(&reason)),
        Some(reason) => r.deny(Some(&reason)),
        None if call.exit == Some(0) && (call.stdout.is_empty() || decision == Some("allow")) => {}
        None => return Reaction::failed("no usable decision: the call runs"),
    }
    r
}
