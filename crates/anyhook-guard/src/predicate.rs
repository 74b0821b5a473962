//! Conditions on a call: of a rule, and of `if:` on any hook.
//!
//! An object holds if each of its members holds; a list of values holds if one of
//! them matches.

mod evaluate;
mod program;

use std::sync::OnceLock;

use anyhook_model::suggest::nearest;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use evaluate::Truth;
pub(crate) use evaluate::may_be_any_program;

/// Predicates in predicates.
const MAX_DEPTH: usize = 20;

/// One key of a condition, for its reader and for the documentation.
#[derive(Debug, Clone, Copy)]
pub struct ConditionDefinition {
    pub name: &'static str,
    /// What the call must have.
    pub summary: &'static str,
    /// A value, as YAML.
    pub example: &'static str,
}

const fn key(
    name: &'static str,
    summary: &'static str,
    example: &'static str,
) -> ConditionDefinition {
    ConditionDefinition {
        name,
        summary,
        example,
    }
}

static CONDITIONS: &[ConditionDefinition] = &[
    key(
        "command",
        "a program that the command starts, in whatever way; further words must follow in this order, options anywhere; `*` matches any part of a word",
        "npm publish",
    ),
    key(
        "flags",
        "an option of that program: `-f` also in `-xf`, `--force` also with a value; below `not`, `--dry-run=false` is not `--dry-run`",
        "[-f, --force]",
    ),
    key(
        "args",
        "a word of that program; `*` matches any part of it",
        "\"*.tfvars\"",
    ),
    key(
        "path",
        "a file that a file tool or a shell command uses; relative to the project, `**` crosses folders, `~/` is the home folder",
        "\"src/generated/**\"",
    ),
    key(
        "content",
        "a regular expression for what is written, or for any text of the input",
        "\"(?i)do not merge\"",
    ),
    key(
        "host",
        "a host that is contacted; `*.example.org` includes its subdomains",
        "\"*.example.org\"",
    ),
    key(
        "tool",
        "the canonical or native name of the tool",
        "file_write",
    ),
    key(
        "agent",
        "the agent that asks; `*` matches any part of its name",
        "my-agent",
    ),
    key("event", "the event", "before_tool_execute"),
    key(
        "subagent",
        "`true` or `false`, or the type of the sub-agent",
        "explore",
    ),
    key("permission_mode", "the agent's permission mode", "plan"),
    key("cwd", "the folder of the call", "infra"),
    key(
        "all",
        "a list of conditions that all hold",
        "[{ tool: shell }, { command: make }]",
    ),
    key(
        "any",
        "a list of conditions of which one holds",
        "[{ tool: web_fetch }, { command: curl }]",
    ),
    key(
        "not",
        "a condition, or a list of them, that must not hold for the same program; of its files and hosts all must match",
        "{ flags: --dry-run }",
    ),
];

/// The keys of `if:` and of a rule's `when:`.
pub fn conditions() -> &'static [ConditionDefinition] {
    CONDITIONS
}

fn key_names() -> impl Iterator<Item = &'static str> {
    CONDITIONS.iter().map(|condition| condition.name)
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Predicate {
    /// Patterns of words: the program, then words that must follow in this order.
    commands: Vec<Vec<String>>,
    flags: Vec<String>,
    arguments: Vec<String>,
    paths: Vec<String>,
    contents: Vec<ContentPattern>,
    hosts: Vec<String>,
    agents: Vec<String>,
    tools: Vec<String>,
    events: Vec<String>,
    subagent: Option<SubagentCondition>,
    permission_modes: Vec<String>,
    cwds: Vec<String>,
    all: Vec<Predicate>,
    any: Vec<Predicate>,
    not: Vec<Predicate>,
}

/// A pattern that is compiled when it is first needed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ContentPattern {
    text: String,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum SubagentCondition {
    Any(bool),
    Types(Vec<String>),
}

/// What is wrong with a predicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PredicateError {
    /// Keys and indexes from the predicate's own value to the fault.
    pub path: Vec<String>,
    pub message: String,
    pub help: Option<String>,
}

