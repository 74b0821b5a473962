//! What the agent reads of a hook's answer: exit codes, texts, templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{LazyJson, Str, as_json};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerProfile {
    pub reads: ReadsAt,
    /// What exit 2 means to the agent.
    pub exit2: ExitMeaning,
    /// Exit 2 without a text on stderr is a failed hook, and not a deny.
    pub needs_reason: bool,
    /// What other non-zero codes mean.
    pub other_exit: ExitMeaning,
    pub plain: PlainText,
    /// JSON is read from stderr if stdout is empty.
    pub stderr_fallback: bool,
    /// Printed as an empty answer, for agents that misread empty output.
    #[serde(with = "as_json")]
    pub empty: Option<Map<String, Value>>,
    pub deny: Vec<Template>,
    pub ask: Vec<Template>,
    /// Grants what the agent would ask the user for. Written only if a hook asks
    /// for it.
    pub approve: Vec<Template>,
    pub context: Vec<Template>,
    pub message: Vec<Template>,
    pub rewrite: Vec<Template>,
    /// `continue: false`.
    pub stop: Vec<Template>,
    pub suppress: Vec<Template>,
    pub rewrite_mode: RewriteMode,
    /// Without a user, such as in a headless run, `ask` has no effect.
    pub ask_needs_user: bool,
    /// What the agent does with a part of an answer, for users.
    pub effect: BTreeMap<AnswerPart, Str>,
}

/// Exit codes at which the agent reads JSON on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReadsAt {
    #[default]
    #[serde(rename = "0")]
    Zero,
    #[serde(rename = "0,2")]
    ZeroAndTwo,
    #[serde(rename = "!2")]
    AllButTwo,
    #[serde(rename = "any")]
    Any,
    #[serde(rename = "none")]
    Never,
}

/// What an exit code other than 0 means to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitMeaning {
    #[default]
    Warn,
    Deny,
    Ignored,
}

/// What plain text on stdout at exit 0 means to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlainText {
    #[default]
    Ignored,
    Context,
    Message,
    Error,
}

/// How the agent applies a rewritten tool input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewriteMode {
    /// It replaces the whole input.
    #[default]
    Replace,
    /// It replaces the whole input, and refuses one without an argument that the
    /// call has.
    Complete,
    /// Its keys are merged into the input.
    Merge,
}

/// The parts of an answer that have templates in an [`AnswerProfile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerPart {
    Deny,
    Ask,
    Approve,
    Context,
    Message,
    Rewrite,
    Stop,
    Suppress,
}

/// One form of a part of an answer. The first of a list is written, all are read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Template {
    pub exit: i32,
    /// An object with holes, or a text with holes.
    pub stdout: LazyJson,
    pub stderr: Option<Str>,
}
