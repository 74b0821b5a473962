//! The types of `agents/<slug>/agent.toml`, the description of one agent.
//!
//! `build.rs` reads them from TOML, so that a mistake stops the build with file
//! and line. At run time they are read from the compact form that the build
//! writes. Behaviour that has no field here is in the agent's `quirks.rs`.

#[path = "spec/config.rs"]
mod config;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use anyhook_model::event::field;
use anyhook_model::registry;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use config::*;

pub type Str = Cow<'static, str>;

/// JSON inside a table. The compact form has it as text, so that reading a table
/// does not parse what one event never needs.
mod as_json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
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

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
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

/// A JSON value that is parsed on first use.
#[derive(Debug, Clone, Default)]
pub struct LazyJson {
    text: String,
    value: OnceLock<Value>,
}

impl LazyJson {
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

impl Serialize for LazyJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.get().serialize(serializer)
        } else {
            serializer.serialize_str(&self.text)
        }
    }
}

impl<'de> Deserialize<'de> for LazyJson {
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
pub struct AgentSpec {
    pub id: Str,
    pub name: Str,
    pub homepage: Str,
    /// One sentence for people.
    pub summary: Str,
    #[serde(default)]
    pub aliases: Vec<Str>,
    pub verified: Verified,
    /// Not a client, only a format of hooks and configs.
    #[serde(default)]
    pub pseudo: bool,
    /// Set if the agent is discontinued: what replaces it.
    pub legacy: Option<Str>,
    /// What the user must do before the agent runs hooks at all.
    pub trust: Option<Str>,
    /// Files of other agents that this one also reads: hooks in both run twice.
    #[serde(default)]
    pub also_reads: Vec<Str>,
    #[serde(default)]
    pub detect: DetectSpec,
    #[serde(default)]
    pub launch: LaunchSpec,
    /// Where the agent keeps what its user trusts, if that is known well enough
    /// to read it, and to write it on request.
    pub ledger: Option<Ledger>,
    #[serde(default, rename = "file")]
    pub files: Vec<ConfigFile>,
    pub config: Config,
    #[serde(default)]
    pub payload: PayloadSpec,
    #[serde(default, rename = "event")]
    pub events: Vec<EventSpec>,
    #[serde(default, rename = "tool")]
    pub tools: Vec<ToolSpec>,
    #[serde(default)]
    pub mcp: McpNames,
    /// The answer to a payload that cannot be read, if the agent's contract defines one.
    #[serde(default, with = "as_json")]
    pub unreadable: Option<Map<String, Value>>,
    /// Answer profiles by name; events refer to them.
    #[serde(default, rename = "answer")]
    pub answers: BTreeMap<Str, AnswerProfile>,
    /// Variables that the agent gives its hooks: name → template over
    /// `{project}`, `{session_id}`, `{transcript_path}`, `{event}`, `{tool}`;
    /// `{plugin}` if only hooks of a plugin get it.
    #[serde(default)]
    pub env: BTreeMap<Str, Str>,
    /// A project's files that set variables for the agent and its hooks.
    #[serde(default, rename = "env_source")]
    pub env_sources: Vec<EnvSource>,
    /// Canonical names that this agent lacks. Every tool is listed, with a reason;
    /// an event only if there is something to know about its absence.
    #[serde(default)]
    pub absent: Absent,
    #[serde(default, rename = "hazard")]
    pub hazards: Vec<Hazard>,
    /// Keys of a config file that turn hooks off.
    #[serde(default, rename = "off_switch")]
    pub off_switches: Vec<OffSwitch>,
    /// The hazard that describes hooks in `also_reads` files.
    #[serde(default)]
    pub also_reads_hazard: Option<Str>,
    /// The agent whose table this one completes. Set by the reader of the table.
    #[serde(default)]
    pub extends: Option<Str>,
}

/// One event, with its answer profile and the profile's name.
pub type EventPart = (EventSpec, Option<(Str, AnswerProfile)>);

impl AgentSpec {
    /// The agent without events and answers, and each event with its answer
    /// profile: a call of the dispatcher needs only one of them.
    #[must_use]
    pub fn split_events(mut self) -> (Self, Vec<EventPart>) {
        let answers = std::mem::take(&mut self.answers);
        let parts = std::mem::take(&mut self.events)
            .into_iter()
            .map(|event| {
                let answer = event.answer.as_ref();
                let answer = answer.and_then(|name| answers.get_key_value(name));
                let answer = answer.map(|(name, profile)| (name.clone(), profile.clone()));
                (event, answer)
            })
            .collect();
        (self, parts)
    }

    /// Whether the bridge can be installed at this scope.
    #[must_use]
    pub fn is_written_at(&self, scope: Scope) -> bool {
        let mut files = self.files.iter();
        files.any(|file| file.write && file.scope == scope)
    }

