//! The user's settings: what evaluates prompts, which hosts may be called
//! without TLS, and which fields OpenHook envelopes have.
//!
//! `config.yaml` (or `.json`) in the configuration folder. Loaded only when a
//! hook needs it.
//!
//! ```yaml
//! evaluator:
//!   api: anthropic            # or openai: any compatible endpoint
//!   base_url: https://api.anthropic.com
//!   key_env: ANTHROPIC_API_KEY
//!   model: claude-haiku-4-5
//!   # or your own program: prompt on stdin, answer on stdout
//!   # command: my-judge --json
//! http:
//!   allow_plain: [hooks.lan]  # hosts that may be called without TLS
//! openhook:
//!   folder: context           # cwd, context or both (default)
//! approvals:
//!   hold: 45                  # seconds that a call waits for your answer where the agent cannot ask
//! otlp:                       # read by `anyhook export otlp` and `anyhook serve`
//!   endpoint: https://otel.example.com
//! allow_agent_changes: true   # a coding agent may run `trust`, `install` and the like
//! ```

use std::path::Path;

use anyhook_model::{Format, Scope, document};
use serde::Deserialize;
use serde_json::Value;

use crate::config::discover::{self, Dirs};
use crate::config::trust::by_file_location;
use crate::openhook::FolderFields;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub evaluator: Option<Evaluator>,
    pub http: Http,
    pub openhook: OpenHookSettings,
    pub approvals: Approvals,
    /// As the file has it: the dispatcher exports nothing.
    pub otlp: Value,
    /// A coding agent may change what is installed and trusted.
    pub allow_agent_changes: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Evaluator {
    /// Takes the prompt on stdin, answers canonically or with `{ok, reason}`.
    pub command: Option<String>,
    pub api: Option<Api>,
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub key_env: Option<String>,
    pub model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    OpenAi,
    Anthropic,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Http {
    pub allow_plain: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OpenHookSettings {
    /// Which fields of an envelope name its folder.
    pub folder: FolderFields,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Approvals {
    /// Seconds that a call waits for the user's answer where the agent cannot ask.
    pub hold: f64,
}

impl Settings {
    pub fn load(dirs: &Dirs) -> Result<Self, String> {
        Self::load_from(Scope::User, &dirs.config)
    }

    /// The administrator's, for managed hooks: nothing of the user's has an effect on them.
    pub(crate) fn load_managed(dirs: &Dirs) -> Result<Self, String> {
        Self::load_from(Scope::Managed, &dirs.managed)
    }

    fn load_from(scope: Scope, folder: &Path) -> Result<Self, String> {
        let file = discover::read_settings(folder);
        let file = file.map_err(|it| format!("{}: {}", it.path.display(), it.message))?;
        let Some((path, text)) = file else {
            return Ok(Self::default());
        };
        // They name a program that decides.
        let is_own = by_file_location(scope, folder, &path);
        is_own.map_err(|why| format!("{} is not used: {why}", path.display()))?;
        let format = Format::from_path(&path.to_string_lossy()).unwrap_or(Format::Yaml);
        Self::parse(&text, format).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub fn parse(text: &str, format: Format) -> Result<Self, String> {
        let (tree, findings) = document::parse(text, format);
        if let Some(error) = findings.iter().find(|finding| finding.is_error()) {
            return Err(error.message.clone());
        }
        let value = tree.map(|tree| tree.to_json()).unwrap_or_default();
        let settings = serde_json::from_value::<Option<Self>>(value);
        let settings = settings.map_err(|error| error.to_string())?;
        Ok(settings.unwrap_or_default())
    }
}
