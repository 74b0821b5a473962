//! What a hook answers: `HookResponse`, the stdout of a canonical handler.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::word_enum::word_enum;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HookResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `false` ends the agent's loop.
    #[serde(default, rename = "continue", skip_serializing_if = "Option::is_none")]
    pub should_continue: Option<bool>,
    /// For the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// For the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_output: Option<bool>,
    /// The tool's new arguments, with canonical keys.
    #[serde(
        default,
        alias = "modify_args",
        skip_serializing_if = "Option::is_none"
    )]
    pub updated_input: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_action: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

word_enum! {
    /// From the weakest to the strongest.
    Decision { Allow = "allow", Ask = "ask", Deny = "deny" }
}

impl HookResponse {
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            decision: Some(Decision::Deny),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Denies what the hooks only asked about: their reason stays, and `why` is added.
    pub fn turn_into_deny(&mut self, why: &str) {
        self.decision = Some(Decision::Deny);
        self.reason = Some(match self.reason.take() {
            Some(reason) if !reason.trim().is_empty() => format!("{reason}\n({why})"),
            _ => why.to_owned(),
        });
    }

    pub fn is_deny(&self) -> bool {
        self.decision == Some(Decision::Deny)
    }
}
