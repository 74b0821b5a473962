//! One line of the journal: an event, what the hooks did, what the agent was told.
//!
//! The dispatcher appends it, the store and the page read it. Fields are only
//! ever added; a reader ignores what it does not know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::HookEvent;
use crate::response::{Decision, HookResponse};

pub const RECORD_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Record {
    pub v: u32,
    /// UUID; the key by which a record is recognised again.
    pub id: String,
    /// RFC 3339, when the answer was given.
    pub time: String,
    pub kind: RecordKind,
    /// The agent's slug.
    pub agent: String,
    /// With secrets redacted.
    pub event: HookEvent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The merged response, with secrets redacted.
    #[serde(default)]
    pub response: HookResponse,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// What the agent was told, as it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What could not be rendered for this agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Loss>,
    /// Own troubles: manifest broken, not trusted, evaluator missing, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// From payload read to answer ready.
    #[serde(default)]
    pub duration_ms: f64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// An agent called, and was answered.
    #[default]
    Event,
    /// A detached hook ended.
    AsyncEnd,
    /// The dispatcher itself could not do its work.
    Failure,
}

/// One hook of one event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HookRun {
    /// Its name, or `#3` by position (from 1).
    pub hook: String,
    /// Path of the manifest that it stands in.
    pub manifest: String,
    pub outcome: RunOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default)]
    pub duration_ms: f64,
    /// Reason of a decision, text of a warning, rule of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    #[default]
    Allow,
    Deny,
    Ask,
    /// Ended in a way that is a warning: exit 1, non-blocking exit 2, ...
    Warn,
    /// Could not be understood or started.
    Error,
    Timeout,
    /// Detached.
    Started,
    /// A policy refused it.
    Refused,
    /// Not run: an earlier blocking hook had denied already.
    Skipped,
}

/// What a dispatcher writes for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answer {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    #[serde(default)]
    pub exit: i32,
}

/// A part of a response that an agent cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// `deny`, `ask`, `context`, `system_message`, `updated_input`, `continue`, `suppress_output`, ...
    pub field: String,
    /// Why, and what was done in its place.
    pub message: String,
}

impl Loss {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}
