//! The shape of `agents/<slug>/agent.toml`: all that is known of one agent.
//!
//! The same structs are read by `build.rs` (from TOML, so that a mistake stops
//! the build with file and line) and at run time (from the compact form that
//! the build makes of it). Tables are data: what cannot be said here is in the
//! agent's `quirks.rs`.

#[path = "spec/config.rs"]
mod config;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use config::*;

pub type Str = Cow<'static, str>;

/// JSON inside a table. The compact form that the binary carries has it as
/// text, so that reading a table does not parse what one event never needs.
mod as_json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize + Default + PartialEq,
        S: Serializer,
    {
        if serializer.is_human_readable() {
            return value.serialize(serializer);
        }
        if *value == T::default() {
            return serializer.serialize_str("");
        }
        let text = serde_json::to_string(value).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: DeserializeOwned + Default,
        D: Deserializer<'de>,
    {
        if deserializer.is_human_readable() {
            return T::deserialize(deserializer);
        }
        let text = <&str>::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(T::default());
        }
        serde_json::from_str(text).map_err(D::Error::custom)
    }
}

/// A JSON value that is parsed when it is first looked at.
#[derive(Debug, Clone, Default)]
pub struct Lazy {
    text: String,
    value: OnceLock<Value>,
}

impl Lazy {
    pub fn get(&self) -> &Value {
        // The text was written from a value by the build.
        self.value
            .get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }

    pub fn is_null(&self) -> bool {
        self.text.is_empty()
    }

    pub fn is_object(&self) -> bool {
        self.text.starts_with('{')
    }
}

impl Serialize for Lazy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.get().serialize(serializer)
        } else {
            serializer.serialize_str(&self.text)
        }
    }
}

