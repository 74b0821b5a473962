//! VS Code agent hooks, Local harness. From source and documentation, not
//! run. JSON is read at exit 0, stderr at exit 2; every other exit is a warning.

use crate::reference_model::call::{Call, is_false, missing_key, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    match call.exit {
        Some(0) => call
            .json()
            .map_or_else(Reaction::default, |json| verdict(call, &json)),
        Some(2) => exit_two(call),
        Some(code) => {
            let mut r = Reaction::failed(format!("exit {code}: a warning"));
            r.show_user(Some(call.stderr));
            r
        }
        None => Reaction::failed("hook killed by a signal: a warning"),
    }
}

fn exit_two(call: &Call) -> Reaction {
    let words = Some(call.stderr);
    let mut r = Reaction::default();
    match call.event {
        "PreToolUse" | "PostToolUse" => r.deny(words),
        "Stop" | "SubagentStop" => r.send_back(words),
        "UserPromptSubmit" => {
            r.block();
            r.end_session(words);
        }
        "PreCompact" => {
            r.block();
            r.end_session(words);
            r.add_note("unverified");
        }
        _ => r.add_note("exit 2 is ignored here"),
    }
    r
}

fn verdict(call: &Call, json: &Value) -> Reaction {
    let mut r = Reaction::default();
    r.show_user(text(json, "/systemMessage"));
    let starts = matches!(call.event, "SessionStart" | "SubagentStart");
    let stop_reason = text(json, "/stopReason");
    if (is_false(json, "/continue") || stop_reason.is_some()) && !starts {
        r.block();
        r.end_session(stop_reason);
        return r;
    }
    let nested = json
        .get("hookSpecificOutput")
        .filter(|nested| names_event(call.event, nested))
        .unwrap_or(&Value::Null);
    let context = text(nested, "/additionalContext");
    let blocks = text(json, "/decision") == Some("block");
    match call.event {
        "PreToolUse" => pre_tool(call, nested, &mut r),
        "PostToolUse" => {
            if blocks {
                r.deny(text(json, "/reason"));
            }
            r.show_model(context);
        }
        "UserPromptSubmit" => {
            if blocks {
                r.block();
                r.end_session(text(json, "/reason"));
            } else {
                r.show_model(context.or(text(json, "/additionalContext")));
            }
        }
        "Stop" | "SubagentStop" => {
            if text(nested, "/decision") == Some("block") {
                r.send_back(text(nested, "/reason"));
            } else if blocks {
                r.add_note("the top-level decision is not read by the source that was seen");
            }
        }
        "SessionStart" | "SubagentStart" => r.show_model(context),
        _ => {}
    }
    r
}

/// A wrong `hookEventName` voids the nested part; the start and stop events of
/// a subagent also go by the names of the session's.
fn names_event(event: &str, nested: &Value) -> bool {
    text(nested, "/hookEventName").is_none_or(|name| {
        name == event
            || (event == "SubagentStop" && name == "Stop")
            || (event == "SubagentStart" && name == "SessionStart")
    })
}

fn pre_tool(call: &Call, nested: &Value, r: &mut Reaction) {
    let reason = text(nested, "/permissionDecisionReason");
    r.show_model(text(nested, "/additionalContext"));
    match text(nested, "/permissionDecision") {
        Some("deny") => {
            r.deny(reason);
            return;
        }
        Some("ask") => {
            r.action = Action::AskUser;
            r.show_user(reason);
        }
        Some("allow") => r.skips_approval = true,
        _ => {}
    }
    if let Some(input) = nested.get("updatedInput") {
        let required: &[&str] = match call.tool_name() {
            "run_in_terminal" => &["command"],
            "read_file" => &["filePath"],
            "create_file" => &["filePath", "content"],
            "replace_string_in_file" => &["filePath", "oldString", "newString"],
            "apply_patch" => &["input"],
            "grep_search" | "file_search" | "semantic_search" => &["query"],
            _ => &[],
        };
        if !input.is_object() || missing_key(input, required).is_some() {
            r.add_note("updatedInput does not fit the tool's schema and is dropped");
        } else {
            r.new_input = Some(input.clone());
        }
    }
}
