//! The wrapped HTTP form: `{"hook_type", "input_data"}` instead of an agent's native payload.
//!
//! Dispatcher scripts of Gobby-style hook daemons post it for Claude Code and Gemini CLI: the
//! payload sits in `input_data`, some of its fields have other names, and the answer has a
//! shape of its own. See "The wrapped form" in `docs/daemon.md`.
//!
//! Pure: [`WrappedForm::native_payload`] gives the payload that the hooks get, and
//! [`WrappedForm::render`] the answer that is sent and recorded. Apart from the adapters this
//! is the only place that names agents, because each form belongs to one agent.

use anyhook_model::{Answer, Decision, HookResponse, Loss, resolve_ask};
use serde_json::{Map, Value, json};

/// A request body in the wrapped form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrappedCall {
    pub hook_type: String,
    pub input: Map<String, Value>,
    /// The agent that the body names; the path decides.
    pub source: Option<String>,
}

impl WrappedCall {
    /// `None` for a native payload.
    pub(crate) fn from_body(body: &Map<String, Value>) -> Option<Self> {
        let hook_type = body.get("hook_type")?.as_str()?;
        // A dispatcher whose own input was empty or no object still sends a call.
        let is_wrapper = || {
            let mut keys = body.keys();
            keys.all(|key| matches!(key.as_str(), "hook_type" | "input_data" | "source"))
        };
        let input = match body.get("input_data") {
            Some(Value::Object(input)) => input.clone(),
            _ if is_wrapper() => Map::new(),
            _ => return None,
        };
        let source = body.get("source").and_then(Value::as_str);
        Some(Self {
            hook_type: hook_type.to_owned(),
            input,
            source: source.map(str::to_owned),
        })
    }
}

/// An agent's variant of the wrapped form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrappedForm {
    Claude,
    Gemini,
    /// Of any other agent: only the request is wrapped. The answer is the native one.
    RequestOnly,
}

/// The key of what an answer has for one event only.
const EVENT_OUTPUT_KEY: &str = "hookSpecificOutput";

/// The agent's own answer to the same response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NativeAnswer {
    pub answer: Answer,
    /// What it could not carry.
    pub lost: Vec<Loss>,
    /// A user can be asked.
    pub can_ask: bool,
    /// A deny prevents what the event announces.
    pub is_preventable: bool,
}

impl NativeAnswer {
    fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&self.answer.stdout).unwrap_or_default()
    }

    /// A hook that ends the run also blocks what is about to happen.
    fn ends_before(&self, response: &HookResponse) -> bool {
        response.should_continue == Some(false) && self.is_preventable
    }

    /// Whether the agent's own answer blocks, or would if its form had a place for it.
    fn blocks(&self, denies: bool, verdicts: &[Option<&Value>]) -> bool {
        let mut words = verdicts.iter().copied().flatten().filter_map(Value::as_str);
        let is_lost = self.lost.iter().any(|loss| loss.field == "deny");
        let has_blocked = words.any(|word| matches!(word, "deny" | "block"));
        has_blocked || self.answer.exit == 2 || (denies && !is_lost)
    }
}

impl WrappedForm {
    pub(crate) fn for_agent(slug: &str) -> Self {
        match slug {
            "claude-code" => Self::Claude,
            "gemini-cli" => Self::Gemini,
            _ => Self::RequestOnly,
        }
    }

    /// The agent's own event name and payload.
    pub(crate) fn native_payload(self, wrapped: WrappedCall) -> (String, Value) {
        let mut input = wrapped.input;
        let event = match self {
            Self::Claude => pascal(&wrapped.hook_type),
            Self::Gemini => wrapped.hook_type,
            Self::RequestOnly => return (wrapped.hook_type, Value::Object(input)),
        };
        input
            .entry("hook_event_name")
            .or_insert_with(|| Value::from(event.as_str()));
        match self {
            Self::Claude => claude_fields(&event, &mut input),
            Self::Gemini => gemini_fields(&mut input),
            Self::RequestOnly => {}
        }
        (event, Value::Object(input))
    }

