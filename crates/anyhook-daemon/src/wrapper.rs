//! The daemon seed's own forms: `{"hook_type", "input_data"}` in, its two answer shapes out.
//!
//! Pure: a wrapped body becomes the agent's native payload before the hooks run,
//! and the merged response becomes the seed's answer afterwards. The only place
//! outside an adapter that knows names of agents, because the seed's forms are
//! those agents'.

use anyhook_model::{Decision, HookResponse};
use serde_json::{Map, Value, json};

use crate::host::HookReply;

/// A body in the seed's form.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrapped {
    pub hook_type: String,
    pub input: Map<String, Value>,
    /// Who says that it is calling; the path decides.
    pub source: Option<String>,
}

/// Which of the seed's two forms an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Claude,
    Gemini,
}

/// What the caller of a wrapped hook is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub body: Value,
    pub exit: i32,
    pub stderr: String,
}

/// The body as the seed's wrapper; `None` for a native payload.
pub fn unwrap(body: &Map<String, Value>) -> Option<Wrapped> {
    let hook_type = body.get("hook_type")?.as_str()?;
    let input = body.get("input_data")?.as_object()?;
    Some(Wrapped {
        hook_type: hook_type.to_owned(),
        input: input.clone(),
        source: body
            .get("source")
            .and_then(Value::as_str)
            .map(str::to_owned),
    })
}

pub fn form(slug: &str) -> Option<Form> {
    match slug {
        "claude-code" => Some(Form::Claude),
        "gemini-cli" => Some(Form::Gemini),
        _ => None,
    }
}

impl Form {
    /// The agent's own event name and payload.
    pub fn native(self, wrapped: Wrapped) -> (String, Value) {
        let mut input = wrapped.input;
        let event = match self {
            Self::Claude => pascal(&wrapped.hook_type),
            Self::Gemini => wrapped.hook_type,
        };
        input
            .entry("hook_event_name")
            .or_insert_with(|| Value::from(event.as_str()));
        match self {
            Self::Claude => claude_fields(&event, &mut input),
            Self::Gemini => gemini_fields(&mut input),
        }
        (event, Value::Object(input))
    }

    /// The seed's answer for `event`, the agent's own name.
    pub fn told(self, event: &str, reply: &HookReply) -> Told {
        match self {
            Self::Claude => claude(event, reply),
            Self::Gemini => gemini(event, reply),
        }
    }
}

/// `pre-tool-use` → `PreToolUse`.
fn pascal(kebab: &str) -> String {
    kebab
        .split('-')
        .map(|word| {
            let mut letters = word.chars();
            match letters.next() {
                Some(first) => first.to_uppercase().chain(letters).collect(),
                None => String::new(),
            }
        })
        .collect()
}

/// The seed's field names to the agent's, so that hooks see one payload however it came.
fn claude_fields(event: &str, input: &mut Map<String, Value>) {
    match event {
        "PostToolUse" => rename(input, "tool_output", "tool_response"),
        "PostToolUseFailure" => rename(input, "tool_output", "error"),
        "SubagentStart" | "SubagentStop" if input.contains_key("subagent_id") => {
            rename(input, "agent_id", "parent_agent_id");
            rename(input, "subagent_id", "agent_id");
        }
        "PermissionRequest" if !input.contains_key("tool_name") => permission_tool(input),
        _ => {}
    }
}

/// A permission is asked for a tool; the seed names what the tool would touch.
fn permission_tool(input: &mut Map<String, Value>) {
    let text = |key| input.get(key).and_then(Value::as_str);
    let Some(target) = text("target") else {
        return;
    };
    let (tool, key) = match (text("resource"), text("action")) {
        (Some("command"), _) | (_, Some("execute")) => ("Bash", "command"),
        (_, Some("write")) => ("Write", "file_path"),
        _ => ("Read", "file_path"),
    };
    let arguments = json!({ key: target });
    input.insert("tool_name".to_owned(), Value::from(tool));
    input.entry("tool_input").or_insert(arguments);
}

fn gemini_fields(input: &mut Map<String, Value>) {
    rename(input, "tool_output", "tool_response");
    let Some(Value::String(name)) = input.get_mut("tool_name") else {
        return;
    };
    let native = match name.as_str() {
        "RunShellCommand" => "run_shell_command",
        "ReadFile" | "ReadFileTool" => "read_file",
        "WriteFile" | "WriteFileTool" => "write_file",
        "EditFile" | "EditFileTool" => "replace",
        "GlobTool" => "glob",
        "GrepTool" => "grep_search",
        _ => return,
    };
    native.clone_into(name);
}

fn rename(input: &mut Map<String, Value>, from: &str, to: &str) {
    if input.contains_key(to) {
        return;
    }
    if let Some(value) = input.shift_remove(from) {
        input.insert(to.to_owned(), value);
    }
}

