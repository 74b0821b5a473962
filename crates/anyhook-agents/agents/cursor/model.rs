//! Cursor, hook package of `@cursor/sdk` 1.0.32. Six events ask for permission;
//! for these an answer at exit 0 that is not valid JSON blocks. Exit 2 blocks and
//! its stdout is a message, not JSON.

use crate::reference_model::call::{Call, is_false, object, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "sessionStart",
        "sessionEnd",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "subagentStart",
        "subagentStop",
        "beforeShellExecution",
        "afterShellExecution",
        "beforeMCPExecution",
        "afterMCPExecution",
        "beforeReadFile",
        "afterFileEdit",
        "beforeTabFileRead",
        "afterTabFileEdit",
        "preCompact",
        "stop",
        "afterAgentResponse",
        "afterAgentThought",
        "workspaceOpen",
    ],
    react,
    has_time_limit: true,
};

const PERMISSION_EVENTS: &[&str] = &[
    "preToolUse",
    "beforeShellExecution",
    "beforeMCPExecution",
    "beforeReadFile",
    "beforeTabFileRead",
    "subagentStart",
];

/// Longer context is dropped.
const CONTEXT_LIMIT: usize = 10_000;

fn react(call: &Call) -> Reaction {
    match call.exit {
        Some(0) if call.stdout.is_empty() => Reaction::default(),
        Some(0) => match parse(call.stdout).and_then(|json| valid(call.event, json)) {
            Ok(json) => verdict(call, &json),
            Err(why) => {
                let mut r = Reaction::failed(why);
                if PERMISSION_EVENTS.contains(&call.event) {
                    r.block();
                    r.add_note("an invalid answer blocks");
                }
                r
            }
        },
        Some(2) => exit_two(call),
        Some(code) => Reaction::failed(format!("exit {code}: ignored")),
        None => Reaction::failed("hook killed by a signal: ignored"),
    }
}

fn exit_two(call: &Call) -> Reaction {
    let words = Some(if call.stdout.is_empty() {
        call.stderr
    } else {
        call.stdout
    });
    let mut r = Reaction::default();
    if PERMISSION_EVENTS.contains(&call.event) {
        r.deny(words);
        r.show_user(words);
    } else if call.event == "beforeSubmitPrompt" {
        r.block();
        r.show_user(words);
    } else {
        r.add_note("exit 2 has no effect here");
    }
    r
}

/// The whole text, or the JSON object that it ends with after lines of a log.
fn parse(stdout: &str) -> Result<Value, String> {
    if let Ok(json) = serde_json::from_str::<Value>(stdout) {
        return Ok(json);
    }
    stdout
        .match_indices('{')
        .find_map(|(start, _)| object(stdout.get(start..)?))
        .ok_or_else(|| "output is not JSON".into())
}

/// The fields whose type or value the event's schema fixes.
fn valid(event: &str, json: Value) -> Result<Value, String> {
    if !json.is_object() {
        return Err("output is no object".into());
    }
    let permissions: &[&str] = match event {
        "beforeReadFile" | "beforeTabFileRead" => &["allow", "deny"],
        _ => &["allow", "deny", "ask"],
    };
    if PERMISSION_EVENTS.contains(&event)
        && let Some(permission) = json.get("permission")
        && !permission
            .as_str()
            .is_some_and(|p| permissions.contains(&p))
    {
        return Err(format!("`permission` may not be {permission}"));
    }
    for key in [
        "user_message",
        "agent_message",
        "additional_context",
        "followup_message",
    ] {
        if json.get(key).is_some_and(|v| !v.is_string()) {
            return Err(format!("`{key}` is no string"));
        }
    }
    if json.get("continue").is_some_and(|v| !v.is_boolean()) {
        return Err("`continue` is no boolean".into());
    }
    for key in ["updated_input", "env"] {
        if json.get(key).is_some_and(|v| !v.is_object()) {
            return Err(format!("`{key}` is no object"));
        }
    }
    Ok(json)
}