impl<'de> Deserialize<'de> for Lazy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = if deserializer.is_human_readable() {
            match Value::deserialize(deserializer)? {
                Value::Null => String::new(),
                value => value.to_string(),
            }
        } else {
            String::deserialize(deserializer)?
        };
        Ok(Self {
            text,
            value: OnceLock::new(),
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub id: Str,
    pub name: Str,
    pub homepage: Str,
    /// One sentence for people.
    pub summary: Str,
    #[serde(default)]
    pub aliases: Vec<Str>,
    pub verified: Verified,
    /// Not a client: a form that hooks and configs may have.
    #[serde(default)]
    pub pseudo: bool,
    /// Set when the agent is at its end: what follows it.
    #[serde(default)]
    pub legacy: Option<Str>,
    /// What the user must do before the agent runs hooks at all.
    #[serde(default)]
    pub trust: Option<Str>,
    /// Files of other agents that this one reads as well: its hooks would run twice.
    #[serde(default)]
    pub also_reads: Vec<Str>,
    #[serde(default)]
    pub detect: Detect,
    #[serde(default)]
    pub launch: Launch,
    /// Where the agent keeps what its user has trusted, where that is known
    /// well enough to read it, and to write it for a user who asks for it.
    #[serde(default)]
    pub ledger: Option<Ledger>,
    #[serde(default, rename = "file")]
    pub files: Vec<ConfigFile>,
    pub config: Config,
    #[serde(default)]
    pub payload: Payload,
    #[serde(default, rename = "event")]
    pub events: Vec<Event>,
    #[serde(default, rename = "tool")]
    pub tools: Vec<Tool>,
    #[serde(default)]
    pub mcp: McpNames,
    /// Ways of answering, by name; events refer to them.
    #[serde(default, rename = "answer")]
    pub answers: BTreeMap<Str, AnswerProfile>,
    /// Variables that the agent gives its hooks: name → template over
    /// `{project}`, `{session_id}`, `{transcript_path}`, `{event}`, `{tool}`.
    #[serde(default)]
    pub env: BTreeMap<Str, Str>,
    /// Canonical names that this agent lacks, each with the reason.
    #[serde(default)]
    pub absent: Absent,
    #[serde(default, rename = "hazard")]
    pub hazards: Vec<Hazard>,
}

/// One event and the way to answer it, by name.
pub type EventPart = (Event, Option<(Str, AnswerProfile)>);

impl Agent {
    /// The agent without events and answers, and each event with its answer:
    /// a call of the dispatcher needs one of them.
    #[must_use]
    pub fn apart(mut self) -> (Self, Vec<EventPart>) {
        let answers = std::mem::take(&mut self.answers);
        let parts = std::mem::take(&mut self.events)
            .into_iter()
            .map(|event| {
                let answer = event
                    .answer
                    .as_ref()
                    .and_then(|name| answers.get_key_value(name));
                let answer = answer.map(|(name, profile)| (name.clone(), profile.clone()));
                (event, answer)
            })
            .collect();
        (self, parts)
    }

    /// Without what only people, configs and chores need: the dispatcher reads
    /// this at every tool call.
    #[must_use]
    pub fn for_run(mut self) -> Self {
        self.homepage = Str::default();
        self.summary = Str::default();
        self.legacy = None;
        self.trust = None;
        self.also_reads.clear();
        self.files.clear();
        self.launch = Launch::default();
        self.ledger = None;
        self.config = Config::default();
        self.absent = Absent::default();
        self.hazards.clear();
        for event in &mut self.events {
            event.note = None;
            event.approximate = None;
        }
        for profile in self.answers.values_mut() {
            profile.effect.clear();
        }
        self
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// The version that the facts were checked against.
    pub version: Str,
    pub date: Str,
    /// `run`: the client was run; `source`: read in its code; `docs`: only documented.
    pub how: Str,
}

/// How the agent starts a hook's command line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    #[serde(default)]
    pub shell: Shell,
    /// On Windows commands go to PowerShell.
    #[serde(default)]
    pub powershell: bool,
    /// Endings under which a script of an event is found, the preferred first.
    #[serde(default)]
    pub endings: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// `/bin/sh -c`
    #[default]
    Sh,
    /// `bash -c`
    Bash,
    /// The user's shell, as a login shell: what a profile prints comes first,
    /// and it may set another PATH.
    Login,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    pub kind: LedgerKind,
    /// The file in the home.
    #[serde(default)]
    pub file: Str,
    /// A variable that trusts whatever folder it is.
    #[serde(default)]
    pub env: Str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LedgerKind {
    /// Hashes of single entries and a level per project, in `config.toml`
    /// beside the user's hooks.
    HashedEntries,
    /// A map of folders, in `file`.
    Folders,
}

/// How to tell that this agent is calling.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detect {
    /// Environment variables, `NAME` or `NAME=value`.
    #[serde(default)]
    pub env: Vec<Str>,
    /// JSON pointers that its payloads have; `!` before one: must be missing;
    /// `/a=b`: has that text; `/a*=b`: has a text with that in it.
    #[serde(default)]
    pub payload: Vec<Str>,
    /// Variables that mean that nobody sits before it.
    #[serde(default)]
    pub unattended: Vec<Str>,
    /// Arguments of the program that mean that nobody sits before it.
    #[serde(default)]
    pub headless: Vec<Str>,
    /// The program's name on PATH.
    #[serde(default)]
    pub binary: Vec<Str>,
    /// Folders in a project or home that tell that it is used.
    #[serde(default)]
    pub folders: Vec<Str>,
}

/// How a value differs between the two sides. Each states its law.
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
    /// Native is a text that holds JSON.
    Json,
    /// Native is an array, canonical its first item.
    First,
    /// Native is an array of texts; canonical the joined text, and the list
    /// under the plural of its key.
    Lines,
    /// Native is an array of `{path}` or texts; canonical the first path, and
    /// the list under the plural of its key.
    Paths,
    /// Native is the opposite boolean.
    Not,
    /// Native is `success`/`error`-like; see the event's `status`.
    Status,
    /// Native is an object; canonical `provider/model` from `providerID`/`modelID`.
    ModelObject,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// Where the payload says its event; absent: it does not.
    #[serde(default)]
    pub event_at: Option<Str>,
    /// Rows for every event, by set; events use `common` unless they say.
    #[serde(default)]
    pub rows: BTreeMap<Str, Vec<Row>>,
    /// Fields that scripts expect and that another agent's event cannot fill.
    #[serde(default)]
    #[serde(with = "as_json")]
    pub defaults: Map<String, Value>,
}

