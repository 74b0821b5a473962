//! How an agent's hooks are written down: its files, their shape, the fields of
//! a handler.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Codec, Str, as_json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    Project,
    Local,
    User,
    Managed,
    Plugin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    Json,
    Jsonc,
    Toml,
    Yaml,
    /// A folder with one file per event or hook.
    Folder,
    /// A generated program.
    Plugin,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    pub scope: Scope,
    /// Relative to the project, or with `~/`. `*` stands for any name.
    pub path: Str,
    pub format: FileFormat,
    /// A variable that replaces the first folder of `path` (`CODEX_HOME` for `~/.codex`).
    #[serde(default)]
    pub home_env: Option<Str>,
    /// Name of the variant of `[config]` that this file has, when not the main one.
    #[serde(default)]
    pub variant: Option<Str>,
    /// The file that is written for this scope.
    #[serde(default)]
    pub write: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// event → [{matcher, hooks: [handler]}]
    #[default]
    Grouped,
    /// event → [handler with matcher]
    Flat,
    /// [hook with event, matcher and handler]
    List,
    /// one object, one hook
    Single,
    /// one executable file per event
    Scripts,
    /// a generated program
    Plugin,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub shape: Shape,
    /// JSON pointer to the event map or hook list.
    #[serde(default)]
    pub root: Str,
    /// What a fresh file begins with.
    #[serde(default)]
    #[serde(with = "as_json")]
    pub preamble: Map<String, Value>,
    /// In a list: where the event's name stands.
    #[serde(default)]
    pub event_at: Option<Str>,
    #[serde(default)]
    pub matcher: MatcherSpec,
    #[serde(default)]
    pub handler: HandlerSpec,
    /// Keys of the root object that are not events, though they stand among them.
    #[serde(default)]
    pub not_events: Vec<Str>,
    /// Other file shapes of the same agent, by name. Each is whole.
    #[serde(default)]
    pub variant: BTreeMap<Str, Config>,
    /// Event names of this variant where they differ: native → this variant's.
    #[serde(default)]
    pub event_names: BTreeMap<Str, Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatcherSyntax {
    /// The agent has no matchers, or ignores them.
    #[default]
    None,
    /// Exact names joined by `|`, anything else an unanchored regex.
    List,
    /// Always a regex, unanchored.
    Regex,
    /// Always a regex, anchored by the agent.
    AnchoredRegex,
    /// Exact name or glob; `@server/tool` for MCP.
    Glob,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatcherSpec {
    #[serde(default)]
    pub syntax: MatcherSyntax,
    /// JSON pointer in the group, entry or hook.
    #[serde(default)]
    pub at: Str,
    /// What stands for "everything"; absent: the key is left out.
    #[serde(default)]
    pub any: Option<Str>,
    /// Spellings that mean "everything" when read.
    #[serde(default)]
    pub any_read: Vec<Str>,
    /// The matcher is an array of names.
    #[serde(default)]
    pub list: bool,
    /// Canonical tool (`mcp` for any MCP tool) → the class of tools that the
    /// matcher names in its place. Absent: tools have names of their own.
    #[serde(default)]
    pub classes: BTreeMap<Str, Str>,
    /// Characters besides letters, digits, `_` and `|` that an exact list may have.
    #[serde(default)]
    pub list_chars: Str,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandlerSpec {
    /// Where the type stands; absent: entries have no type.
    #[serde(default)]
    pub type_at: Option<Str>,
    /// Canonical handler type → native type.
    #[serde(default)]
    pub types: BTreeMap<Str, Str>,
    /// Native events for which a type is allowed, when not for all.
    #[serde(default)]
    pub type_events: BTreeMap<Str, Vec<Str>>,
    /// The type is written even when it is `command`.
    #[serde(default)]
    pub write_type: bool,
    #[serde(default, rename = "field")]
    pub fields: Vec<Field>,
    /// Seconds after which the agent ends a handler that does not say.
    #[serde(default)]
    pub default_timeout: Option<f64>,
    /// The longest timeout that the agent accepts, in seconds.
    #[serde(default)]
    pub max_timeout: Option<f64>,
    /// The name of an entry whose hook has none, where the agent wants one.
    #[serde(default)]
    pub unnamed: Option<Str>,
    /// How an entry says that its own failure blocks: key and value.
    #[serde(default)]
    pub fail_closed: Option<FailClosed>,
    /// Native keys that are fixed for each entry.
    #[serde(default)]
    #[serde(with = "as_json")]
    pub constants: Map<String, Value>,
    /// Keys that decoding may keep under `provider_data` and encoding write
    /// back. Absent: any. Present: an agent that voids the file for others.
    #[serde(default)]
    pub known_keys: Option<Vec<Str>>,
    /// Native key → what its value must be, where another voids the file.
    #[serde(default)]
    pub kinds: BTreeMap<Str, ValueKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    Boolean,
    /// A whole number above 0, or null.
    CountOrNull,
}

impl ValueKind {
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::CountOrNull => value.is_null() || value.as_u64().is_some_and(|count| count > 0),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailClosed {
    /// JSON pointer in the handler.
    pub at: Str,
    #[serde(with = "as_json")]
    pub value: Value,
}

/// One row of a handler: a canonical field and its native place.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// `command`, `timeout`, `env`, `platform.windows`, `name`, ...
    pub to: Str,
    /// JSON pointer in the handler.
    pub at: Str,
    #[serde(default, rename = "as")]
    pub codec: Codec,
    /// Read, never written: an older or second spelling.
    #[serde(default)]
    pub read_only: bool,
}
