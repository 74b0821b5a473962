//! What happened in an agent: `HookEvent`, the stdin of a canonical handler.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HookEvent {
    /// Canonical event name; the agent's own name when there is no canonical one.
    pub event: String,
    /// The agent's slug.
    pub source: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub native_event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// By event: `tool_name`, `tool_input`, `prompt`, ... See [`field`].
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// What has no canonical place; the agent's own fields are under `native`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Keys of [`HookEvent::data`] that have a meaning for every agent.
pub mod field {
    /// Canonical tool name, or the native one when the vocabulary has none.
    pub const TOOL_NAME: &str = "tool_name";
    pub const NATIVE_TOOL_NAME: &str = "native_tool_name";
    pub const TOOL_CALL_ID: &str = "tool_call_id";
    /// All canonical tools that the called one covers, if several.
    pub const TOOL_KINDS: &str = "tool_kinds";
    /// With canonical keys for tools of the vocabulary.
    pub const TOOL_INPUT: &str = "tool_input";
    pub const TOOL_OUTPUT: &str = "tool_output";
    /// `success` or `error`.
    pub const STATUS: &str = "status";
    pub const ERROR: &str = "error";
    pub const DURATION_MS: &str = "duration_ms";
    pub const PROMPT: &str = "prompt";
    pub const TRANSCRIPT_PATH: &str = "transcript_path";
    pub const REASON: &str = "reason";
    pub const MODEL: &str = "model";
    /// `{server, tool}` when the tool is an MCP server's.
    pub const MCP: &str = "mcp";
    pub const LAST_MESSAGE: &str = "last_message";
    pub const STOP_HOOK_ACTIVE: &str = "stop_hook_active";
    pub const AGENT_ID: &str = "agent_id";
    pub const AGENT_TYPE: &str = "agent_type";
    pub const TRIGGER: &str = "trigger";
    pub const MESSAGE: &str = "message";
    pub const PERMISSION_MODE: &str = "permission_mode";
    /// How a session began: startup, resume, clear, compact.
    pub const START_SOURCE: &str = "start_source";
}

/// Key of [`HookEvent::metadata`] for the agent's own fields.
pub const NATIVE: &str = "native";

impl HookEvent {
    pub fn text(&self, key: &str) -> Option<&str> {
        self.data.get(key).and_then(Value::as_str)
    }

    pub fn tool_name(&self) -> Option<&str> {
        self.text(field::TOOL_NAME)
    }

    pub fn native_tool_name(&self) -> Option<&str> {
        self.text(field::NATIVE_TOOL_NAME)
            .or_else(|| self.tool_name())
    }

    /// All canonical tools that the called one covers, if several.
    pub fn tool_kinds(&self) -> impl Iterator<Item = &str> {
        let kinds = self.data.get(field::TOOL_KINDS).and_then(Value::as_array);
        kinds.into_iter().flatten().filter_map(Value::as_str)
    }

    pub fn tool_input(&self) -> Option<&Map<String, Value>> {
        self.data.get(field::TOOL_INPUT).and_then(Value::as_object)
    }

    /// The MCP server and tool that this call goes to.
    pub fn mcp(&self) -> Option<(&str, &str)> {
        let mcp = self.data.get(field::MCP)?.as_object()?;
        let part = |key| mcp.get(key).and_then(Value::as_str).unwrap_or_default();
        Some((part("server"), part("tool")))
    }
}