    /// The answer to `event`, the agent's own name, and what it cannot carry.
    pub fn render(
        self,
        event: &str,
        response: &HookResponse,
        native: NativeAnswer,
    ) -> (Answer, Vec<Loss>) {
        if self == Self::RequestOnly {
            let mut answer = native.answer;
            // Dispatchers of the wrapped form parse every body.
            if answer.stdout.is_empty() {
                "{}".clone_into(&mut answer.stdout);
            }
            return (answer, native.lost);
        }
        let asks = response.decision == Some(Decision::Ask);
        let mut response = resolve_ask(response.clone(), native.can_ask);
        let mut draft = self.draft(event, &response, &native);
        let mut lost = native.lost.clone();
        lost.retain(|loss| !NATIVE_LOSSES.contains(&loss.field.as_str()));
        let is_plain_text = !native.answer.stdout.is_empty() && native.object().is_empty();
        if response.context.is_some() && is_plain_text {
            let message = format!("{FORM_NAME} has no place for it at {event}");
            lost.push(Loss::new("context", message));
        }
        if asks && draft.blocks {
            lost.push(Loss::new(
                "ask",
                format!("{FORM_NAME} cannot ask at {event}; denied instead"),
            ));
        }
        if response.updated_input.is_some() && !draft.rewrites && !response.is_deny() {
            let why = format!("{FORM_NAME} cannot carry it at {event}");
            let effect = if native.is_preventable {
                response.decision = Some(Decision::Deny);
                response.reason = Some(format!(
                    "A hook changes the input of this call, and {why}; it is denied instead."
                ));
                draft = self.draft(event, &response, &native);
                "denied instead"
            } else {
                "the input stays as it was"
            };
            lost.push(Loss::new("updated_input", format!("{why}; {effect}")));
        }
        (draft.into_answer(&response), lost)
    }

    fn draft(self, event: &str, response: &HookResponse, native: &NativeAnswer) -> WrappedDraft {
        match self {
            Self::Claude => claude_draft(event, response, native),
            Self::Gemini | Self::RequestOnly => gemini_draft(event, response, native),
        }
    }
}

const FORM_NAME: &str = "the wrapped HTTP form";

/// Losses of the native answer that do not apply here: either both forms have a field for
/// it at every event, or the form decides.
const NATIVE_LOSSES: [&str; 5] = [
    "continue",
    "system_message",
    "suppress_output",
    "ask",
    "updated_input",
];

/// An answer before its exit code.
struct WrappedDraft {
    body: Map<String, Value>,
    blocks: bool,
    /// The changed input is in the body.
    rewrites: bool,
}