    /// Without what the dispatcher does not need, which reads this at every tool
    /// call.
    #[must_use]
    pub fn for_run(mut self) -> Self {
        self.homepage = Str::default();
        self.summary = Str::default();
        self.legacy = None;
        self.trust = None;
        self.also_reads.clear();
        self.files.clear();
        self.launch = LaunchSpec::default();
        self.ledger = None;
        self.config = Config::default();
        self.env_sources.clear();
        self.absent = Absent::default();
        self.hazards.clear();
        self.off_switches.clear();
        self.also_reads_hazard = None;
        for event in &mut self.events {
            event.note = None;
            event.approximate = None;
            event.other_keys.clear();
        }
        for tool in &mut self.tools {
            tool.other_keys.clear();
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
    pub how: VerifiedHow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifiedHow {
    /// Observed in a running client.
    Run,
    /// Read in its source code.
    Source,
    /// Read in its documentation only.
    Docs,
}

/// How the agent starts a hook's command line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchSpec {
    pub shell: Shell,
    /// The shell that runs the commands on Windows.
    pub windows: WindowsShell,
    /// File endings of an event's script, the preferred one first.
    pub endings: Vec<Str>,
    /// The folder in which hooks of a project start.
    pub starts_in: StartFolder,
    /// The agent replaces `$NAME` itself, with quotes of its own, and leaves
    /// `${NAME}` to the shell.
    pub expands_variables: bool,
    /// A command line without any of these characters is split at blanks and started
    /// without a shell.
    pub shell_characters: Option<Str>,
    /// A variable of the command itself (`$p`) is unset for the agent, which then
    /// fails the hook: the entry names the program and searches nothing.
    pub fails_on_variables: bool,
    /// What the agent does at every event if the program cannot be found, where
    /// it does not just go on.
    pub missing_program: Option<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowsShell {
    /// `cmd.exe`, or none: the quotes are the same.
    #[default]
    Cmd,
    PowerShell,
    /// Git Bash; PowerShell where there is none.
    GitBash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartFolder {
    /// The session's folder, which may be below the project's root.
    #[default]
    Session,
    /// The project's root.
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// `/bin/sh -c`
    #[default]
    Sh,
    /// `bash -c`
    Bash,
    /// The user's shell as a login shell: its profile may print text before the
    /// hook does, and may change PATH.
    Login,
    /// None: the line is split into words.
    None,
}

/// The agent's record of what its user trusts. Its contents: see `trust.rs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// JSON, or TOML if its name ends so.
    pub file: Str,
    /// The variable that moves the file's folder.
    pub home_env: Option<Str>,
    /// The variable that makes the agent trust every folder if it is `true`.
    pub env: Option<Str>,
    /// Arguments with which the agent's program serves JSON-RPC on standard
    /// input and answers `hooks/list`.
    #[serde(default)]
    pub list_hooks: Vec<Str>,
}

/// How to recognise this agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DetectSpec {
    /// Environment variables, `NAME` or `NAME=value`.
    pub env: Vec<Str>,
    /// Environment variables of the commands that it runs for the model, in the
    /// same form.
    pub shell_env: Vec<Str>,
    /// JSON pointers that its payloads have. `!/a`: must be missing; `/a=b`: is
    /// that text; `/a*=b`: is a text that contains it.
    pub payload: Vec<Str>,
    /// Variables that mean that no user is present.
    pub unattended: Vec<Str>,
    /// Arguments of the program that mean that no user is present.
    pub headless: Vec<Str>,
    /// The program's name on PATH.
    pub binary: Vec<Str>,
    /// Folders in a project or home that show that it is used.
    pub folders: Vec<Str>,
}

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
    /// The words that the field may have, if these are the agent's own: a program
    /// that looks for one of them needs an agent with the same word.
    #[serde(default)]
    pub words: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocking {
    /// A deny prevents the action.
    Prevent,
    /// A deny makes the agent continue its work.
    Retry,
    /// The action has already happened; a deny gives the model feedback.
    Feedback,
    /// The agent ignores the hook's answer.
    Observe,
}

/// What an event's matcher is tested against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatcherSubject {
    /// The event takes no matcher.
    #[default]
    None,
    /// The tool's name: the only subject that canonical matchers have.
    Tool,
    AgentName,
    AgentType,
    Command,
    CommandName,
    Error,
    File,
    FilePath,
    LoadReason,
    McpServerName,
    Model,
    NotificationType,
    Prompt,
    Reason,
    Source,
    Trigger,
}

impl MatcherSubject {
    /// The key of the canonical event's data that has it, where canonical
    /// matchers know it.
    pub fn data_key(self) -> Option<&'static str> {
        match self {
            Self::Source => Some(field::START_SOURCE),
            Self::Reason => Some("reason"),
            Self::Trigger => Some(field::TRIGGER),
            Self::NotificationType => Some("notification_type"),
            Self::AgentType | Self::AgentName => Some(field::AGENT_TYPE),
            Self::Error => Some(field::ERROR),
            _ => None,
        }
    }
}

impl EventSpec {
    /// The key of the event's data that its matchers are compared with, if it is
    /// not about a tool and canonical matchers know it.
    pub fn subject(&self) -> Option<&'static str> {
        let canonical = registry::event(self.is.as_deref()?)?.subject?;
        (self.matcher.data_key() == Some(canonical)).then_some(canonical)
    }
}

