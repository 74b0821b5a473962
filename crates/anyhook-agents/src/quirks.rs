//! Behaviour of single agents that a table cannot describe.
//!
//! Every method does nothing by default. When a second agent needs the same
//! quirk, it becomes a codec, a shape, a field of the table or a function here.

use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent, HookResponse};
use serde_json::{Map, Value, json};

use crate::respond::RenderedAnswer;
use crate::trust::TrustLedger;

pub trait Quirks: Sync {
    /// The event's native name, where the payload names it in an unusual way.
    fn event_name(&self, _payload: &Value) -> Option<String> {
        None
    }

    /// Completes a decoded event.
    fn decoded(&self, _payload: &Value, _event: &mut HookEvent) {}

    /// Completes an encoded payload.
    fn encoded(&self, _event: &HookEvent, _payload: &mut Value) {}

    /// A native tool input that the table cannot map: canonical tool and input.
    fn decode_tool(&self, _native: &str, _input: &Value) -> Option<(String, Map<String, Value>)> {
        None
    }

    /// The way back from [`Quirks::decode_tool`].
    fn encode_tool(
        &self,
        _native: &str,
        _input: &Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        None
    }

    /// Completes an answer.
    fn rendered(
        &self,
        _event: &HookEvent,
        _response: &HookResponse,
        _rendered: &mut RenderedAnswer,
    ) {
    }

    /// The program that runs the hooks of a document, for agents that load one.
    fn plugin_text(&self, _document: &Value) -> Option<String> {
        None
    }

    /// The program through which this agent calls the bridge.
    fn bridge_plugin(&self, _call: &BridgeCall<'_>) -> Option<String> {
        None
    }

    /// Completes the payload that a converted hook reads, where a generated program
    /// passes it on and adds to it.
    fn payload_of_program(&self, _payload: &mut Value) {}

    /// The answer of a converted hook in the agent's own words, where a generated
    /// program translates it.
    fn answer_of_program(&self, _answer: &Value) -> Option<Value> {
        None
    }

    /// How to read and fill the agent's own record of what its user trusts.
    fn trust_ledger(&self) -> Option<&'static dyn TrustLedger> {
        None
    }

    /// A shell pattern of the answers that deny. A generated script that runs
    /// several hooks gives the first of these, or else the last answer.
    fn deny_pattern(&self) -> &'static str {
        "?*"
    }

    /// The text of a config file, before it is written.
    fn config_text(&self, text: String) -> String {
        text
    }
}

/// How a generated program calls the bridge.
#[derive(Debug, Clone, Copy)]
pub struct BridgeCall<'a> {
    /// What it starts.
    pub command: &'a [String],
    /// When it ends what it started.
    pub seconds: f64,
    /// Whom it asks first.
    pub daemon: Option<BridgeDaemon<'a>>,
}

/// The daemon that a generated program asks.
#[derive(Debug, Clone, Copy)]
pub struct BridgeDaemon<'a> {
    /// Its socket.
    pub socket: &'a str,
    /// Where it must look for hooks to be asked.
    pub folders: &'a str,
}

/// For agents that their table describes completely.
pub struct NoQuirks;

impl Quirks for NoQuirks {}

/// The effect of an answer to what has already happened.
pub(crate) const ALREADY_HAPPENED: &str = "it has already happened; the model sees the reason";

/// `PreToolUse` as `pre_tool_use`, for agents that spell their events both ways.
pub(crate) fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Sets the canonical status of a finished tool call.
pub(crate) fn set_status(event: &mut HookEvent, is_success: bool) {
    let status = if is_success { "success" } else { "error" };
    event.data.insert(field::STATUS.into(), json!(status));
}

pub(crate) fn set_mcp(event: &mut HookEvent, server: &str, tool: &str) {
    let mcp = json!({"server": server, "tool": tool});
    event.data.insert(field::MCP.into(), mcp);
}

/// Reason and context of a deny as one text: what has already happened cannot be
/// denied, but the model can see why it should not have.
pub(crate) fn feedback(response: &HookResponse) -> Option<String> {
    let reason = response.reason.as_deref();
    let reason = reason.filter(|_| response.decision == Some(Decision::Deny))?;
    Some(match &response.context {
        Some(context) => format!("{reason}\n\n{context}"),
        None => reason.to_owned(),
    })
}

/// Decodes a native `{file_path, edits}` that covers writes and edits. One edit of
/// an empty text creates a file.
pub(crate) fn decode_file_edits(native: &Value, event: &mut HookEvent) {
    let edits = native.get("edits").and_then(Value::as_array);
    let edits = edits.into_iter().flatten();
    let edits: Vec<Value> = edits
        .map(|edit| json!({"old": edit.get("old_string"), "new": edit.get("new_string")}))
        .collect();
    let path = native.get("file_path");
    let (name, input) = match edits.as_slice() {
        [one] if one.get("old") == Some(&json!("")) => {
            let content = one.get("new");
            ("file_write", json!({"path": path, "content": content}))
        }
        _ => ("file_edit", json!({"path": path, "edits": edits})),
    };
    let kinds = json!(["file_write", "file_edit"]);
    event.data.insert(field::TOOL_NAME.into(), json!(name));
    event.data.insert(field::TOOL_KINDS.into(), kinds);
    event.data.insert(field::TOOL_INPUT.into(), input);
}

/// The way back from [`decode_file_edits`].
pub(crate) fn encode_file_edits(event: &HookEvent) -> Value {
    let input = event.tool_input().cloned().unwrap_or_default();
    let edits = match (input.get("content"), input.get("edits")) {
        (Some(content), _) => vec![json!({"old_string": "", "new_string": content})],
        (None, Some(Value::Array(edits))) => edits
            .iter()
            .map(|edit| json!({"old_string": edit.get("old"), "new_string": edit.get("new")}))
            .collect(),
        _ => Vec::new(),
    };
    json!({"file_path": input.get("path"), "edits": edits})
}
