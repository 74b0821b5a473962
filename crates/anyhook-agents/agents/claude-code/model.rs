//! Claude Code 2.1.325. Standard output that starts with `{` is read as JSON at
//! every exit code; exit 2 blocks even when that JSON allows.

use crate::reference_model::call::{Call, is_false, is_true, missing_key, text};
use crate::reference_model::{Action, Model, Reaction};
use serde_json::Value;

pub(super) const MODEL: Model = Model {
    events: &[
        "PreToolUse",
        "PermissionRequest",
        "PermissionDenied",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "UserPromptSubmit",
        "UserPromptExpansion",
        "SessionStart",
        "Setup",
        "SessionEnd",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "PreModelSwitch",
        "PostModelSwitch",
        "Notification",
        "TeammateIdle",
        "TaskCreated",
        "TaskCompleted",
        "Elicitation",
        "ElicitationResult",
        "ConfigChange",
        "InstructionsLoaded",
        "CwdChanged",
        "FileChanged",
        "DirectoryAdded",
        "WorktreeCreate",
        "WorktreeRemove",
        "MessageDisplay",
    ],
    react,
    has_time_limit: true,
};

/// Events for which the answer schema knows a `hookSpecificOutput`.
const WITH_SPECIFIC: &[&str] = &[
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "Setup",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "PreModelSwitch",
    "PostModelSwitch",
    "Elicitation",
    "ElicitationResult",
    "CwdChanged",
    "FileChanged",
    "WorktreeCreate",
    "MessageDisplay",
];

/// Events whose plain standard output becomes context.
const PLAIN_IS_CONTEXT: &[&str] = &[
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "PostModelSwitch",
];

/// Context longer than this is put in a file, with a preview for the model.
const CONTEXT_LIMIT: usize = 10_000;

fn react(call: &Call) -> Reaction {
    match call.event {
        "StopFailure" => return Reaction::default().with_note("output and exit code are ignored"),
        "WorktreeCreate" | "WorktreeRemove" => return worktree(call),
        _ => {}
    }
    let Some(code) = call.exit else {
        return Reaction::failed("hook killed by a signal");
    };
    let json = if call.stdout.starts_with('{') {
        let Ok(json) = serde_json::from_str::<Value>(call.stdout) else {
            return Reaction::failed("output starts with `{` but is not JSON: no verdict");
        };
        if let Some(wrong) = schema_error(call.event, &json) {
            return Reaction::failed(format!("output does not fit the schema: {wrong}"));
        }
        json
    } else {
        if code != 0 && code != 2 {
            let mut failed = Reaction::failed(format!("exit {code}: non-blocking error"));
            failed.show_user(Some(call.stderr));
            return failed;
        }
        Value::Null
    };
    if is_true(&json, "/async") {
        return Reaction::default().with_note("hook goes on in the background: no verdict");
    }

    let mut r = Reaction {
        output_suppressed: is_true(&json, "/suppressOutput"),
        ..Reaction::default()
    };
    r.show_user(text(&json, "/systemMessage"));
    verdict(call, code, &json, &mut r);
    if r.model_sees
        .iter()
        .any(|t| t.chars().count() > CONTEXT_LIMIT)
    {
        r.add_note("text over 10,000 characters: the model gets a preview and a file");
    }
    r
}

