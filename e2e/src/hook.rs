//! The recorder hook: the log of its calls and the rules for its answers.
//! `e2e-hook FOLDER EVENT` is the program; this module is shared with the readers of the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The log of calls, one line of JSON each.
pub const CALLS_FILE: &str = "hooks.jsonl";
/// The rules, a JSON array of [`Rule`].
pub const RULES_FILE: &str = "rules.json";

/// One call of the hook.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookCall {
    pub event: String,
    /// Arguments after the event.
    pub args: Vec<String>,
    pub cwd: String,
    pub stdin: String,
    pub env: BTreeMap<String, String>,
}

impl HookCall {
    /// The payload, if it is JSON.
    pub fn payload(&self) -> Option<Value> {
        serde_json::from_str(&self.stdin).ok()
    }
}

/// How the hook answers a call; the first rule that matches applies; without one the hook prints nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    pub event: String,
    /// Only when this text occurs in the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Only the first time.
    pub once: bool,
    pub sleep_ms: u64,
    /// Text, or a JSON value that is printed as such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    pub exit: i32,
    /// Die by a signal instead of exiting.
    pub abort: bool,
}

impl Rule {
    pub fn on(event: impl Into<String>) -> Self {
        Rule {
            event: event.into(),
            ..Rule::default()
        }
    }

    pub fn contains(mut self, text: impl Into<String>) -> Self {
        self.contains = Some(text.into());
        self
    }

    pub fn stdout(mut self, value: impl Into<Value>) -> Self {
        self.stdout = Some(value.into());
        self
    }

    pub fn matches(&self, event: &str, payload: &str) -> bool {
        self.event == event
            && self
                .contains
                .as_ref()
                .is_none_or(|text| payload.contains(text))
    }
}
