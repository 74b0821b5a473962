//! The canonical manifest: what a user writes once.
//!
//! Owns the structure of a manifest only: `parse` parses and checks it. Unknown
//! fields stay in `extra` at every level, so that a rewrite loses nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::matcher::Matcher;
use crate::word_enum::word_enum;

/// The supported versions of the interchange format.
pub(crate) const SPECS: [&str; 2] = [SPEC, SPEC_0_1];

/// The version of new manifests.
pub const SPEC: &str = "hooks/1.0";

/// The version before, which is read, and written on request.
pub const SPEC_0_1: &str = "hooks/0.1";

/// The time limit of a handler without `timeout`.
pub const DEFAULT_TIMEOUT_SECS: f64 = 30.0;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub spec: String,
    pub hooks: Vec<Hook>,
    /// Whether the hooks of one event run one after another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Manifest {
    /// Whether the hooks of one event run one after another. Version 0.1 of the format
    /// says that they run in their order.
    pub fn is_sequential(&self) -> bool {
        self.sequential || self.spec == SPEC_0_1
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hook {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
    pub handler: Handler,
    /// Whether this hook may prevent what triggers it.
    #[serde(default)]
    pub blocking: bool,
    /// What a failure of a blocking hook means; absent: [`OnFailure::Allow`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The hook runs only for calls that fit; what it may say is defined by
    /// `anyhook-guard`.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Value>,
    /// Whether its answer counts; absent: [`HookMode::Enforce`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<HookMode>,
    /// What a conversion does about each capability that the target lacks.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub degradation: Map<String, Value>,
    /// For people; it can only add to what is inferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Data for one agent only, by agent slug. Untrusted.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_data: Map<String, Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Hook {
    /// The author's strategy for a capability, if there is a valid one.
    pub fn strategy(&self, capability: &str) -> Option<Strategy> {
        Strategy::parse(self.degradation.get(capability)?.as_str()?)
    }

    /// Whether its answers are only recorded.
    pub fn only_observes(&self) -> bool {
        self.mode == Some(HookMode::Observe)
    }
}

/// What runs. One struct for all types: `parse` reports a field that does not
/// belong to the type, and keeps it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Handler {
    #[serde(rename = "type")]
    pub kind: HandlerKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// With arguments, `command` is a program, and no shell is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Platform::is_empty")]
    pub platform: Platform,
    /// Relative to the project root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub env: Map<String, Value>,
    /// Seconds. Absent and 0 mean [`DEFAULT_TIMEOUT_SECS`].
    #[serde(
        default,
        serialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_action: Option<TimeoutAction>,
    #[serde(default, rename = "async", skip_serializing_if = "std::ops::Not::not")]
    pub is_async: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Variables that `headers` may refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_env_vars: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The MCP server whose tool is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of that tool, with the agent's own placeholders.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Value>,
    /// The format of the payload that the program reads and of the answer that it
    /// writes: `canonical` (default), `contract`, `openhook`, or an agent's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Handler {
    /// What it runs, in the words of its type.
    pub fn program(&self) -> Option<&str> {
        let program = match self.kind {
            HandlerKind::Command => &self.command,
            HandlerKind::Http => &self.url,
            HandlerKind::Prompt | HandlerKind::Agent => &self.prompt,
            HandlerKind::McpTool => &self.tool,
        };
        program.as_deref().filter(|program| !program.is_empty())
    }
}

/// Writes `10`, not `10.0`, so that a whole number stays one.
#[allow(
    clippy::ref_option,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "serde fixes the signature; the guard fixes the range"
)]
fn seconds<S: serde::Serializer>(timeout: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
    match *timeout {
        Some(seconds) if seconds.fract() == 0.0 && (0.0..9e15).contains(&seconds) => {
            out.serialize_u64(seconds as u64)
        }
        Some(seconds) => out.serialize_f64(seconds),
        None => out.serialize_none(),
    }
}

word_enum! {
    #[derive(Default)]
    HandlerKind {
        #[default]
        Command = "command",
        Http = "http",
        Prompt = "prompt",
        Agent = "agent",
        McpTool = "mcp_tool",
    }
}

/// Commands for one operating system, in place of `command`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Platform {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux: Option<String>,
    #[serde(
        default,
        alias = "darwin",
        alias = "macos",
        skip_serializing_if = "Option::is_none"
    )]
    pub osx: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Platform {
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

word_enum! {
    /// What a failure of a hook means for the action that triggered it.
    #[derive(Default)]
    OnFailure {
        #[default]
        Allow = "allow",
        Block = "block",
    }
}

word_enum! {
    /// Whether a hook's answer has an effect.
    HookMode {
        Enforce = "enforce",
        /// What the hook would have done is recorded and not done.
        Observe = "observe",
    }
}

word_enum! {
    TimeoutAction { Warn = "warn", Block = "block" }
}

word_enum! {
    /// What a conversion does about a capability that the target lacks.
    Strategy {
        /// The converted hook denies and does not run its command.
        Block = "block",
        /// The hook runs with less, with a warning.
        Warn = "warn",
        /// The hook is left out, with a warning.
        Exclude = "exclude",
    }
}
