//! Pitfalls of the agent, and the switches that turn its hooks off.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Str;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Absent {
    pub events: BTreeMap<Str, Str>,
    pub tools: BTreeMap<Str, Str>,
}

/// A pitfall of the agent, shown by `doctor` and on the agent's page.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    pub id: Str,
    pub what: Str,
    pub why: Str,
    pub remedy: Str,
}

/// A key that turns hooks off, and the hazard that describes it.
/// A project's file that sets environment variables.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvSource {
    /// Relative to the project.
    pub path: Str,
    /// Where the variables are in a JSON file, as a pointer. Without it the file
    /// has lines of the form `NAME=value`.
    pub at: Option<Str>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffSwitch {
    /// A JSON pointer, or without `/` a key next to the events.
    pub at: Str,
    pub off: SwitchOff,
    pub hazard: Str,
}

/// The value by which a switch turns hooks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchOff {
    True,
    False,
    /// A list of the hooks that are off.
    Names,
    /// A table of hooks; those with `enabled = false` are off.
    States,
}
