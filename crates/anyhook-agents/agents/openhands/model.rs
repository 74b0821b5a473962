//! OpenHands SDK 1.58.2, from its source (`sdk/hooks`): JSON is read at every
//! exit code. Exit 2, `decision: deny` or a false `continue` blocks.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let Some(exit) = call.exit else {
        return Reaction::failed("hook killed: the client goes on");
    };
    let json = call.json().unwrap_or(Value::Null);
    let decision = text(&json, "/decision").map(str::to_lowercase);
    let is_stopped = json.get("continue").is_some_and(is_falsy);
    let blocks = exit == 2 || decision.as_deref() == Some("deny") || is_stopped;
    let reason = text(&json, "/reason").filter(|reason| !reason.is_empty());
    let reason = reason.or(Some(call.stderr).filter(|words| !words.is_empty()));
    let reason = reason.or(Some("Blocked by hook"));
    let context = text(&json, "/additionalContext").filter(|context| !context.is_empty());
    let mut r = Reaction::default();
    match (call.event, blocks) {
        ("PreToolUse", true) => r.deny(reason),
        ("UserPromptSubmit", true) => {
            r.block();
            r.add_note("the prompt is refused without its reason");
        }
        ("UserPromptSubmit" | "SessionStart", _) => r.show_model(context),
        // The context of a hook takes the place of its reason.
        ("Stop", true) => r.send_back(context.or(reason)),
        _ => {}
    }
    if exit != 0 && !blocks {
        r.accepted = false;
        r.add_note("not 0 and not 2: an error that blocks nothing");
    }
    r
}

/// As Python sees it.
fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) => false,
    }
}
