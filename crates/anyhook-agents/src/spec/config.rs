//! An agent's config files: their paths, their shape, the fields of a handler.

use std::collections::BTreeMap;

use anyhook_model::Format;
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

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    pub scope: Scope,
    /// Relative to the project, or with `~/`. `*` matches any name.
    pub path: Str,
    /// Given unless the shape is a folder of scripts or a generated program.
    pub format: Option<Format>,
    /// A variable that replaces the first folder of `path` (`CODEX_HOME` for `~/.codex`),
    /// with the folder below it where the agent has one (`GEMINI_CLI_HOME/.gemini`).
    /// `NAME=~/.a/b`: a variable that is the place of a deeper folder.
    pub home_env: Option<Str>,
    /// Name of the variant of `[config]` that this file has, if not the main one.
    pub variant: Option<Str>,
    /// The file that is written for this scope.
    #[serde(default)]
    pub write: bool,
    /// The agent reads it only in the folder that it is started in, not in the
    /// project that this folder belongs to.
    #[serde(default)]
    pub start_folder_only: bool,
    /// The file, relative as `path` is, beside which the agent ignores the hooks of
    /// this one.
    #[serde(default)]
    pub ignored_beside: Option<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigShape {
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
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub shape: ConfigShape,
    /// JSON pointer to the event map or hook list.
    pub root: Str,
    /// What a new file begins with.
    #[serde(with = "as_json")]
    pub preamble: Map<String, Value>,
    /// In a list: pointer to the event's name.
    pub event_at: Option<Str>,
    pub matcher: MatcherSpec,
    pub handler: HandlerSpec,
    /// Keys next to the events that are not events.
    pub not_events: Vec<Str>,
    /// Other file shapes of the same agent, by name. Each is complete.
    pub variant: BTreeMap<Str, Config>,
    /// Event names of this variant where they differ: native → this variant's.
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
    /// Exact name or glob, or `re:` and a regex that the agent anchors.
    GlobOrRegex,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatcherSpec {
    pub syntax: MatcherSyntax,
    /// JSON pointer in the group, entry or hook.
    pub at: Str,
    /// The matcher for "everything"; absent: the key is left out.
    pub any: Option<Str>,
    /// Spellings that mean "everything" when read.
    pub any_read: Vec<Str>,
    /// The matcher is an array of names.
    pub list: bool,
    /// Canonical tool (`mcp` for any MCP tool) → the class of tools that the
    /// matcher names instead. Empty: matchers name tools.
    pub classes: BTreeMap<Str, Str>,
    /// At an event that is not about a tool, a matcher is one exact name.
    pub exact_subject: bool,
    /// Characters besides letters, digits, `_` and `|` that an exact list may have.
    pub list_chars: Str,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlerSpec {
    /// Pointer to the type; absent: entries have no type.
    pub type_at: Option<Str>,
    /// Canonical handler type → native type.
    pub types: BTreeMap<Str, Str>,
    /// Native events for which a type is allowed, if not for all.
    pub type_events: BTreeMap<Str, Vec<Str>>,
    /// Formats besides the agent's own in which its handlers can be called.
    pub dialects: Vec<Str>,
    /// The type is written even if it is `command`.
    pub write_type: bool,
    #[serde(rename = "field")]
    pub fields: Vec<HandlerField>,
    /// Seconds after which the agent ends a handler without a timeout.
    pub default_timeout: Option<f64>,
    /// The longest timeout that the agent accepts, in seconds.
    pub max_timeout: Option<f64>,
    /// The name of an entry whose hook has none, if the agent requires one.
    pub unnamed: Option<Str>,
    /// Of two entries with the same name the agent runs one.
    pub unique_names: bool,
    /// The key and value by which the failure of an entry blocks.
    pub fail_closed: Option<FailClosed>,
    /// Native keys that are fixed for each entry.
    #[serde(with = "as_json")]
    pub constants: Map<String, Value>,
    /// Keys that decoding may keep under `provider_data` and encoding may write
    /// back, for agents that reject a file with others. Absent: any.
    pub known_keys: Option<Vec<Str>>,
    /// Native key → kind of its value, if the agent rejects a file with another.
    pub kinds: BTreeMap<Str, ValueKind>,
}

impl HandlerSpec {
    /// After how many seconds the agent gives up on a handler, whatever its entry says;
    /// `None` if the entry decides.
    pub fn longest_wait(&self) -> Option<f64> {
        let has_timeout = self.fields.iter().any(|field| field.to == "timeout");
        if has_timeout {
            self.max_timeout
        } else {
            self.default_timeout
        }
    }
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
    /// Native events whose entries may have it; empty: all.
    #[serde(default)]
    pub events: Vec<Str>,
}

impl FailClosed {
    /// Whether the failure of an entry at this native event can block.
    pub fn applies_to(&self, native_event: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|event| event == native_event)
    }
}

/// One row of a handler: a canonical field and its native pointer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandlerField {
    /// `command`, `timeout`, `env`, `platform.windows`, `name`, ...
    pub to: Str,
    /// JSON pointer in the handler.
    pub at: Str,
    #[serde(default, rename = "as")]
    pub codec: Codec,
    /// Read but never written: an older or second spelling.
    #[serde(default)]
    pub read_only: bool,
}
