//! pi 0.87.1: hooks are functions in its process, so this models an extension
//! that runs a command and applies its answer.
//!
//! The answer is one JSON object on stdout at exit 0:
//! - `{"deny": reason}`: a call is blocked, a result replaced, a prompt handled, a
//!   compaction cancelled, the agent's end put off;
//! - `{"args": {…}}`: these keys of the call's input are set in place;
//! - `{"context": text}`: added to a result, or below a prompt;
//! - `{"prompt": text}`: replaces the prompt.
//!
//! The experiments ran an extension that returned, threw and changed; their
//! answers are written in this contract. The compaction is from the documentation.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};
use serde_json::{Value, json};

pub(super) const MODEL: Model = Model {
    events: &[
        "tool_call",
        "tool_result",
        "input",
        "session_start",
        "session_shutdown",
        "agent_before_settle",
        "session_before_compact",
        "session_compact",
        "ui_prompt_start",
        "agent_settled",
        "agent_start",
        "agent_end",
        "before_agent_start",
        "turn_start",
        "turn_end",
        "tool_execution_end",
        "user_bash",
    ],
    react,
    has_time_limit: false,
};

fn react(call: &Call) -> Reaction {
    if call.exit != Some(0) {
        return Reaction::failed("the command failed: the extension does nothing");
    }
    if call.stdout.is_empty() {
        return Reaction::default();
    }
    let Some(json) = call.json() else {
        return Reaction::failed("the answer is no JSON object");
    };
    let mut r = Reaction::default();
    let context = text(&json, "/context");
    match (call.event, text(&json, "/deny")) {
        ("tool_call" | "tool_result", Some(reason)) => r.deny(Some(reason)),
        ("agent_before_settle", Some(reason)) => r.send_back(Some(reason)),
        ("input" | "session_before_compact", Some(reason)) => {
            r.block();
            r.show_user(Some(reason));
        }
        ("tool_call", None) => {
            if let Some(args) = json.get("args").and_then(Value::as_object) {
                let mut input = call.tool_input("/input");
                input.extend(args.clone());
                r.new_input = Some(Value::Object(input));
            }
        }
        ("tool_result", None) => r.show_model(context),
        ("input", None) => {
            r.show_model(context);
            if let Some(prompt) = text(&json, "/prompt") {
                r.new_input = Some(json!({ "prompt": prompt }));
            }
        }
        _ => {}
    }
    r
}
