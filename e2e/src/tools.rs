//! The tool table of a client: how a neutral step becomes a call of that client's own tool.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::placeholder::Fill;
use crate::scenario::Step;

/// The input of a tool call, as the client's tool takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Json(Value),
    /// A free-form tool, such as a patch.
    Text(String),
}

/// A tool call that the model makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub input: Input,
}

/// One row: a tool and its input with placeholders (`@command@`, `@path@`, `@absolute@`, `@content@`,
/// `@added@` (the content with `+` before each line), `@old@`, `@new@`, `@prompt@`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Rows by role: `shell`, `write`, `read`, `edit`, `subagent`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolTable(pub BTreeMap<String, Row>);

impl ToolTable {
    /// The call for a step, or `None` when the step is no call or the client has no tool for it.
    pub fn call(&self, step: &Step, project: &Path) -> Option<Call> {
        if let Step::Call { tool, arguments } = step {
            return Some(Call {
                name: tool.clone(),
                input: Input::Json(arguments.clone()),
            });
        }
        let row = self.0.get(step.role()?)?;
        let fill = values(step, project);
        let input = match &row.text {
            Some(text) => Input::Text(fill.text(text)),
            None => Input::Json(
                fill.value(
                    row.arguments
                        .as_ref()
                        .unwrap_or(&Value::Object(serde_json::Map::new())),
                ),
            ),
        };
        Some(Call {
            name: row.name.clone(),
            input,
        })
    }
}

fn values(step: &Step, project: &Path) -> Fill {
    let mut fill = Fill::default();
    let path_of = |path: &str, fill: &mut Fill| {
        fill.set("path", path);
        fill.set("absolute", project.join(path).to_string_lossy());
    };
    match step {
        Step::Shell { command } => fill.set("command", command),
        Step::Write { path, content } => {
            path_of(path, &mut fill);
            fill.set("content", content);
            let added: Vec<String> = content.lines().map(|line| format!("+{line}")).collect();
            fill.set("added", added.join("\n"));
        }
        Step::Read { path } => path_of(path, &mut fill),
        Step::Edit { path, old, new } => {
            path_of(path, &mut fill);
            fill.set("old", old);
            fill.set("new", new);
        }
        Step::Subagent { prompt } => fill.set("prompt", prompt),
        Step::Call { .. } | Step::Say(_) | Step::Fail { .. } => {}
    }
    fill
}
