//! Hermes Agent 0.19.0, from headless runs and its source. The exit code does not
//! matter; JSON on stdout is read at any of them.

use crate::reference_model::call::{Call, text};
use crate::reference_model::{Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "pre_tool_call",
        "post_tool_call",
        "pre_llm_call",
        "post_llm_call",
        "pre_verify",
        "on_session_start",
        "on_session_end",
        "on_session_finalize",
        "on_session_reset",
        "subagent_start",
        "subagent_stop",
        "pre_approval_request",
        "post_approval_response",
        "api_request_error",
        "transform_tool_result",
        "transform_terminal_output",
        "transform_llm_output",
        "pre_api_request",
        "post_api_request",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    let json = match call.json() {
        Some(json) => json,
        None if call.stdout.is_empty() => Value::Null,
        None => return Reaction::failed("no JSON: the client goes on"),
    };
    let action = text(&json, "/action");
    let decision = text(&json, "/decision");
    let (message, reason) = (text(&json, "/message"), text(&json, "/reason"));
    match call.event {
        "pre_tool_call" if action == Some("block") => r.deny(message.or(reason)),
        "pre_tool_call" if decision == Some("block") => r.deny(reason.or(message)),
        "pre_verify" if matches!(action.or(decision), Some("continue" | "block")) => {
            let text = message.or(reason);
            if text.is_some_and(|text| !text.trim().is_empty()) {
                r.send_back(text);
            }
        }
        "pre_llm_call" => r.show_model(text(&json, "/context")),
        _ => {}
    }
    r
}
