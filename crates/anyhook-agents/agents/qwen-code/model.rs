//! Qwen Code 0.24.4. JSON is read at every exit code but 2; at exit 2 stdout is
//! ignored and stderr is the denial. A tool's input cannot be rewritten before
//! the call, although the documentation says so.

use crate::reference_model::call::{Call, is_false, is_true, object, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::{Value, json};

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "UserPromptSubmit",
        "UserPromptExpansion",
        "SessionStart",
        "SessionEnd",
        "SessionDelete",
        "Stop",
        "StopFailure",
        "MessageDisplay",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "Notification",
        "PermissionRequest",
        "PermissionDenied",
        "TodoCreated",
        "TodoCompleted",
        "InstructionsLoaded",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    let answer = match call.exit {
        None => {
            r = Reaction::failed("hook killed by a signal");
            Value::Null
        }
        Some(2) if call.stderr.is_empty() => {
            r = Reaction::failed("exit 2 without a word: no decision");
            Value::Null
        }
        Some(2) => denial(call.stderr),
        Some(0) => {
            let words = if call.stdout.is_empty() {
                call.stderr
            } else {
                call.stdout
            };
            match object(words) {
                Some(json) => json,
                None if words.starts_with('{') => {
                    r = Reaction::failed("starts with `{` but is not JSON");
                    Value::Null
                }
                None => plain(call, words),
            }
        }
        Some(code) => call.json().unwrap_or_else(|| {
            r = Reaction::failed(format!("exit {code}: non-blocking error"));
            r.show_user(Some(call.stderr));
            Value::Null
        }),
    };
    r.output_suppressed = is_true(&answer, "/suppressOutput");
    r.show_user(text(&answer, "/systemMessage"));
    verdict(call, &answer, &mut r);
    r
}

/// Exit 2: stderr denies, be it JSON or text.
fn denial(stderr: &str) -> Value {
    let reason = object(stderr)
        .and_then(|json| {
            text(&json, "/reason")
                .or(text(&json, "/hookSpecificOutput/permissionDecisionReason"))
                .map(ToOwned::to_owned)
        })
        .unwrap_or_else(|| stderr.to_owned());
    json!({ "decision": "deny", "reason": reason })
}

fn plain(call: &Call, words: &str) -> Value {
    let is_context = matches!(
        call.event,
        "SessionStart" | "UserPromptSubmit" | "UserPromptExpansion"
    );
    if is_context && !call.stdout.is_empty() {
        json!({ "hookSpecificOutput": { "additionalContext": words } })
    } else {
        json!({ "systemMessage": words })
    }
}

fn verdict(call: &Call, answer: &Value, r: &mut Reaction) {
    let context = text(answer, "/hookSpecificOutput/additionalContext");
    let reason = text(answer, "/reason");
    let denied = matches!(text(answer, "/decision"), Some("deny" | "block"));
    let stops = is_false(answer, "/continue");
    let stop_reason = text(answer, "/stopReason").or(reason);
    match call.event {
        "PreToolUse" => pre_tool(call, answer, denied, stops, r),
        "PostToolUse" => {
            if stops {
                r.deny(stop_reason);
                r.add_note("the result becomes an error, the loop goes on");
            }
            r.show_model(context);
        }
        "PostToolBatch" if denied || stops => {
            r.deny(if denied { reason } else { stop_reason });
        }
        "UserPromptSubmit" | "UserPromptExpansion" => {
            if denied {
                r.block();
                r.add_note("`qwen -p` shows no reason: its output is an empty success");
            } else if stops {
                r.block();
                r.end_session(stop_reason);
            } else {
                r.show_model(context);
            }
        }
        "SessionStart" => r.show_model(context),
        "Stop" | "SubagentStop" => {
            if stops {
                r.end_session(stop_reason);
            } else if denied {
                r.send_back(reason);
                r.add_note("gives up after 8 blocks in a row");
            }
        }
        "PermissionRequest" => permission_request(answer, r),
        "TodoCreated" | "TodoCompleted"
            if denied && text(call.payload, "/phase") == Some("validation") =>
        {
            r.deny(reason);
        }
        _ => {}
    }
}

fn pre_tool(call: &Call, answer: &Value, denied: bool, stops: bool, r: &mut Reaction) {
    let reason =
        text(answer, "/hookSpecificOutput/permissionDecisionReason").or(text(answer, "/reason"));
    // `permissionDecision` is preferred to the older `decision`.
    let decision = text(answer, "/hookSpecificOutput/permissionDecision").or(if denied {
        Some("deny")
    } else {
        text(answer, "/decision")
    });
    match decision {
        Some("deny") => r.deny(reason),
        Some("ask") if call.headless => {
            r.deny(reason);
            r.add_note("ask without a user is a refusal");
        }
        Some("ask") => {
            r.action = Action::AskUser;
            r.show_user(reason);
        }
        _ if stops => {
            r.deny(text(answer, "/stopReason").or(reason));
            r.add_note("an error to the model, the loop goes on");
        }
        Some("allow" | "approve") => r.skips_approval = !call.headless,
        _ => {}
    }
    if answer.pointer("/hookSpecificOutput/updatedInput").is_some() {
        r.add_note("updatedInput is not read");
    }
}

fn permission_request(answer: &Value, r: &mut Reaction) {
    let decision = answer
        .pointer("/hookSpecificOutput/decision")
        .unwrap_or(&Value::Null);
    match text(decision, "/behavior") {
        Some("allow") => {
            r.skips_approval = true;
            r.new_input = decision
                .get("updatedInput")
                .filter(|input| input.is_object())
                .cloned();
        }
        Some("deny") => {
            r.deny(text(decision, "/message"));
            r.session_ends = is_true(decision, "/interrupt");
        }
        _ => r.action = Action::AskUser,
    }
}