/// One row of a payload: a canonical place and a native one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// `session_id`, `cwd`, `timestamp`, `tool_name`, `tool_input`,
    /// `tool_input.<key>`, `mcp.server`, `mcp.tool`, or a key of `data`.
    pub to: Str,
    /// JSON pointer in the payload.
    pub at: Str,
    #[serde(default, rename = "as")]
    pub codec: Codec,
    /// A second place for the same thing: read when the first is missing.
    #[serde(default)]
    pub alt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocking {
    /// A deny keeps the thing from happening.
    Prevent,
    /// A deny sends the agent back to work.
    Retry,
    /// It has happened; a deny gives the model feedback.
    Feedback,
    /// Nothing that a hook says changes anything.
    Observe,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub native: Str,
    /// Canonical event; absent: only this agent has it.
    #[serde(default)]
    pub is: Option<Str>,
    /// Other native spellings, in config or payload.
    #[serde(default)]
    pub aliases: Vec<Str>,
    /// The payload's name for it, when it is not `native`.
    #[serde(default)]
    pub payload_name: Option<Str>,
    pub blocking: Blocking,
    /// What a matcher is tested against: `tool`, `none`, or another subject.
    #[serde(default)]
    pub matcher: Str,
    /// The event is only for these canonical tools (`mcp` for any MCP tool).
    #[serde(default)]
    pub tools: Vec<Str>,
    /// Name of the way to answer; absent: no answer is read.
    #[serde(default)]
    pub answer: Option<Str>,
    /// Row set of the payload.
    #[serde(default)]
    pub common: Option<Str>,
    #[serde(default)]
    pub rows: Vec<Row>,
    /// Fixed canonical data (`status = "error"`).
    #[serde(default)]
    #[serde(with = "as_json")]
    pub data: Map<String, Value>,
    /// Pointers by which a payload without a name is recognised, as in `detect`.
    #[serde(default)]
    pub marks: Vec<Str>,
    /// Set when the event is only near the canonical one: how it differs.
    #[serde(default)]
    pub approximate: Option<Str>,
    /// Read, never chosen when writing: an older or second way.
    #[serde(default)]
    pub read_only: bool,
    /// The longest time that a handler of it can ask for, in seconds.
    #[serde(default)]
    pub max_timeout: Option<f64>,
    /// The bridge does not ask for it: too frequent, or of no use.
    #[serde(default)]
    pub noisy: bool,
    #[serde(default)]
    pub note: Option<Str>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Canonical tool.
    pub is: Str,
    pub native: Str,
    /// Other native names that are decoded to the same canonical tool.
    #[serde(default)]
    pub aliases: Vec<Str>,
    /// Further canonical tools that this native tool does as well.
    #[serde(default)]
    pub also: Vec<Str>,
    /// Only when the native input has these values.
    #[serde(default)]
    #[serde(with = "as_json")]
    pub when: Map<String, Value>,
    /// Canonical key → native key.
    #[serde(default)]
    pub keys: BTreeMap<Str, Key>,
    /// How edits are written.
    #[serde(default)]
    pub edits: Option<Edits>,
    /// Native key that holds a patch in the `*** Begin Patch` format.
    #[serde(default)]
    pub patch: Option<Str>,
    /// Canonical keys that the agent really changes on a rewrite. Absent: all.
    #[serde(default)]
    pub rewritable: Option<Vec<Str>>,
    /// Read, never chosen when writing.
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Key {
    pub at: Str,
    #[serde(rename = "as")]
    pub codec: Codec,
}

impl<'de> Deserialize<'de> for Key {
    /// `"native"` or `{ at = "native", as = "codec" }`.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Whole {
            at: String,
            #[serde(default, rename = "as")]
            codec: Codec,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Short {
            Name(String),
            Whole(Whole),
        }
        if !deserializer.is_human_readable() {
            let Whole { at, codec } = Whole::deserialize(deserializer)?;
            return Ok(Self {
                at: at.into(),
                codec,
            });
        }
        Ok(match Short::deserialize(deserializer)? {
            Short::Name(at) => Self {
                at: at.into(),
                codec: Codec::Same,
            },
            Short::Whole(Whole { at, codec }) => Self {
                at: at.into(),
                codec,
            },
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// Native key of the list; absent: one edit, its keys in the input itself.
    #[serde(default)]
    pub list: Option<Str>,
    pub old: Str,
    pub new: Str,
    #[serde(default)]
    pub replace_all: Option<Str>,
    /// Native key of the path inside each edit (several files in one call).
    #[serde(default)]
    pub path: Option<Str>,
}

/// How MCP tools are named in payloads and matchers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpNames {
    /// Template over `{server}` and `{tool}`; empty: no combined name.
    #[serde(default)]
    pub format: Str,
    /// Characters that are replaced by `_` in `{server}`.
    #[serde(default)]
    pub server_replaces: Str,
    /// Template of a matcher for a whole server (a regex where matchers are).
    #[serde(default)]
    pub server_matcher: Option<Str>,
    /// Template of a matcher for one tool, when not the name.
    #[serde(default)]
    pub tool_matcher: Option<Str>,
    /// The name does not tell the server from the tool: needs other fields.
    #[serde(default)]
    pub ambiguous: bool,
    /// A matcher for an MCP tool cannot stand in one text with another.
    #[serde(default)]
    pub apart: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerProfile {
    /// Exit codes at which JSON on stdout is read: `0`, `0,2`, `!2` (any but 2),
    /// `any`, `none`.
    #[serde(default)]
    pub reads: Str,
    /// What exit 2 means to the agent: `deny`, `warn`, `ignored`.
    #[serde(default)]
    pub exit2: Str,
    /// What other non-zero codes mean: `warn` (default), `deny`, `ignored`.
    #[serde(default)]
    pub other_exit: Str,
    /// What plain text on stdout at exit 0 means: `ignored` (default), `context`, `message`, `error`.
    #[serde(default)]
    pub plain: Str,
    /// JSON is looked for on stderr when stdout is empty.
    #[serde(default)]
    pub stderr_fallback: bool,
    /// Printed when there is nothing to say, where silence is dangerous.
    #[serde(default)]
    #[serde(with = "as_json")]
    pub empty: Option<Map<String, Value>>,
    #[serde(default)]
    pub deny: Vec<Template>,
    #[serde(default)]
    pub ask: Vec<Template>,
    /// Grants what the agent would ask the user for. Written only on request.
    #[serde(default)]
    pub approve: Vec<Template>,
    #[serde(default)]
    pub context: Vec<Template>,
    #[serde(default)]
    pub message: Vec<Template>,
    #[serde(default)]
    pub rewrite: Vec<Template>,
    /// `continue: false`.
    #[serde(default)]
    pub stop: Vec<Template>,
    #[serde(default)]
    pub suppress: Vec<Template>,
    /// How a rewrite is applied: `replace` (default), `merge`.
    #[serde(default)]
    pub rewrite_mode: Str,
    /// Headless or without a terminal, `ask` does not reach anybody.
    #[serde(default)]
    pub ask_needs_user: bool,
    /// What the agent does, for people: kind → sentence.
    #[serde(default)]
    pub effect: BTreeMap<Str, Str>,
}

/// One way to say one thing. The first of a list is written, all are read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    #[serde(default)]
    pub exit: i32,
    /// An object with holes, or a text with holes.
    #[serde(default)]
    pub stdout: Lazy,
    #[serde(default)]
    pub stderr: Option<Str>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    #[serde(default)]
    pub events: BTreeMap<Str, Str>,
    #[serde(default)]
    pub tools: BTreeMap<Str, Str>,
}

/// A trap of the agent, as `doctor` and the agent's page tell it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    pub id: Str,
    pub what: Str,
    pub why: Str,
    pub remedy: Str,
}
