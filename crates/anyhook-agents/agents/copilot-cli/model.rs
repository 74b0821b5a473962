//! GitHub Copilot CLI 1.0.102. The casing of the event picks the dialect:
//! camelCase is its own, PascalCase resembles Claude Code's. A tool guard fails
//! closed; every other hook fails open.

use crate::reference_model::call::{Call, is_true, object, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "sessionStart",
        "sessionEnd",
        "userPromptSubmitted",
        "userPromptTransformed",
        "preToolUse",
        "preMcpToolCall",
        "permissionRequest",
        "postToolUse",
        "postToolUseFailure",
        "agentStop",
        "subagentStart",
        "subagentStop",
        "errorOccurred",
        "preCompact",
        "notification",
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "ErrorOccurred",
        "PreCompact",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let answer = parse(call.stdout);
    match call.event {
        "preToolUse" | "PreToolUse" => pre_tool(call, answer),
        "permissionRequest" | "PermissionRequest" => permission_request(call, answer),
        _ => other(call, answer),
    }
}

/// Progress lines are stripped; what is no JSON object then is ignored.
fn parse(stdout: &str) -> Value {
    let rest: Vec<&str> = stdout
        .lines()
        .filter(|line| {
            object(line.trim()).is_none_or(|json| text(&json, "/type") != Some("progress"))
        })
        .collect();
    object(rest.join("\n").trim()).unwrap_or(Value::Null)
}

fn pre_tool(call: &Call, answer: Value) -> Reaction {
    let mut r = Reaction::default();
    match call.exit {
        Some(0) => {}
        Some(2) => {
            r.deny(text(&answer, "/permissionDecisionReason"));
            r.add_note("exit 2: stderr is lost");
            return r;
        }
        _ => {
            r = Reaction::failed("hook errored: denied");
            r.block();
            return r;
        }
    }
    // Only the PascalCase dialect reads the nested form.
    let nested = if call.event == "PreToolUse" {
        answer.get("hookSpecificOutput").unwrap_or(&Value::Null)
    } else {
        &Value::Null
    };
    let field = |key: &str| nested.get(key).or(answer.get(key));
    let reason = field("permissionDecisionReason").and_then(Value::as_str);
    r.show_model(field("additionalContext").and_then(Value::as_str));
    match field("permissionDecision").and_then(Value::as_str) {
        Some("deny") => r.deny(reason),
        Some("ask") if call.headless => {
            r.deny(reason);
            r.add_note("ask without a user is a refusal");
        }
        Some("ask") => {
            r.action = Action::AskUser;
            r.show_user(reason);
        }
        Some("allow") => r.skips_approval = true,
        _ => {}
    }
    if r.action != Action::Blocked {
        r.new_input = nested
            .get("updatedInput")
            .or(answer.get("modifiedArgs"))
            .filter(|input| input.is_object())
            .cloned();
    }
    r
}

/// The flat form in both dialects; Claude's nested `decision` is not read.
fn permission_request(call: &Call, answer: Value) -> Reaction {
    let mut r = Reaction {
        action: Action::AskUser,
        ..Reaction::default()
    };
    match (call.exit, text(&answer, "/behavior")) {
        (Some(2), _) => r.deny(text(&answer, "/message")),
        (Some(0), Some("allow")) => {
            r.action = Action::Proceeds;
            r.skips_approval = true;
        }
        (Some(0), Some("deny")) => {
            r.deny(text(&answer, "/message"));
            r.session_ends = is_true(&answer, "/interrupt");
        }
        (Some(0), _) => {}
        _ => r.accepted = false,
    }
    r
}

fn other(call: &Call, answer: Value) -> Reaction {
    let mut r = Reaction::default();
    match call.exit {
        Some(0) => {}
        Some(2) => {
            if matches!(call.event, "postToolUseFailure" | "PostToolUseFailure") {
                r.show_model(Some(call.stderr));
            } else {
                r = Reaction::failed("exit 2 is only a warning here");
                r.show_user(Some(call.stderr));
            }
            return r;
        }
        _ => return Reaction::failed("hook errored: logged"),
    }
    let context = text(&answer, "/additionalContext");
    let blocks = text(&answer, "/decision") == Some("block");
    let reason = text(&answer, "/reason").filter(|words| !words.is_empty());
    match call.event {
        "userPromptSubmitted" | "UserPromptSubmit" => {
            if blocks {
                r.block();
                r.show_user(reason);
            } else if is_true(&answer, "/handled") {
                r.block();
                r.show_user(text(&answer, "/responseContent"));
                r.add_note("the hook answers in the model's place");
            } else {
                r.show_model(text(&answer, "/modifiedPrompt"));
                r.show_model(context);
            }
        }
        "userPromptTransformed" => r.show_model(text(&answer, "/modifiedTransformedPrompt")),
        "postToolUse" | "PostToolUse" => {
            if blocks && reason.is_some() {
                r.deny(reason);
            } else {
                r.show_model(text(&answer, "/modifiedResult/textResultForLlm"));
            }
            r.show_model(context);
        }
        "agentStop" | "Stop" | "subagentStop" | "SubagentStop" if blocks && reason.is_some() => {
            r.send_back(reason);
            r.add_note("gives up after 8 blocks in a row");
        }
        "sessionStart" | "SessionStart" | "postToolUseFailure" | "PostToolUseFailure"
        | "subagentStart" | "SubagentStart" | "notification" | "Notification" => {
            r.show_model(context);
        }
        _ => {}
    }
    r
}