/// Enums that are shown to users by their word in the tables.
macro_rules! display_table_word {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(formatter)
            }
        }
    )*};
}

display_table_word!(Blocking, MatcherSubject, Scope, VerifiedHow);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    pub native: Str,
    /// Canonical event; absent if only this agent has it.
    pub is: Option<Str>,
    /// Other native spellings, in config or payload.
    #[serde(default)]
    pub aliases: Vec<Str>,
    /// Its name in payloads, if not `native`.
    pub payload_name: Option<Str>,
    pub blocking: Blocking,
    #[serde(default)]
    pub matcher: MatcherSubject,
    /// The event is only for these canonical tools (`mcp` for any MCP tool).
    #[serde(default)]
    pub tools: Vec<Str>,
    /// Name of the answer profile; absent if the agent reads no answer.
    pub answer: Option<Str>,
    /// Name of the payload's row set.
    pub common: Option<Str>,
    #[serde(default)]
    pub rows: Vec<PayloadRow>,
    /// Top-level keys of the payload that no row names, for conversions as in
    /// [`ToolSpec::other_keys`].
    #[serde(default)]
    pub other_keys: Vec<Str>,
    /// Fixed canonical data (`status = "error"`).
    #[serde(default, with = "as_json")]
    pub data: Map<String, Value>,
    /// Pointers by which a payload without a name is recognised, as in `detect`.
    #[serde(default)]
    pub marks: Vec<Str>,
    /// How the event differs, if it is only similar to the canonical one.
    pub approximate: Option<Str>,
    /// Read but never written: an older or second spelling.
    #[serde(default)]
    pub read_only: bool,
    /// The longest timeout of its handlers, in seconds.
    pub max_timeout: Option<f64>,
    /// The bridge does not subscribe to it: too frequent, or of no use.
    #[serde(default)]
    pub noisy: bool,
    pub note: Option<Str>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// Canonical tool.
    pub is: Str,
    pub native: Str,
    /// Other native names that are decoded to the same canonical tool.
    #[serde(default)]
    pub aliases: Vec<Str>,
    /// Other canonical tools that this native tool is as well.
    #[serde(default)]
    pub also: Vec<Str>,
    /// The row applies only if the native input has these values.
    #[serde(default, with = "as_json")]
    pub when: Map<String, Value>,
    /// Canonical key → native key.
    #[serde(default)]
    pub keys: BTreeMap<Str, InputKey>,
    /// How edits are written.
    pub edits: Option<EditKeys>,
    /// Native key of a patch in the `*** Begin Patch` format.
    pub patch: Option<Str>,
    /// Native keys of the input without a canonical one. A guard may read them, so
    /// a conversion asks whether the target has them too.
    #[serde(default)]
    pub other_keys: Vec<Str>,
    /// Canonical keys that a rewrite really changes. Absent: all.
    pub rewritable: Option<Vec<Str>>,
    /// Read but never written.
    #[serde(default)]
    pub read_only: bool,
    /// A matcher for the canonical tool names it too, even if it is never
    /// written otherwise: it does what the canonical tool does.
    #[serde(default)]
    pub guarded: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct InputKey {
    pub at: Str,
    #[serde(rename = "as")]
    pub codec: Codec,
}

impl<'de> Deserialize<'de> for InputKey {
    /// `"native"` or `{ at = "native", as = "codec" }`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Whole {
            at: Str,
            #[serde(default, rename = "as")]
            codec: Codec,
        }

        struct NameOrWhole;

        impl<'de> Visitor<'de> for NameOrWhole {
            type Value = Whole;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a native key, or a table with `at` and `as`")
            }

            fn visit_str<E>(self, name: &str) -> Result<Whole, E> {
                Ok(Whole {
                    at: name.to_owned().into(),
                    codec: Codec::Same,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Whole, A::Error> {
                Whole::deserialize(MapAccessDeserializer::new(map))
            }
        }

        let Whole { at, codec } = if deserializer.is_human_readable() {
            deserializer.deserialize_any(NameOrWhole)?
        } else {
            Whole::deserialize(deserializer)?
        };
        Ok(Self { at, codec })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditKeys {
    /// Native key of the list; absent if the input itself is one edit.
    pub list: Option<Str>,
    pub old: Str,
    pub new: Str,
    pub replace_all: Option<Str>,
    /// Native key of the path inside each edit (several files in one call).
    pub path: Option<Str>,
}

/// How MCP tools are named in payloads and matchers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpNames {
    /// Template over `{server}` and `{tool}`; empty: no combined name.
    pub format: Str,
    /// Characters that are replaced by `_` in `{server}`.
    pub server_replaces: Str,
    /// Template of a matcher for a whole server; a regex if matchers are.
    pub server_matcher: Option<Str>,
    /// Template of a matcher for one tool, if not its name.
    pub tool_matcher: Option<Str>,
    /// The name does not show where the server's part ends; other fields do.
    pub ambiguous: bool,
    /// Begins every matcher for MCP tools, which can then name no other tool; the
    /// rest is a pattern for their names.
    pub matcher_prefix: Option<Str>,
}

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
