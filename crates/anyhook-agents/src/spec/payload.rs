//! The rows of a payload: a canonical field, its native pointer, how the values differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Str, as_json};

/// How a native value differs from the canonical one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// Equal on both sides.
    #[default]
    Same,
    /// Native is seconds where canonical is seconds.
    Seconds,
    /// Native is milliseconds where canonical is seconds.
    Millis,
    /// Whole native seconds where canonical is seconds; rounds up.
    WholeSeconds,
    /// Native seconds below 1000, else milliseconds; written as seconds.
    SecondsOrMillis,
    /// Native is seconds where canonical is milliseconds.
    MsFromSeconds,
    /// Native is epoch milliseconds where canonical is RFC 3339.
    EpochMillis,
    /// Native is epoch milliseconds as text where canonical is RFC 3339.
    EpochMillisText,
    /// Native is a text that contains JSON.
    Json,
    /// Native is an array, canonical its first item.
    First,
    /// Native is an array of texts; canonical the joined text, and the list
    /// under the plural of its key.
    Lines,
    /// Native is an array of `{path}` or texts; canonical the first path, and
    /// the list under the plural of its key.
    Paths,
    /// Native is an array of `{type, text}`, canonical the joined text.
    TextParts,
    /// Native is the opposite boolean.
    Not,
    /// Native is an object; canonical `provider/model` from `providerID`/`modelID`.
    ModelObject,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PayloadSpec {
    /// Pointer to the event's name; absent if payloads have none.
    pub event_at: Option<Str>,
    /// Row sets by name; an event uses `common` unless it names another.
    pub rows: BTreeMap<Str, Vec<PayloadRow>>,
    /// Fields that scripts expect but an event of another agent does not have.
    #[serde(with = "as_json")]
    pub defaults: Map<String, Value>,
}

/// One row of a payload: a canonical field and its native pointer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadRow {
    /// `session_id`, `cwd`, `timestamp`, `tool_name`, `tool_input`,
    /// `tool_input.<key>`, `mcp.server`, `mcp.tool`, or a key of `data`.
    pub to: Str,
    /// JSON pointer in the payload.
    pub at: Str,
    #[serde(default, rename = "as")]
    pub codec: Codec,
    /// A second pointer for the same field, read if the first is missing.
    #[serde(default)]
    pub alt: bool,
    /// Only some calls have it, such as those of subagents. A program that counts on it
    /// needs an agent that always sends it.
    #[serde(default)]
    pub sometimes: bool,
    /// The words that the field may have, if these are the agent's own: a program
    /// that looks for one of them needs an agent with the same word.
    #[serde(default)]
    pub words: Vec<Str>,
}
