//! Labelled calls: the rows of `corpus/` as events and guards.

use std::path::PathBuf;

use anyhook_guard::{Guard, GuardContext, definitions, parse_guard};
use anyhook_model::HookEvent;
use serde_json::{Value, json};

/// The machine that every row assumes.
pub(crate) fn context() -> GuardContext {
    let agent_files = anyhook_agents::all()
        .flat_map(|adapter| adapter.spec.files.iter().map(|file| file.path.to_string()))
        .collect();
    GuardContext {
        project: Some(PathBuf::from("/home/dev/project")),
        home: Some(PathBuf::from("/home/dev")),
        agent_files,
        ..GuardContext::default()
    }
}

/// One row, without the mark that keeps scanners away from made-up keys.
pub(crate) struct LabelledCall {
    row: Value,
}

impl LabelledCall {
    pub(crate) fn parse(line: &str) -> Result<Self, serde_json::Error> {
        let row = serde_json::from_str(line)?;
        Ok(Self {
            row: without_marks(&row),
        })
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.row.get(key).and_then(Value::as_str)
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("kind").expect("a kind")
    }

    /// What the guard may answer.
    pub(crate) fn expected(&self) -> Vec<&str> {
        self.text("expect").expect("an answer").split('|').collect()
    }

    /// The command or the tool's input, for a message.
    pub(crate) fn subject(&self) -> &Value {
        self.row.get("command").unwrap_or(&self.row["input"])
    }

    /// The guards that the row is about.
    pub(crate) fn guards(&self) -> Vec<Guard> {
        match self.text("guard").expect("a guard's name") {
            "*" => definitions()
                .iter()
                .filter(|guard| !matches!(guard.name, "rules" | "budget"))
                .map(|guard| self.guard(guard.name))
                .collect(),
            name => vec![self.guard(name)],
        }
    }

    fn guard(&self, name: &str) -> Guard {
        let options = self.row.get("options").and_then(Value::as_array);
        let words: Vec<String> = std::iter::once(name)
            .chain(options.into_iter().flatten().filter_map(Value::as_str))
            .map(str::to_owned)
            .collect();
        parse_guard(&words, &|file| Err(format!("no file `{file}`"))).expect("a guard")
    }

    pub(crate) fn event(&self) -> HookEvent {
        let (tool, native, input) = if let Some(tool) = self.text("tool") {
            (tool, tool, self.row["input"].clone())
        } else {
            let native = self.text("shell").unwrap_or("bash");
            ("shell", native, json!({"command": self.row["command"]}))
        };
        let cwd = self.text("cwd").unwrap_or("/home/dev/project");
        serde_json::from_value(json!({
            "event": "before_tool_execute", "source": "x", "cwd": cwd,
            "data": {"tool_name": tool, "native_tool_name": native, "tool_input": input},
        }))
        .expect("an event")
    }
}

fn without_marks(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace('·', "")),
        Value::Array(items) => items.iter().map(without_marks).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), without_marks(value)))
            .collect(),
        other => other.clone(),
    }
}
