//! Deep Agents Code 0.1.88, from its source (`hooks/runner.py`, `reducer.py`,
//! `capabilities.py`): at exit 2 stderr is the reason and stdout is ignored, at 0
//! JSON counts if its shape is known, at any other code nothing does.

use crate::reference_model::call::{Call, is_false, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::{Value, json};

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    if call.event == "PermissionRequest" {
        r.action = Action::AskUser;
    }
    let answer = match call.exit {
        Some(2) => {
            let reason = Some(call.stderr).filter(|words| !words.is_empty());
            json!({"decision": "block", "reason": reason.unwrap_or("Hook blocked the operation")})
        }
        Some(0) if call.stdout.is_empty() => return r,
        Some(0) => match call.json() {
            Some(json) if has_known_shape(&json) => json,
            Some(_) => return failed(r, "JSON of another shape"),
            None if matches!(call.event, "SessionStart" | "UserPromptSubmit") => {
                r.show_model(Some(call.stdout));
                return r;
            }
            None => return failed(r, "no JSON"),
        },
        _ => return failed(r, "not 0 and not 2"),
    };
    if answer.get("suppressOutput") == Some(&Value::Bool(true)) {
        r.output_suppressed = true;
    } else {
        r.show_user(text(&answer, "/systemMessage"));
    }
    verdict(call, &answer, &mut r);
    r
}

fn failed(mut reaction: Reaction, why: &str) -> Reaction {
    reaction.accepted = false;
    reaction.add_note(why);
    reaction
}

/// What the client's own check of an answer refuses, as far as it matters here.
fn has_known_shape(json: &Value) -> bool {
    let decision = json.get("decision").unwrap_or(&Value::Null);
    let nested = json.get("hookSpecificOutput").unwrap_or(&Value::Null);
    let permission = nested.get("permissionDecision").unwrap_or(&Value::Null);
    let permissions = ["allow", "deny", "ask", "defer"];
    (decision.is_null() || decision == "block")
        && (nested.is_null() || nested.get("hookEventName").is_some_and(Value::is_string))
        && (permission.is_null() || permissions.iter().any(|word| permission == word))
}

fn verdict(call: &Call, answer: &Value, r: &mut Reaction) {
    let ends = is_false(answer, "/continue");
    let stop_reason = text(answer, "/stopReason");
    let block = (answer.get("decision") == Some(&json!("block"))).then(|| text(answer, "/reason"));
    let nested = answer.get("hookSpecificOutput").unwrap_or(&Value::Null);
    let is_for_this = text(nested, "/hookEventName") == Some(call.event);
    let nested = if is_for_this { nested } else { &Value::Null };
    let context = text(nested, "/additionalContext");
    match call.event {
        "PreToolUse" => {
            r.show_model(context);
            let mut permission = text(nested, "/permissionDecision");
            if nested.get("updatedInput").is_some() && permission != Some("deny") {
                r.add_note("updatedInput is ignored, and so is the permission beside it");
                permission = None;
            }
            let reason = text(nested, "/permissionDecisionReason");
            match (block, permission) {
                (Some(reason), _) => r.deny(reason),
                (None, Some("deny")) => r.deny(reason.or(stop_reason)),
                _ if ends => r.deny(stop_reason),
                (None, Some("ask")) => {
                    r.action = Action::AskUser;
                    r.show_user(reason);
                }
                (None, Some("allow")) => r.skips_approval = true,
                _ => {}
            }
        }
        "PermissionRequest" => match (block, text(nested, "/decision/behavior")) {
            (Some(reason), _) => r.deny(reason),
            (None, Some("deny")) => r.deny(text(nested, "/decision/message")),
            (None, Some("allow")) if nested.pointer("/decision/updatedInput").is_none() => {
                r.action = Action::Proceeds;
                r.skips_approval = true;
            }
            _ => {}
        },
        "PostToolUse" | "PostToolUseFailure" => {
            r.show_model(block.flatten());
            r.show_model(context);
            r.show_model(stop_reason.filter(|_| ends));
        }
        "UserPromptSubmit" => {
            if block.is_some() || ends {
                r.block();
                r.show_user(block.flatten().or(stop_reason));
            } else {
                r.show_model(context);
            }
        }
        "Stop" if ends => r.end_session(stop_reason),
        "Stop" => {
            if let Some(reason) = block {
                r.send_back(reason);
            }
            if let Some(context) = context {
                r.send_back(Some(context));
            }
        }
        "PreCompact" if block.is_some() || ends => r.block(),
        "SessionStart" | "SubagentStart" => r.show_model(context),
        "SubagentStop" => {
            r.show_model(block.flatten());
            r.show_model(context);
        }
        _ => {}
    }
}