impl WrappedDraft {
    /// Exit 2 means "block" to both agents. (The Claude dispatcher of this form computes its
    /// own exit code, 1, from the body.)
    fn into_answer(self, response: &HookResponse) -> Answer {
        let reason = response.reason.clone().filter(|_| self.blocks);
        Answer {
            stdout: Value::Object(self.body).to_string(),
            stderr: reason.unwrap_or_default(),
            exit: if self.blocks { 2 } else { 0 },
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

/// Renames the form's fields to the agent's, so that hooks see the same payload either way.
fn claude_fields(event: &str, input: &mut Map<String, Value>) {
    match event {
        "PostToolUse" => {
            rename(input, "tool_output", "tool_response");
            rename(input, "tool_result", "tool_response");
        }
        "UserPromptSubmit" => rename(input, "user_prompt", "prompt"),
        "PostToolUseFailure" => rename(input, "tool_output", "error"),
        "SubagentStart" | "SubagentStop" if input.contains_key("subagent_id") => {
            rename(input, "agent_id", "parent_agent_id");
            rename(input, "subagent_id", "agent_id");
        }
        "PermissionRequest" if !input.contains_key("tool_name") => permission_tool(input),
        _ => {}
    }
}

/// The agent asks permission for a tool; this form names what the tool would touch.
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

fn claude_draft(event: &str, response: &HookResponse, native: &NativeAnswer) -> WrappedDraft {
    let mut own = native.object();
    let mut specific = take_object(&mut own, EVENT_OUTPUT_KEY);
    let asks = response.decision == Some(Decision::Ask);
    let asks_here = asks && matches!(event, "PreToolUse" | "PermissionRequest");
    let behavior = specific.get("decision").and_then(|it| it.get("behavior"));
    let native_verdicts = [
        own.get("decision"),
        specific.get("permissionDecision"),
        behavior,
    ];
    let denies = response.is_deny() || (asks && !asks_here) || native.ends_before(response);
    let blocks = native.blocks(denies, &native_verdicts);
    // For these events the form defines the answer. Elsewhere a block is a `decision`, as in
    // the agent's own answer, and does not end the agent's run.
    let is_defined = matches!(event, "PreToolUse" | "PermissionRequest" | "Stop");
    let decides = !is_defined && own.get("decision").and_then(Value::as_str) == Some("block");
    let stops = response.should_continue == Some(false) && event != "Stop";
    let should_continue = !stops && (!blocks || decides);
    // The answer to `stop` has no decision. Where "approve" would skip a question to the
    // user, only a hook's own `allow` gives it: silence is not consent.
    let decision = match response.decision {
        _ if event == "Stop" => None,
        _ if blocks => Some("block"),
        Some(Decision::Allow) => Some("approve"),
        None if should_continue && !is_defined => Some("approve"),
        _ => None,
    };
    let reason = response.reason.as_deref();
    let context = response.context.as_deref();
    let mut body = Map::new();
    put(&mut body, "continue", Some(should_continue));
    put(&mut body, "decision", decision);
    let own_reason = own.shift_remove("reason").filter(|_| decides);
    put(&mut body, "reason", own_reason);
    let stop_reason = reason.filter(|_| blocks || !should_continue);
    put(&mut body, "stopReason", stop_reason);
    let message = joined(context, response.system_message.as_deref());
    put(&mut body, "systemMessage", message);
    let suppressed = response.suppress_output.filter(|is_on| *is_on);
    put(&mut body, "suppressOutput", suppressed);

    if blocks {
        specific.shift_remove("updatedInput");
    }
    let in_decision = specific
        .get("decision")
        .is_some_and(|decision| decision.get("updatedInput").is_some());
    let rewrites = specific.contains_key("updatedInput") || (in_decision && !blocks);
    if matches!(event, "SessionStart" | "UserPromptSubmit" | "PostToolUse") {
        put(&mut specific, "additionalContext", context);
    }
    if asks_here && !blocks && event == "PreToolUse" {
        put(&mut specific, "permissionDecision", Some("ask"));
        put(&mut specific, "permissionDecisionReason", reason);
    }
    specific.shift_remove("hookEventName");
    if !specific.is_empty() {
        specific.shift_insert(0, "hookEventName".to_owned(), Value::from(event));
        put(&mut body, EVENT_OUTPUT_KEY, Some(specific));
    }
    WrappedDraft {
        body,
        blocks,
        rewrites,
    }
}

/// Keys of a changed input.
const MODEL_KEYS: [&str; 4] = ["tool_input", "llm_request", "llm_response", "toolConfig"];

fn gemini_draft(event: &str, response: &HookResponse, native: &NativeAnswer) -> WrappedDraft {
    // What the agent's own form cannot change, and denies instead, this form may carry.
    let is_lost = native.lost.iter().any(|loss| loss.field == "updated_input");
    let is_carried = is_lost
        && MODEL_KEYS
            .iter()
            .any(|key| model_change(event, key, response).is_some());
    let native = &NativeAnswer {
        answer: if is_carried {
            Answer::default()
        } else {
            native.answer.clone()
        },
        ..native.clone()
    };
    let mut own = native.object();
    let mut specific = take_object(&mut own, EVENT_OUTPUT_KEY);
    // This form cannot ask.
    let denies = matches!(response.decision, Some(Decision::Deny | Decision::Ask))
        || native.ends_before(response);
    let blocks = native.blocks(denies, &[own.get("decision")]);
    let ends_turn = response.should_continue == Some(false);
    let reason = response.reason.as_deref();
    let mut body = Map::new();
    put(
        &mut body,
        "decision",
        Some(if blocks { "deny" } else { "allow" }),
    );
    // The agent's own reason has the context as well where there is no other place for it.
    let own_reason = own.get("reason").and_then(Value::as_str);
    put(&mut body, "reason", own_reason.or(reason));
    put(&mut body, "continue", ends_turn.then_some(false));
    put(&mut body, "stopReason", reason.filter(|_| ends_turn));
    put(
        &mut body,
        "systemMessage",
        response.system_message.as_deref(),
    );
    let suppressed = response.suppress_output.filter(|is_on| *is_on);
    put(&mut body, "suppressOutput", suppressed);
    put(
        &mut specific,
        "additionalContext",
        response.context.as_deref(),
    );
    specific.shift_remove("hookEventName");
    let mut rewrites = false;
    for key in MODEL_KEYS {
        let known = specific.get(key).cloned();
        let updated = known.or_else(|| model_change(event, key, response));
        rewrites |= updated.is_some();
        put(&mut specific, key, updated);
    }
    if !specific.is_empty() {
        put(&mut body, EVENT_OUTPUT_KEY, Some(specific));
    }
    WrappedDraft {
        body,
        blocks,
        rewrites,
    }
}

/// A change of what has no canonical keys goes to the agent as the hook wrote it.
fn model_change(event: &str, key: &str, response: &HookResponse) -> Option<Value> {
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

/// Takes an object out of another one.
fn take_object(object: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match object.shift_remove(key) {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    }
}

fn joined(context: Option<&str>, message: Option<&str>) -> Option<String> {
    match (context, message) {
        (Some(context), Some(message)) => Some(format!("{context}\n\n{message}")),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

fn put(body: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(key.to_owned(), value.into());
    }
}
