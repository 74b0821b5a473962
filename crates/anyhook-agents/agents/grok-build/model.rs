//! Grok Build 1.0.41, from headless runs. JSON counts at exit 0 only; exit 2
//! denies a tool call even without a word.

use crate::reference_model::call::{Call, missing_key, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionDenied",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "StopFailure",
        "StopCancelled",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "Notification",
    ],
    react,
    has_time_limit: true,
};

fn react(call: &Call) -> Reaction {
    let json = match call.exit {
        Some(0) if call.stdout.is_empty() => Value::Null,
        Some(0) => match call.json() {
            Some(json) => json,
            None => return Reaction::failed("no JSON: the client goes on"),
        },
        Some(2) => Value::Null,
        _ => return Reaction::failed("the hook failed: the client goes on"),
    };
    let denied = call.exit == Some(2);
    let nested = json.get("hookSpecificOutput").unwrap_or(&Value::Null);
    let mut r = Reaction::default();
    match call.event {
        "PreToolUse" if denied => r.deny(call.stderr.lines().next()),
        "PreToolUse" => pre_tool(call, nested, &mut r),
        "PostToolUse" if denied => r.show_model(Some(call.stderr)),
        "PostToolUse" => r.show_model(text(nested, "/additionalContext")),
        "UserPromptSubmit" if denied || text(&json, "/decision") == Some("block") => {
            r.block();
            r.add_note("the run ends as cancelled, and shows no reason");
        }
        "Stop" | "SubagentStop" if text(&json, "/decision") == Some("block") => {
            r.send_back(text(&json, "/reason"));
            r.add_note("gives up after 8 in a turn");
        }
        "Stop" | "SubagentStop" if denied => r.send_back(Some(call.stderr)),
        _ => {}
    }
    r
}

fn pre_tool(call: &Call, nested: &Value, r: &mut Reaction) {
    match text(nested, "/permissionDecision") {
        Some("deny") => {
            r.deny(text(nested, "/permissionDecisionReason"));
            return;
        }
        Some("ask") if call.headless => r.add_note("nobody is asked, the tool runs"),
        Some("ask") => r.action = Action::AskUser,
        Some("allow") => r.skips_approval = true,
        _ => {}
    }
    if let Some(update) = nested
        .get("updatedInput")
        .filter(|update| update.is_object())
    {
        // The model always sends both.
        let original = call.tool_input("/tool_input");
        let required = ["command", "description"].map(|key| (key, original.contains_key(key)));
        let required = required.into_iter().filter(|(_, given)| *given);
        let required: Vec<&str> = required.map(|(key, _)| key).collect();
        if missing_key(update, &required).is_some() {
            r.deny(None);
            return;
        }
        r.new_input = Some(update.clone());
    }
    r.show_model(text(nested, "/additionalContext"));
}
