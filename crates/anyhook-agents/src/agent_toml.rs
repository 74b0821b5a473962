//! Reads one `agent.toml` and reports what does not fit with file and line.
//!
//! Compiled into `build.rs` as well as into the library, which reads the tables
//! of a user's own agents. Serde checks the words of enums; this module checks
//! the words that the registry, the manifest or the table itself defines.

#[path = "agent_toml/inherit.rs"]
mod inherit;

use std::collections::BTreeMap;
use std::ops::Range;

use anyhook_model::event::field;
use anyhook_model::suggest::nearest;
use anyhook_model::{fields, registry};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::spec::{AgentSpec, ConfigShape, Str};
use inherit::Source;

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

/// The keys of a table that are each table's own. Serde knows all but two of the keys,
/// but meets what an incomplete row lacks before a mistyped key.
const OWN_KEYS: &[&str] = &[
    "id",
    "extends",
    "inherit",
    "name",
    "homepage",
    "summary",
    "aliases",
    "verified",
    "pseudo",
    "legacy",
    "trust",
    "also_reads",
    "also_reads_hazard",
    "detect",
    "launch",
    "ledger",
    "file",
    "env",
    "other_env",
    "env_source",
    "off_switch",
];

/// How many tables a table may extend, one by the other.
const MAX_CHAIN: usize = 4;

/// The tables that others may extend: slug → text.
pub type KnownTables<'a> = BTreeMap<&'a str, &'a str>;

/// The file of a table in this project.
pub fn file_name(slug: &str) -> String {
    format!("agents/{slug}/agent.toml")
}

/// The table of an agent, or `<file>:<line>: <what is wrong>`. A table that
/// extends another names both files in a message.
pub fn parse(file: &str, text: &str, known: &KnownTables<'_>) -> Result<AgentSpec, String> {
    let mut sources = vec![Source {
        file: file.to_owned(),
        text,
        start: 0,
    }];
    let (table, extends) = located(&mut sources, known)?;
    let at = |span: Range<usize>, message: &str| located_message(&sources, span, message);
    let deserializer = toml::de::Deserializer::from(table.clone());
    let mut agent: AgentSpec = serde::Deserialize::deserialize(deserializer)
        .map_err(|error: toml::de::Error| at(error.span().unwrap_or_default(), error.message()))?;
    agent.extends = extends.map(Str::from);
    Words { agent: &agent }
        .check_table(&[], table.get_ref())
        .map_err(|(span, message)| at(span, &message))?;
    drop_unused_answers(&mut agent, table.get_ref(), text.len());
    let is_document = !matches!(
        agent.config.shape,
        ConfigShape::Scripts | ConfigShape::Plugin
    );
    if let Some(file) = agent.files.iter().find(|file| file.format.is_none())
        && is_document
    {
        let message = format!("the file `{}` needs a `format`", file.path);
        return Err(at(table.span(), &message));
    }
    Ok(agent)
}

/// Answer profiles of another table that no event of this agent uses. Those of
/// its own text, which is `length` long, stay.
fn drop_unused_answers(agent: &mut AgentSpec, table: &DeTable<'_>, length: usize) {
    let used: Vec<Str> = agent
        .events
        .iter()
        .filter_map(|event| event.answer.clone())
        .collect();
    let written = table.get("answer").map(Spanned::get_ref);
    let is_own = |name: &Str| match written {
        Some(DeValue::Table(answers)) => answers
            .keys()
            .any(|key| *key.get_ref() == **name && key.span().start <= length),
        _ => false,
    };
    agent
        .answers
        .retain(|name, _| used.contains(name) || is_own(name));
}

/// The table with what it inherits, and the agent that it extends.
fn located<'a>(
    sources: &mut Vec<Source<'a>>,
    known: &KnownTables<'a>,
) -> Result<(Spanned<DeTable<'a>>, Option<String>), String> {
    let mut tables: Vec<Spanned<DeTable<'a>>> = Vec::new();
    let mut extends = None;
    while let Some(source) = sources.last() {
        let mut table = inherit::located_table(source).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let span = span.start + source.start..span.end + source.start;
            located_message(sources, span, error.message())
        })?;
        let base = table.get_mut().remove("extends");
        let known_keys = [OWN_KEYS, inherit::INHERITED].concat();
        for key in table.get_ref().keys() {
            check_word(key.get_ref(), key.span(), &known_keys)
                .map_err(|(span, message)| located_message(sources, span, &message))?;
        }
        if let Some(inherit) = table.get_ref().get("inherit")
            && base.is_none()
        {
            let message = "`[inherit]` without `extends`";
            return Err(located_message(sources, inherit.span(), message));
        }
        tables.push(table);
        let Some(base) = base else { break };
        let span = base.span();
        let DeValue::String(name) = base.into_inner() else {
            return Err(located_message(
                sources,
                span,
                "`extends` must be the name of an agent",
            ));
        };
        let names: Vec<&str> = known.keys().copied().collect();
        check_word(&name, span.clone(), &names)
            .map_err(|(span, message)| located_message(sources, span, &message))?;
        if sources.len() > MAX_CHAIN {
            let message = format!("extends itself, or more than {MAX_CHAIN} tables");
            return Err(located_message(sources, span, &message));
        }
        let Some(text) = known.get(name.as_ref()) else {
            break;
        };
        let start = sources
            .last()
            .map_or(0, |last| last.start + last.text.len() + 1);
        sources.push(Source {
            file: file_name(&name),
            text,
            start,
        });
        extends.get_or_insert(name.into_owned());
    }
    let mut table = tables
        .pop()
        .unwrap_or_else(|| Spanned::new(0..0, DeTable::new()));
    while let Some(own) = tables.pop() {
        table = inherit::merged(own, table.into_inner())
            .map_err(|(span, message)| located_message(sources, span, &message))?;
    }
    Ok((table, extends))
}

/// `<file>:<line>: <message>`, and the other files of the chain.
fn located_message(sources: &[Source<'_>], span: Range<usize>, message: &str) -> String {
    let mut found = sources.iter().rev();
    let Some(source) = found.find(|source| span.start >= source.start) else {
        return message.to_owned();
    };
    let before = source
        .text
        .get(..span.start - source.start)
        .unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let others: Vec<&str> = sources
        .iter()
        .filter(|other| other.start != source.start)
        .map(|other| other.file.as_str())
        .collect();
    let chain = match others.as_slice() {
        [] => String::new(),
        [first, ..] if source.start > 0 => format!(" (inherited by {first})"),
        others => format!(" (extends {})", others.join(", ")),
    };
    format!("{}:{line}: {message}{chain}", source.file)
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
            ["file", "ignored_beside"] => {
                let files = self.agent.files.iter();
                files.map(|file| file.path.as_ref()).collect()
            }
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
