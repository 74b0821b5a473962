//! One line of the journal: an event, what the hooks did, and the answer to the agent.
//!
//! The dispatcher appends it, the store and the page read it. Fields are only
//! ever added; a reader ignores unknown ones.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::HookEvent;
use crate::response::{Decision, HookResponse};

pub const RECORD_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Record {
    pub v: u32,
    /// UUID; identifies the record.
    pub id: String,
    /// RFC 3339, time of the answer.
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
    /// The answer as it was sent to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What could not be rendered for this agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Loss>,
    /// Problems of anyhook itself: manifest broken, not trusted, evaluator missing, ...
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
    /// An agent called and got an answer.
    #[default]
    Event,
    /// A detached hook ended.
    AsyncEnd,
    /// The dispatcher itself failed.
    Failure,
    /// The user allowed a denied call once.
    AllowedOnce,
}

/// One hook of one event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HookRun {
    /// Its name, or `#3` by position (from 1).
    pub hook: String,
    /// Path of its manifest.
    pub manifest: String,
    /// A hash of what the manifest says about it, the same wherever the manifest is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    pub outcome: RunOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default)]
    pub duration_ms: f64,
    /// Reason of a decision, text of a warning, rule of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What it wrote to stderr; only `anyhook test` keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Why `outcome` had no effect; absent: it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_effect: Option<WithoutEffect>,
}

/// Why the answer of a hook had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutEffect {
    /// The hook has `mode: observe`.
    Observed,
    /// The user let the call through with `anyhook allow-once`.
    AllowedOnce,
}

impl HookRun {
    /// Whether the hook did not do its work, or was not allowed to.
    pub fn has_failed(&self) -> bool {
        matches!(
            self.outcome,
            RunOutcome::Error | RunOutcome::Timeout | RunOutcome::Refused | RunOutcome::Warn
        )
    }

    /// The outcome in words: `deny`, or `would deny` if it had no effect.
    pub fn outcome_text(&self) -> String {
        let outcome = serde_json::to_value(self.outcome).unwrap_or_default();
        let outcome = outcome.as_str().unwrap_or_default();
        match (self.without_effect, self.outcome) {
            (None, _) => outcome.to_owned(),
            (Some(WithoutEffect::Observed), RunOutcome::Deny | RunOutcome::Ask) => {
                format!("would {outcome}")
            }
            (Some(WithoutEffect::Observed), _) => format!("{outcome}, only observed"),
            (Some(WithoutEffect::AllowedOnce), _) => {
                format!("would {outcome}, allowed once by the user")
            }
        }
    }
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

/// A part of a response that cannot be expressed for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// `deny`, `ask`, `context`, `system_message`, `updated_input`, `continue`, `suppress_output`, ...
    pub field: String,
    /// Why, and what was done instead.
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