impl PredicateError {
    fn new(path: &[String], message: impl Into<String>, help: Option<&str>) -> Self {
        Self {
            path: path.to_vec(),
            message: message.into(),
            help: help.map(str::to_owned),
        }
    }
}

impl Predicate {
    /// The value of `when:` in a rule or `if:` of a hook.
    pub fn parse(value: &Value) -> Result<Self, PredicateError> {
        parse_at(value, &mut Vec::new())
    }
}

impl ContentPattern {
    fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| Regex::new(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

fn parse_at(value: &Value, path: &mut Vec<String>) -> Result<Predicate, PredicateError> {
    let Some(members) = value.as_object() else {
        return Err(PredicateError::new(
            path,
            "a condition is an object",
            Some("write keys such as `command: git push`"),
        ));
    };
    if path.len() > MAX_DEPTH {
        return Err(PredicateError::new(
            path,
            "conditions are nested too deeply",
            None,
        ));
    }
    if members.is_empty() {
        return Err(PredicateError::new(
            path,
            "the condition is empty and would always hold",
            Some("name at least one of `command`, `path`, `tool` or another key"),
        ));
    }
    let mut predicate = Predicate::default();
    for (key, value) in members {
        path.push(key.clone());
        match key.as_str() {
            "command" => {
                for text in texts(value, path)? {
                    predicate
                        .commands
                        .push(text.split_whitespace().map(str::to_owned).collect());
                }
            }
            "flags" | "flag" => predicate.flags = texts(value, path)?,
            "args" | "arg" => predicate.arguments = texts(value, path)?,
            "path" => predicate.paths = texts(value, path)?,
            "host" => predicate.hosts = texts(value, path)?,
            "agent" => predicate.agents = texts(value, path)?,
            "tool" => predicate.tools = texts(value, path)?,
            "event" => predicate.events = texts(value, path)?,
            "permission_mode" => predicate.permission_modes = texts(value, path)?,
            "cwd" => predicate.cwds = texts(value, path)?,
            "subagent" => {
                predicate.subagent = Some(match value.as_bool() {
                    Some(wanted) => SubagentCondition::Any(wanted),
                    None => SubagentCondition::Types(texts(value, path)?),
                });
            }
            "content" => {
                for text in texts(value, path)? {
                    if let Err(error) = Regex::new(&text) {
                        let message = format!("`{text}` is not a regular expression: {error}");
                        return Err(PredicateError::new(path, message, None));
                    }
                    predicate.contents.push(ContentPattern {
                        text,
                        compiled: OnceLock::new(),
                    });
                }
            }
            "all" => predicate.all = list(value, path)?,
            "any" => predicate.any = list(value, path)?,
            "not" => {
                predicate.not = if value.is_array() {
                    list(value, path)?
                } else {
                    vec![parse_at(value, path)?]
                };
            }
            _ => {
                let help = match nearest(key, key_names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "the keys are {}",
                        key_names().collect::<Vec<_>>().join(", ")
                    ),
                };
                return Err(PredicateError::new(
                    path,
                    format!("unknown condition `{key}`"),
                    Some(&help),
                ));
            }
        }
        path.pop();
    }
    Ok(predicate)
}

fn list(value: &Value, path: &mut Vec<String>) -> Result<Vec<Predicate>, PredicateError> {
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        return Err(PredicateError::new(
            path,
            "this is a list of conditions",
            None,
        ));
    };
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        path.push(index.to_string());
        found.push(parse_at(item, path)?);
        path.pop();
    }
    Ok(found)
}

/// One text or a list of texts, none of them blank.
fn texts(value: &Value, path: &[String]) -> Result<Vec<String>, PredicateError> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    let found: Option<Vec<String>> = items
        .iter()
        .map(|item| {
            item.as_str()
                .filter(|text| !text.trim().is_empty())
                .map(str::to_owned)
        })
        .collect();
    found.filter(|found| !found.is_empty()).ok_or_else(|| {
        PredicateError::new(
            path,
            "this is text or a list of texts",
            Some("put values with special characters in quotes"),
        )
    })
}
