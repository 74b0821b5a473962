//! The tool table of a client: how a step becomes calls of that client's own tools.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::placeholder::Placeholders;
use crate::scenario::Step;

/// The input of a tool call, as the client's tool takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    Json(Value),
    /// A free-form tool, such as a patch.
    Text(String),
}

/// A tool call that the model makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub input: ToolInput,
    /// The group of tools that it belongs to, for protocols that have groups.
    pub namespace: Option<String>,
    pub unlisted: bool,
}

/// One row: a tool and its input with placeholders (`@command@`, `@path@`, `@absolute@`, `@content@`,
/// `@added@` (the content with `+` before each line), `@old@`, `@new@`, `@prompt@`, `@patch@`, `@text@`); with
/// `:json` after the name, as in `@command:json@`, as a JSON string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The client does not offer it by name in its requests, and takes the call all the same.
    #[serde(default)]
    pub unlisted: bool,
}

/// How a client whose model writes code makes several calls in one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
    pub name: String,
    /// Around the text of each call, which is `@text@`.
    pub each: String,
    /// Around them all, joined by commas, which are `@text@`.
    pub all: String,
}

/// Rows by role: `shell`, `write`, `read`, `edit`, `subagent`, `await_subagent` (if sub-agents do not hold up the
/// model), `patch`, `mcp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// Tools that a client offers alone to get a title or the like: such a request plays no step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
    #[serde(flatten)]
    pub rows: BTreeMap<String, ToolSpec>,
}

impl ToolTable {
    /// The calls for a step; `None` if the step is not a call or the client has no tool for it.
    pub fn calls(&self, step: &Step, project: &Path) -> Option<Vec<Call>> {
        let Step::Together(steps) = step else {
            return Some(vec![self.call(step, project)?]);
        };
        let calls = steps.iter().map(|step| self.call(step, project));
        let calls: Vec<Call> = calls.collect::<Option<_>>()?;
        let Some(together) = &self.together else {
            return Some(calls);
        };
        let mut placeholders = Placeholders::default();
        let mut parts = Vec::new();
        for call in calls {
            match call.input {
                ToolInput::Text(text) => placeholders.set("text", text),
                ToolInput::Json(_) => return None,
            }
            parts.push(placeholders.fill_text(&together.each));
        }
        placeholders.set("text", parts.join(", "));
        Some(vec![Call {
            name: together.name.clone(),
            input: ToolInput::Text(placeholders.fill_text(&together.all)),
            namespace: None,
            unlisted: false,
        }])
    }

    fn call(&self, step: &Step, project: &Path) -> Option<Call> {
        if let Step::Call { tool, arguments } = step {
            return Some(Call {
                name: tool.clone(),
                input: ToolInput::Json(arguments.clone()),
                namespace: None,
                unlisted: false,
            });
        }
        let row = self.rows.get(step.role()?)?;
        let placeholders = placeholders_for(step, project);
        let input = match &row.text {
            Some(text) => ToolInput::Text(placeholders.fill_text(text)),
            None => ToolInput::Json(
                placeholders.fill_value(
                    row.arguments
                        .as_ref()
                        .unwrap_or(&Value::Object(serde_json::Map::new())),
                ),
            ),
        };
        Some(Call {
            name: row.name.clone(),
            input,
            namespace: row.namespace.clone(),
            unlisted: row.unlisted,
        })
    }
}

fn placeholders_for(step: &Step, project: &Path) -> Placeholders {
    let mut placeholders = Placeholders::default();
    let mut set = |name: &str, value: &str| {
        placeholders.set(name, value);
        placeholders.set(&format!("{name}:json"), Value::from(value).to_string());
    };
    let mut set_path = |path: &str| {
        set("path", path);
        set("absolute", &project.join(path).to_string_lossy());
    };
    match step {
        Step::Shell { command } => set("command", command),
        Step::Write { path, content } => {
            set_path(path);
            set("content", content);
            let added: Vec<String> = content.lines().map(|line| format!("+{line}")).collect();
            set("added", &added.join("\n"));
        }
        Step::Read { path } => set_path(path),
        Step::Edit { path, old, new } => {
            set_path(path);
            set("old", old);
            set("new", new);
        }
        Step::Subagent { prompt } => set("prompt", prompt),
        Step::Patch { patch } => set("patch", patch),
        Step::Mcp { text } => set("text", text),
        Step::AwaitSubagent
        | Step::Together(_)
        | Step::Call { .. }
        | Step::Say(_)
        | Step::Fail { .. } => {}
    }
    placeholders
}