fn verdict(call: &Call, json: &Value) -> Reaction {
    let mut r = Reaction::default();
    let user_message = text(json, "/user_message");
    match call.event {
        event if PERMISSION_EVENTS.contains(&event) => permission(call, json, &mut r),
        "beforeSubmitPrompt" => {
            if is_false(json, "/continue") {
                r.block();
                r.show_user(user_message);
            } else if context(json).is_some() {
                r.add_note("additional_context is accepted, but nobody saw it arrive");
            }
        }
        "sessionStart" | "postToolUse" | "postToolUseFailure" => {
            add_context(json, &mut r);
            if json.get("updated_mcp_tool_output").is_some() {
                r.add_note("the result of an MCP tool is replaced");
            }
        }
        "stop" | "subagentStop" => {
            let blocks = text(json, "/decision") == Some("block");
            let follow_up = text(json, "/followup_message")
                .or(text(json, "/reason").filter(|_| blocks))
                .filter(|words| !words.is_empty());
            let completed = call.event == "stop"
                || text(call.payload, "/status").is_none_or(|s| s == "completed");
            if follow_up.is_some() && completed {
                r.send_back(follow_up);
                r.add_note("up to the loop limit, 5 unless the entry says otherwise");
            }
        }
        "preCompact" => r.show_user(user_message),
        _ => {}
    }
    r
}

fn permission(call: &Call, json: &Value, r: &mut Reaction) {
    let event = call.event;
    let user_message = text(json, "/user_message");
    match text(json, "/permission") {
        Some("ask") if event == "subagentStart" => {
            r.deny(user_message);
            r.show_user(user_message);
        }
        Some("deny") => {
            // agent_message is checked and then not used.
            r.deny(user_message);
            r.show_user(user_message);
            if user_message.is_none() {
                r.add_note("without user_message the model is told no reason");
            }
        }
        Some("ask") if event == "beforeShellExecution" => {
            r.action = Action::AskUser;
            r.show_user(user_message);
        }
        Some("ask") => r.add_note("ask is accepted and not enforced"),
        _ => {}
    }
    if matches!(event, "preToolUse" | "subagentStart") {
        add_context(json, r);
    }
    if let Some(update) = json.get("updated_input").and_then(Value::as_object)
        && r.action != Action::Blocked
    {
        if event == "preToolUse" {
            patch(call, update, r);
        } else {
            r.add_note("updated_input is not read here");
        }
    }
}

/// The update is a patch, and only known keys of the tool are taken over.
fn patch(call: &Call, update: &serde_json::Map<String, Value>, r: &mut Reaction) {
    let tool = call.tool_name();
    let keys: &[&str] = match tool {
        "Shell" => &["command", "cwd", "timeout"],
        "Read" | "Write" | "Delete" | "List" | "ReadLints" => &["file_path"],
        "Grep" => &["pattern", "file_path"],
        "Fetch" => &["url"],
        _ => &[],
    };
    let mut input = call.tool_input("/tool_input");
    let mut changed = false;
    for (key, value) in update {
        if tool.starts_with("MCP:") || keys.contains(&key.as_str()) {
            changed |= input.insert(key.clone(), value.clone()).as_ref() != Some(value);
        } else if input.get(key) != Some(value) {
            r.add_note(format!("`{key}` of {tool} cannot be rewritten"));
        }
    }
    if changed {
        r.new_input = Some(Value::Object(input));
    }
}

fn context(json: &Value) -> Option<&str> {
    text(json, "/additional_context").or(text(json, "/additionalContext"))
}

fn add_context(json: &Value, r: &mut Reaction) {
    match context(json) {
        Some(words) if words.chars().count() > CONTEXT_LIMIT => {
            r.add_note("additional_context over 10,000 characters is dropped");
        }
        words => r.show_model(words),
    }
}
