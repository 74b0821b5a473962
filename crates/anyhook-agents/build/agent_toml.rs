//! Reads one `agent.toml` and reports what does not fit with file and line.
//!
//! Compiled into `build.rs` and into the test that mistypes every word, not
//! into the library. Serde checks the words of enums; this module checks the
//! words that the registry, the manifest or the table itself defines.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhook_model::event::field;
use anyhook_model::suggest::nearest;
use anyhook_model::{fields, registry};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::spec::{AgentSpec, Str};

/// Canonical places that a row of a payload may fill.
const ROW_TARGETS: &[&str] = &[
    "session_id",
    "cwd",
    "timestamp",
    "tool_input.command",
    "tool_input.cwd",
    "tool_input.path",
    "mcp.server",
    "mcp.tool",
    field::TOOL_NAME,
    field::TOOL_CALL_ID,
    field::TOOL_INPUT,
    field::TOOL_OUTPUT,
    field::STATUS,
    field::ERROR,
    field::DURATION_MS,
    field::PROMPT,
    field::TRANSCRIPT_PATH,
    field::REASON,
    field::MODEL,
    field::LAST_MESSAGE,
    field::STOP_HOOK_ACTIVE,
    field::AGENT_ID,
    field::AGENT_TYPE,
    field::TRIGGER,
    field::MESSAGE,
    field::PERMISSION_MODE,
    field::START_SOURCE,
    "file_path",
    "llm_request",
    "llm_response",
    "notification_type",
    "path",
    "permission",
    "task",
    "token_usage",
    "tool_calls",
    "transformed_prompt",
    "user_id",
];

const ANSWER_HOLES: &[&str] = &["event", "reason", "context", "message", "updated_input"];
const ENV_HOLES: &[&str] = &[
    "project",
    "plugin",
    "session_id",
    "transcript_path",
    "event",
    "tool",
];
const MCP_HOLES: &[&str] = &["server", "tool"];

/// The table of an agent, or `<file>:<line>: <what is wrong>`.
pub fn parse(file: &str, text: &str) -> Result<AgentSpec, String> {
    let at = |span: Range<usize>, message: &str| {
        let before = text.get(..span.start).unwrap_or_default();
        format!("{file}:{}: {message}", before.matches('\n').count() + 1)
    };
    let located = |error: toml::de::Error| at(error.span().unwrap_or_default(), error.message());
    let agent: AgentSpec = toml::from_str(text).map_err(located)?;
    let table = DeTable::parse(text).map_err(located)?;
    Words { agent: &agent }
        .check_table(&[], table.get_ref())
        .map_err(|(span, message)| at(span, &message))?;
    Ok(agent)
}

type Checked = Result<(), (Range<usize>, String)>;

struct Words<'a> {
    agent: &'a AgentSpec,
}

impl<'a> Words<'a> {
    fn check_table(&self, path: &[&str], table: &DeTable<'_>) -> Checked {
        let keys = self.for_keys(path);
        for (key, value) in table {
            if let Some(keys) = &keys {
                check_word(key.get_ref(), key.span(), keys)?;
            }
            let inner = match path {
                // A variant has the shape of `[config]`.
                ["config", "variant"] => vec!["config"],
                _ => [path, &[key.get_ref().as_ref()]].concat(),
            };
            self.check_value(&inner, value)?;
        }
        Ok(())
    }

    fn check_value(&self, path: &[&str], value: &Spanned<DeValue<'_>>) -> Checked {
        match value.get_ref() {
            DeValue::Table(table) => self.check_table(path, table),
            DeValue::Array(items) => items
                .iter()
                .try_for_each(|item| self.check_value(path, item)),
            DeValue::String(word) => {
                if let Some(words) = self.for_value(path) {
                    check_word(word, value.span(), &words)?;
                }
                if let Some(holes) = holes_in(path) {
                    for part in word.split('{').skip(1) {
                        let name = part.split_once('}').map_or(part, |(name, _)| name);
                        let name = name.split('.').next().unwrap_or_default();
                        check_word(name, value.span(), holes)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The words that the keys of a table are limited to.
    fn for_keys(&self, path: &[&str]) -> Option<Vec<&'a str>> {
        Some(match path {
            ["absent", "events"] => events().collect(),
            ["absent", "tools"] => tools().collect(),
            ["tool", "keys"] => input_keys().collect(),
            ["event", "data"] => ROW_TARGETS.to_vec(),
            ["config", "handler", "types" | "type_events"] => {
                anyhook_model::HandlerKind::WORDS.to_vec()
            }
            ["config", "matcher", "classes"] => tools().chain(["mcp"]).collect(),
            ["config", "event_names"] => self.native_events(),
            _ => return None,
        })
    }

    /// The words that a text is limited to.
    fn for_value(&self, path: &[&str]) -> Option<Vec<&'a str>> {
        Some(match path {
            ["event", "is"] => events().collect(),
            ["event", "tools"] => tools().chain(["mcp"]).collect(),
            ["tool", "is" | "also"] => tools().collect(),
            ["tool", "rewritable"] => input_keys().collect(),
            ["event", "answer"] => keys(&self.agent.answers),
            ["event", "common"] => keys(&self.agent.payload.rows),
            ["file", "variant"] => keys(&self.agent.config.variant),
            ["off_switch", "hazard"] | ["also_reads_hazard"] => {
                let hazards = self.agent.hazards.iter();
                hazards.map(|hazard| hazard.id.as_ref()).collect()
            }
            ["config", "handler", "type_events", _] => self.native_events(),
            ["config", "handler", "dialects"] => {
                anyhook_model::fields::NeutralDialect::WORDS.to_vec()
            }
            ["config", "handler", "field", "to"] => fields::HANDLER
                .iter()
                .map(|field| field.name)
                .chain(["name", "platform.windows", "platform.linux", "platform.osx"])
                .collect(),
            ["event", "rows", "to"] | ["payload", "rows", _, "to"] => ROW_TARGETS.to_vec(),
            _ => return None,
        })
    }

    fn native_events(&self) -> Vec<&'a str> {
        let events = self.agent.events.iter();
        events.map(|event| event.native.as_ref()).collect()
    }
}

/// The names that `{holes}` of a text are limited to.
fn holes_in(path: &[&str]) -> Option<&'static [&'static str]> {
    match path {
        ["answer", _, _, "stdout" | "stderr", ..] => Some(ANSWER_HOLES),
        ["env", _] => Some(ENV_HOLES),
        ["mcp", _] => Some(MCP_HOLES),
        _ => None,
    }
}

fn check_word(word: &str, span: Range<usize>, words: &[&str]) -> Checked {
    if words.contains(&word) {
        return Ok(());
    }
    let meant = nearest(word, words.iter().copied())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    let message = format!(
        "unknown word `{word}`, expected one of `{}`{meant}",
        words.join("`, `")
    );
    Err((span, message))
}

fn keys<T>(table: &BTreeMap<Str, T>) -> Vec<&str> {
    table.keys().map(AsRef::as_ref).collect()
}

fn events() -> impl Iterator<Item = &'static str> {
    registry::EVENTS.iter().map(|event| event.name)
}

fn tools() -> impl Iterator<Item = &'static str> {
    registry::TOOLS.iter().map(|tool| tool.name)
}

fn input_keys() -> impl Iterator<Item = &'static str> {
    let tools = registry::TOOLS.iter();
    tools.flat_map(|tool| tool.input.iter().copied())
}
