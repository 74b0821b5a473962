//! Conditions on a call: of a rule, and of `if:` on any hook.
//!
//! An object holds if each of its members holds; a list of values holds if one of
//! them matches.

use std::sync::OnceLock;

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use anyhook_model::suggest::nearest;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::GuardContext;
use crate::input::GuardInput;
use crate::judges::access::shell_files;
use crate::judges::hosts::{contacted_hosts, host_matches, url_host};
use crate::paths::{glob_matches, path_matches};
use crate::shell::{Invocation, is_option};

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
        "a program that the command starts, in whatever way; further words must follow in this order, options anywhere; `*` stands for a part of a word",
        "npm publish",
    ),
    key(
        "flags",
        "an option of that program: `-f` also in `-xf`, `--force` also with a value",
        "[-f, --force]",
    ),
    key(
        "args",
        "a word of that program; `*` stands for a part of it",
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
        "the agent that asks; `*` stands for a part of its name",
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
        "a condition, or a list of them, that must not hold",
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

    pub fn holds(&self, event: &HookEvent, context: &GuardContext) -> bool {
        self.holds_for(&GuardInput::new(event, context))
    }

    pub fn holds_for(&self, input: &GuardInput<'_>) -> bool {
        let event = input.event;
        let one = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| glob_matches(pattern, text))
        };
        one(&self.agents, &event.source)
            && one(&self.events, &event.event)
            && (self.permission_modes.is_empty()
                || one(
                    &self.permission_modes,
                    event.text(field::PERMISSION_MODE).unwrap_or_default(),
                ))
            && self.tool_holds(input)
            && self.subagent_holds(event)
            && (self.cwds.is_empty()
                || input
                    .cwd
                    .as_deref()
                    .is_some_and(|cwd| Self::path_holds(&self.cwds, cwd, input)))
            && self.command_holds(input)
            && self.files_hold(input)
            && self.hosts_hold(input)
            && self.content_holds(input)
            && self.all.iter().all(|inner| inner.holds_for(input))
            && (self.any.is_empty() || self.any.iter().any(|inner| inner.holds_for(input)))
            && !self.not.iter().any(|inner| inner.holds_for(input))
    }

    fn tool_holds(&self, input: &GuardInput<'_>) -> bool {
        if self.tools.is_empty() {
            return true;
        }
        let event = input.event;
        let names = event
            .tool_name()
            .into_iter()
            .chain(event.native_tool_name())
            .chain(event.tool_kinds());
        let mcp = event
            .mcp()
            .map(|(server, tool)| format!("mcp__{server}__{tool}"));
        names
            .chain(mcp.as_deref())
            .any(|name| self.tools.iter().any(|pattern| glob_matches(pattern, name)))
    }

    fn subagent_holds(&self, event: &HookEvent) -> bool {
        let Some(condition) = &self.subagent else {
            return true;
        };
        let kind = event.text(field::AGENT_TYPE);
        match condition {
            SubagentCondition::Any(wanted) => {
                *wanted == (kind.is_some() || event.text(field::AGENT_ID).is_some())
            }
            SubagentCondition::Types(types) => {
                kind.is_some_and(|kind| types.iter().any(|pattern| glob_matches(pattern, kind)))
            }
        }
    }

    fn command_holds(&self, input: &GuardInput<'_>) -> bool {
        if self.commands.is_empty() && self.flags.is_empty() && self.arguments.is_empty() {
            return true;
        }
        input.invocations().any(|invocation| {
            (self.commands.is_empty()
                || self
                    .commands
                    .iter()
                    .any(|words| words_match(words, invocation)))
                && (self.flags.is_empty()
                    || self.flags.iter().any(|flag| has_flag(flag, invocation)))
                && (self.arguments.is_empty()
                    || invocation.texts().any(|text| {
                        self.arguments
                            .iter()
                            .any(|pattern| word_matches(pattern, text))
                    }))
        })
    }

    fn path_holds(patterns: &[String], path: &str, input: &GuardInput<'_>) -> bool {
        patterns.iter().any(|pattern| {
            path_matches(
                pattern,
                path,
                input.project.as_deref(),
                input.home.as_deref(),
            )
        })
    }

    fn files_hold(&self, input: &GuardInput<'_>) -> bool {
        if self.paths.is_empty() {
            return true;
        }
        input
            .files()
            .iter()
            .any(|file| Self::path_holds(&self.paths, &file.path, input))
            || input.invocations().any(|invocation| {
                shell_files(invocation)
                    .iter()
                    .filter_map(|file| file.path.as_deref())
                    .any(|path| Self::path_holds(&self.paths, path, input))
            })
    }

    fn hosts_hold(&self, input: &GuardInput<'_>) -> bool {
        if self.hosts.is_empty() {
            return true;
        }
        let matches = |host: &str| self.hosts.iter().any(|pattern| host_matches(pattern, host));
        input
            .fetched_url()
            .and_then(url_host)
            .is_some_and(|host| matches(&host))
            || input
                .invocations()
                .any(|invocation| contacted_hosts(invocation).iter().any(|host| matches(host)))
    }

    /// What is written, a shell's command, or else every text of the tool's input.
    fn content_holds(&self, input: &GuardInput<'_>) -> bool {
        if self.contents.is_empty() {
            return true;
        }
        let mut texts = input.commands();
        texts.extend(input.files().iter().map(|file| file.content.clone()));
        texts.extend(input.event.text(field::PROMPT).map(str::to_owned));
        if texts.iter().all(String::is_empty) {
            let values = input
                .event
                .tool_input()
                .into_iter()
                .flat_map(serde_json::Map::values);
            texts.extend(values.filter_map(Value::as_str).map(str::to_owned));
        }
        texts
            .iter()
            .any(|text| self.contents.iter().any(|pattern| pattern.is_match(text)))
    }
}

impl ContentPattern {
    fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| Regex::new(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// The program, then each further word in this order; options anywhere.
fn words_match(words: &[String], invocation: &Invocation) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    if !glob_matches(program, &invocation.name) {
        return false;
    }
    let mut texts = invocation.texts();
    for word in rest {
        let found = if word.starts_with('-') {
            has_flag(word, invocation)
        } else {
            texts.any(|text| word_matches(word, text))
        };
        if !found {
            return false;
        }
    }
    true
}

/// A word pattern: `*` also stands for slashes.
fn word_matches(pattern: &str, text: &str) -> bool {
    pattern == text || glob_matches(&pattern.replace('*', "**"), text)
}

fn has_flag(flag: &str, invocation: &Invocation) -> bool {
    invocation
        .texts()
        .take_while(|text| *text != "--")
        .any(|text| match flag.strip_prefix('-') {
            Some(letter) if letter.chars().count() == 1 => is_option(text, letter, &[]),
            _ => {
                text == flag
                    || text
                        .strip_prefix(flag)
                        .is_some_and(|rest| rest.starts_with('='))
            }
        })
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
