//! An event of the agent: its names, its matcher, its payload and answer.

use anyhook_model::event::field;
use anyhook_model::registry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{PayloadRow, Str, as_json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocking {
    /// A deny prevents the action.
    Prevent,
    /// A deny makes the agent continue its work.
    Retry,
    /// The action has already happened; a deny gives the model feedback.
    Feedback,
    /// The agent ignores the hook's answer.
    Observe,
}

/// What an event's matcher is tested against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatcherSubject {
    /// The event takes no matcher.
    #[default]
    None,
    /// The tool's name: the only subject that canonical matchers have.
    Tool,
    AgentName,
    AgentType,
    Command,
    CommandName,
    Error,
    File,
    FilePath,
    LoadReason,
    McpServerName,
    Model,
    NotificationType,
    Prompt,
    Reason,
    Source,
    Trigger,
}

impl MatcherSubject {
    /// The key of the canonical event's data that has it, where canonical
    /// matchers know it.
    pub fn data_key(self) -> Option<&'static str> {
        match self {
            Self::Source => Some(field::START_SOURCE),
            Self::Reason => Some("reason"),
            Self::Trigger => Some(field::TRIGGER),
            Self::NotificationType => Some("notification_type"),
            Self::AgentType | Self::AgentName => Some(field::AGENT_TYPE),
            Self::Error => Some(field::ERROR),
            _ => None,
        }
    }
}

impl EventSpec {
    /// The key of the event's data that its matchers are compared with, if it is
    /// not about a tool and canonical matchers know it.
    pub fn subject(&self) -> Option<&'static str> {
        let canonical = registry::event(self.is.as_deref()?)?.subject?;
        (self.matcher.data_key() == Some(canonical)).then_some(canonical)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    pub native: Str,
    /// Canonical event; absent if only this agent has it.
    pub is: Option<Str>,
    /// Other native spellings, in config or payload.
    #[serde(default)]
    pub aliases: Vec<Str>,
    /// Its name in payloads, if not `native`.
    pub payload_name: Option<Str>,
    pub blocking: Blocking,
    #[serde(default)]
    pub matcher: MatcherSubject,
    /// The event is only for these canonical tools (`mcp` for any MCP tool).
    #[serde(default)]
    pub tools: Vec<Str>,
    /// Name of the answer profile; absent if the agent reads no answer.
    pub answer: Option<Str>,
    /// Name of the payload's row set.
    pub common: Option<Str>,
    #[serde(default)]
    pub rows: Vec<PayloadRow>,
    /// Top-level keys of the payload that no row names, for conversions as in
    /// [`ToolSpec::other_keys`].
    #[serde(default)]
    pub other_keys: Vec<Str>,
    /// Fixed canonical data (`status = "error"`).
    #[serde(default, with = "as_json")]
    pub data: Map<String, Value>,
    /// Pointers by which a payload without a name is recognised, as in `detect`.
    #[serde(default)]
    pub marks: Vec<Str>,
    /// How the event differs, if it is only similar to the canonical one.
    pub approximate: Option<Str>,
    /// Read but never written: an older or second spelling.
    #[serde(default)]
    pub read_only: bool,
    /// The longest timeout of its handlers, in seconds.
    pub max_timeout: Option<f64>,
    /// The bridge does not subscribe to it: too frequent, or of no use.
    #[serde(default)]
    pub noisy: bool,
    pub note: Option<Str>,
}
