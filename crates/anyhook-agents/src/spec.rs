//! The types of `agents/<slug>/agent.toml`, the description of one agent.
//!
//! `build.rs` reads them from TOML, so that a mistake stops the build with file
//! and line. At run time they are read from the compact form that the build
//! writes. Behaviour that has no field here is in the agent's `quirks.rs`.

#[path = "spec/answer.rs"]
mod answer;
#[path = "spec/config.rs"]
mod config;
#[path = "spec/event.rs"]
mod event;
#[path = "spec/hazard.rs"]
mod hazard;
#[path = "spec/launch.rs"]
mod launch;
#[path = "spec/lazy_json.rs"]
mod lazy_json;
#[path = "spec/payload.rs"]
mod payload;
#[path = "spec/tool.rs"]
mod tool;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use answer::*;
pub use config::*;
pub use event::*;
pub use hazard::*;
pub use launch::*;
pub use lazy_json::*;
pub use payload::*;
pub use tool::*;

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
    /// Variables that only this agent sets for its hooks, for conversions.
    #[serde(default)]
    pub other_env: Vec<Str>,
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
        self.other_env.clear();
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
    /// Variables of an agent that runs hooks of this one's files with payloads of the
    /// same form: where one is set, that agent calls.
    pub caller_env: Vec<Str>,
    /// Variables that mean that no user is present.
    pub unattended: Vec<Str>,
    /// Arguments of the program that mean that no user is present.
    pub headless: Vec<Str>,
    /// The program's name on PATH.
    pub binary: Vec<Str>,
    /// Folders in a project or home that show that it is used.
    pub folders: Vec<Str>,
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