fn claude(event: &str, reply: &HookReply) -> Told {
    let response = &reply.response;
    let asks = response.decision == Some(Decision::Ask);
    let asks_here = asks && matches!(event, "PreToolUse" | "PermissionRequest");
    let blocks = response.is_deny() || (asks && !asks_here);
    let goes_on = !blocks && response.goes_on != Some(false);

    let mut body = Map::new();
    body.insert("continue".to_owned(), Value::from(goes_on));
    // The seed's answer to `stop` has no decision. And where "approve" would spare the
    // user a question, it is said only when a hook said it: silence is not consent.
    let decision = match response.decision {
        _ if event == "Stop" => None,
        _ if blocks => Some("block"),
        Some(Decision::Allow) => Some("approve"),
        None if goes_on && !matches!(event, "PreToolUse" | "PermissionRequest") => Some("approve"),
        _ => None,
    };
    put(&mut body, "decision", decision);
    if !goes_on {
        put(&mut body, "stopReason", response.reason.as_deref());
    }
    let told = joined(
        response.context.as_deref(),
        response.system_message.as_deref(),
    );
    put(&mut body, "systemMessage", told.as_deref());
    if response.suppress_output == Some(true) {
        body.insert("suppressOutput".to_owned(), Value::from(true));
    }

    let mut specific = Map::new();
    if matches!(event, "SessionStart" | "UserPromptSubmit" | "PostToolUse") {
        put(
            &mut specific,
            "additionalContext",
            response.context.as_deref(),
        );
    }
    if asks_here && event == "PreToolUse" {
        put(&mut specific, "permissionDecision", Some("ask"));
        put(
            &mut specific,
            "permissionDecisionReason",
            response.reason.as_deref(),
        );
    }
    if !blocks && let Some(value) = native_specific(reply, "updatedInput") {
        specific.insert("updatedInput".to_owned(), value);
    }
    if !specific.is_empty() {
        specific.shift_insert(0, "hookEventName".to_owned(), Value::from(event));
        body.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
    }
    finish(body, blocks, response)
}

fn gemini(event: &str, reply: &HookReply) -> Told {
    let response = &reply.response;
    // The seed's answer cannot ask.
    let blocks = matches!(response.decision, Some(Decision::Deny | Decision::Ask));
    let mut body = Map::new();
    let decision = if blocks { "deny" } else { "allow" };
    put(&mut body, "decision", Some(decision));
    put(&mut body, "reason", response.reason.as_deref());
    if response.goes_on == Some(false) {
        body.insert("continue".to_owned(), Value::from(false));
        put(&mut body, "stopReason", response.reason.as_deref());
    }
    put(
        &mut body,
        "systemMessage",
        response.system_message.as_deref(),
    );
    if response.suppress_output == Some(true) {
        body.insert("suppressOutput".to_owned(), Value::from(true));
    }
    let mut specific = Map::new();
    put(
        &mut specific,
        "additionalContext",
        response.context.as_deref(),
    );
    for key in ["tool_input", "llm_request", "llm_response", "toolConfig"] {
        if let Some(value) = native_specific(reply, key).or_else(|| change(event, key, response)) {
            specific.insert(key.to_owned(), value);
        }
    }
    if !specific.is_empty() {
        body.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
    }
    finish(body, blocks, response)
}

/// A change of what has no canonical keys goes to the agent as the hook wrote it.
fn change(event: &str, key: &str, response: &HookResponse) -> Option<Value> {
    let wanted = match event {
        "BeforeModel" => "llm_request",
        "AfterModel" => "llm_response",
        "BeforeToolSelection" => "toolConfig",
        _ => return None,
    };
    let updated = response.updated_input.as_ref().filter(|_| wanted == key)?;
    let inner = updated.get(key).unwrap_or(&Value::Null);
    if inner.is_object() && updated.len() == 1 {
        return Some(inner.clone());
    }
    Some(Value::Object(updated.clone()))
}

/// What the adapter rendered for the agent itself: its own keys, not the canonical ones.
fn native_specific(reply: &HookReply, key: &str) -> Option<Value> {
    let answer: Value = serde_json::from_str(&reply.answer.stdout).ok()?;
    answer.get("hookSpecificOutput")?.get(key).cloned()
}

/// Exit 2 is the code that both agents take for a block. (The seed's own Claude dispatcher
/// exits 1, which it works out from the body.)
fn finish(body: Map<String, Value>, blocks: bool, response: &HookResponse) -> Told {
    Told {
        body: Value::Object(body),
        exit: if blocks { 2 } else { 0 },
        stderr: response
            .reason
            .clone()
            .filter(|_| blocks)
            .unwrap_or_default(),
    }
}

fn joined(context: Option<&str>, message: Option<&str>) -> Option<String> {
    match (context, message) {
        (Some(context), Some(message)) => Some(format!("{context}\n\n{message}")),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

fn put(body: &mut Map<String, Value>, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        body.insert(key.to_owned(), Value::from(text));
    }
}