fn verdict(call: &Call, code: i32, json: &Value, r: &mut Reaction) {
    let event = call.event;
    let plain = if json.is_null() && code == 0 {
        Some(call.stdout)
    } else {
        None
    };
    let context = text(json, "/hookSpecificOutput/additionalContext")
        .or(plain.filter(|_| PLAIN_IS_CONTEXT.contains(&event)));
    let stop_reason = text(json, "/stopReason");
    let stops = is_false(json, "/continue");
    // JSON that blocks wins over the text on stderr. Empty: blocked without a word.
    let block = if text(json, "/decision") == Some("block") {
        Some(text(json, "/reason").unwrap_or_default())
    } else if code == 2 {
        Some(call.stderr)
    } else {
        None
    };

    match event {
        "PreToolUse" => pre_tool(call, json, block, r),
        "PermissionRequest" => permission_request(call, json, r),
        "PostToolUse" | "PostToolUseFailure" => {
            r.show_model(block);
            r.show_model(context);
            if json
                .pointer("/hookSpecificOutput/updatedToolOutput")
                .is_some()
            {
                r.add_note("the result is replaced if it has the tool's own shape");
            }
        }
        "PostToolBatch" => {
            if block.is_some() {
                r.block();
                r.end_session(block);
            }
            r.show_model(context);
        }
        "UserPromptSubmit" | "UserPromptExpansion" => {
            if block.is_some() {
                r.block();
                r.show_user(block);
            } else if stops {
                r.block();
            } else {
                r.show_model(context);
            }
        }
        "Stop" | "SubagentStop" => {
            if block.is_some() && !stops {
                r.send_back(block);
                r.add_note("gives up after 8 blocks in a row");
            }
            if context.is_some() && !stops {
                r.send_back(context);
            }
        }
        "TeammateIdle" => {
            if block.is_some() && !stops {
                r.send_back(block);
            }
        }
        "TaskCreated" | "TaskCompleted" => {
            if block.is_some() {
                r.deny(block);
            }
        }
        "PreCompact" => {
            if block.is_some() {
                r.block();
                r.show_user(block);
            } else if plain.is_some_and(|words| !words.is_empty()) {
                r.show_model(plain);
                r.add_note("plain output is an instruction for the compaction");
            }
        }
        "PreModelSwitch" => model_switch(call, json, block, r),
        "Elicitation" | "ElicitationResult" => elicitation(call, json, block, r),
        "ConfigChange" => {
            if block.is_some() {
                r.block();
                r.show_user(block);
            }
        }
        "MessageDisplay" => r.show_user(text(json, "/hookSpecificOutput/displayContent")),
        "PermissionDenied" => {
            if is_true(json, "/hookSpecificOutput/retry") {
                r.add_note("the model is told that it may try again");
            }
        }
        // SessionStart, Setup, SubagentStart, Notification and the rest observe.
        _ => {
            r.show_user(block);
            r.show_model(text(json, "/hookSpecificOutput/initialUserMessage"));
            r.show_model(context);
        }
    }

    let heeds_stop = matches!(
        event,
        "PreToolUse"
            | "PostToolUse"
            | "PostToolUseFailure"
            | "PostToolBatch"
            | "UserPromptSubmit"
            | "UserPromptExpansion"
            | "Stop"
            | "SubagentStop"
            | "TeammateIdle"
            | "TaskCreated"
            | "TaskCompleted"
    );
    if stops && heeds_stop {
        r.end_session(stop_reason);
    }
}

fn pre_tool(call: &Call, json: &Value, block: Option<&str>, r: &mut Reaction) {
    let reason = text(json, "/hookSpecificOutput/permissionDecisionReason");
    let decision = text(json, "/hookSpecificOutput/permissionDecision");
    let denied = match decision {
        Some("deny") => Some(reason.unwrap_or_default()),
        _ => block,
    };
    r.show_model(text(json, "/hookSpecificOutput/additionalContext"));
    if denied.is_some() {
        r.deny(denied);
        return;
    }
    match decision {
        Some("defer") => {
            r.block();
            r.session_ends = call.headless;
            r.add_note("the call stays pending");
            return;
        }
        Some("ask") if call.headless => {
            r.deny(reason);
            r.add_note("ask without a user is a refusal");
            return;
        }
        Some("ask") => {
            r.action = Action::AskUser;
            r.show_user(reason);
        }
        Some("allow") => r.skips_approval = true,
        _ => r.skips_approval = text(json, "/decision") == Some("approve"),
    }
    if let Some(input) = json.pointer("/hookSpecificOutput/updatedInput") {
        replace_input(call.tool_name(), input, r);
    }
}

/// The new input replaces the old one and is validated again.
fn replace_input(tool: &str, input: &Value, r: &mut Reaction) {
    if let Some(key) = missing_key(input, required(tool)) {
        r.block();
        r.add_note(format!("the new input lacks `{key}`: the call fails"));
    } else {
        r.new_input = Some(input.clone());
    }
}

fn required(tool: &str) -> &'static [&'static str] {
    match tool {
        "Bash" => &["command"],
        "Read" => &["file_path"],
        "Write" => &["file_path", "content"],
        "Edit" => &["file_path", "old_string", "new_string"],
        "Grep" | "Glob" => &["pattern"],
        "WebSearch" => &["query"],
        "WebFetch" => &["url", "prompt"],
        "Agent" | "Task" => &["description", "prompt"],
        _ => &[],
    }
}

