//! The canonical manifest: what a user writes once.
//!
//! Owns the shape of a manifest and nothing else: parsing with positions is in
//! `parse`, checks are in `validate`. Fields that this version does not know
//! stay in `extra` at every level, so that a rewrite loses nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::matcher::Matcher;

/// Versions of the interchange format that are read.
pub const SPECS: [&str; 2] = ["hooks/1.0", "hooks/0.1"];

/// The version that is written when there is no other to keep.
pub const SPEC: &str = "hooks/1.0";

/// Seconds a handler may run when it does not say.
pub const DEFAULT_TIMEOUT_SECS: f64 = 30.0;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub spec: String,
    pub hooks: Vec<Hook>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// What to do about each capability that a target lacks.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub degradation: Map<String, Value>,
    /// For people; inference never trusts it to take anything away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// What only one agent understands, by that agent's slug. Untrusted.
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
}

/// What runs. One struct for all types: a field that does not belong to the
/// type is reported by `validate`, and kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Handler {
    #[serde(rename = "type")]
    pub kind: HandlerKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
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
    /// Whose payload the program reads and whose answer it writes:
    /// `canonical` (default), `contract`, `openhook`, or an agent's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `10`, not `10.0`: what was written as a whole number stays one.
#[allow(
    clippy::ref_option,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "serde fixes the signature; the guard fixes the range"
)]
fn seconds<S: serde::Serializer>(timeout: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
    match *timeout {
        Some(seconds) if seconds.fract() == 0.0 && (0.0..1e15).contains(&seconds) => {
            out.serialize_u64(seconds as u64)
        }
        Some(seconds) => out.serialize_f64(seconds),
        None => out.serialize_none(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandlerKind {
    #[default]
    Command,
    Http,
    Prompt,
    Agent,
}

impl HandlerKind {
    pub const ALL: [Self; 4] = [Self::Command, Self::Http, Self::Prompt, Self::Agent];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Http => "http",
            Self::Prompt => "prompt",
            Self::Agent => "agent",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeoutAction {
    Warn,
    Block,
}

/// What a conversion does about a capability that the target lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The converted hook denies, and does not run its command.
    Block,
    /// The hook runs with less, and the user is told.
    Warn,
    /// The hook is left out, and the user is told.
    Exclude,
}

impl Strategy {
    pub const ALL: [Self; 3] = [Self::Block, Self::Warn, Self::Exclude];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Warn => "warn",
            Self::Exclude => "exclude",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.as_str() == text)
    }
}
