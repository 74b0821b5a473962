//! The user's settings: who evaluates prompts, where plain http is fine.
//!
//! `config.yaml` (or `.json`) in the configuration folder. Read only when a
//! hook needs it.
//!
//! ```yaml
//! evaluator:
//!   api: anthropic            # or openai: any compatible endpoint
//!   base_url: https://api.anthropic.com
//!   key_env: ANTHROPIC_API_KEY
//!   model: claude-haiku-4-5
//!   # or a program of your own: prompt on stdin, answer on stdout
//!   # command: my-judge --json
//! http:
//!   allow_plain: [hooks.lan]  # hosts that may be called without TLS
//! ```

use anyhook_model::{Format, document};
use serde::Deserialize;

use crate::discover::{self, Dirs};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub evaluator: Option<Evaluator>,
    pub http: Http,
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

impl Settings {
    pub fn load(dirs: &Dirs) -> Result<Self, String> {
        let file = discover::read_first(&dirs.config, &discover::CONFIGS);
        let Some((path, text)) = file.map_err(|error| error.to_string())? else {
            return Ok(Self::default());
        };
        let format = Format::from_path(&path.to_string_lossy()).unwrap_or(Format::Yaml);
        let (tree, findings) = document::parse(&text, format);
        let shown = path.display();
        if let Some(error) = findings.iter().find(|finding| finding.is_error()) {
            return Err(format!("{shown}: {}", error.message));
        }
        let value = tree.map(|tree| tree.to_json()).unwrap_or_default();
        if value.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(value).map_err(|error| format!("{shown}: {error}"))
    }
}