fn permission_request(call: &Call, json: &Value, r: &mut Reaction) {
    let decision = json
        .pointer("/hookSpecificOutput/decision")
        .unwrap_or(&Value::Null);
    match text(decision, "/behavior") {
        Some("allow") => {
            r.skips_approval = true;
            if let Some(input) = decision.get("updatedInput") {
                replace_input(call.tool_name(), input, r);
            }
        }
        Some("deny") => {
            r.deny(text(decision, "/message"));
            r.session_ends = is_true(decision, "/interrupt");
        }
        _ if call.headless => {
            r.block();
            r.add_note("the ordinary headless refusal; stderr is not used");
        }
        _ => r.action = Action::AskUser,
    }
}

fn model_switch(call: &Call, json: &Value, block: Option<&str>, r: &mut Reaction) {
    let reason = text(json, "/hookSpecificOutput/permissionDecisionReason");
    match (text(json, "/hookSpecificOutput/permissionDecision"), block) {
        (Some("deny"), _) => {
            r.block();
            r.show_user(reason);
        }
        (_, Some(_)) => {
            r.block();
            r.show_user(block);
        }
        (Some("ask"), None) => {
            r.action = if call.headless {
                Action::Blocked
            } else {
                Action::AskUser
            };
            r.show_user(reason);
        }
        _ => {}
    }
}

fn elicitation(call: &Call, json: &Value, block: Option<&str>, r: &mut Reaction) {
    let action = text(json, "/hookSpecificOutput/action");
    if block.is_some() || matches!(action, Some("decline" | "cancel")) {
        r.block();
    } else if action.is_none() && call.event == "Elicitation" {
        r.action = Action::AskUser;
    }
}

/// These hooks replace git's own work: they must succeed, and creation must
/// print the path.
fn worktree(call: &Call) -> Reaction {
    let mut r = Reaction::default();
    if call.exit != Some(0) || (call.event == "WorktreeCreate" && call.stdout.is_empty()) {
        r = Reaction::failed("the hook did not do its work");
        r.block();
        r.show_user(Some(call.stderr));
    }
    r
}

/// What the answer schema objects to. Unknown keys are tolerated.
fn schema_error(event: &str, json: &Value) -> Option<String> {
    for key in ["continue", "suppressOutput"] {
        if json.get(key).is_some_and(|v| !v.is_boolean()) {
            return Some(format!("`{key}` is no boolean"));
        }
    }
    for key in ["stopReason", "reason", "systemMessage", "terminalSequence"] {
        if json.get(key).is_some_and(|v| !v.is_string()) {
            return Some(format!("`{key}` is no string"));
        }
    }
    if let Some(decision) = json.get("decision")
        && !matches!(decision.as_str(), Some("approve" | "block"))
    {
        return Some("`decision` is neither approve nor block".into());
    }
    let specific = json.get("hookSpecificOutput")?;
    if text(specific, "/hookEventName") != Some(event) {
        return Some("`hookSpecificOutput` does not name this event".into());
    }
    if !WITH_SPECIFIC.contains(&event) {
        return Some(format!("{event} has no `hookSpecificOutput`"));
    }
    for key in [
        "additionalContext",
        "permissionDecisionReason",
        "displayContent",
    ] {
        if specific.get(key).is_some_and(|v| !v.is_string()) {
            return Some(format!("`{key}` is no string"));
        }
    }
    if specific.get("updatedInput").is_some_and(|v| !v.is_object()) {
        return Some("`updatedInput` is no object".into());
    }
    let decisions: &[&str] = match event {
        "PreToolUse" => &["allow", "deny", "ask", "defer"],
        "PreModelSwitch" => &["allow", "deny", "ask"],
        _ => return permission_error(event, specific),
    };
    let decision = specific.get("permissionDecision")?;
    (!decision.as_str().is_some_and(|d| decisions.contains(&d)))
        .then(|| "`permissionDecision` is unknown".into())
}

fn permission_error(event: &str, specific: &Value) -> Option<String> {
    if event != "PermissionRequest" {
        return None;
    }
    let decision = specific.get("decision")?;
    (!matches!(text(decision, "/behavior"), Some("allow" | "deny")))
        .then(|| "`decision.behavior` is neither allow nor deny".into())
}
