//! One call of a hook as the models see it, and what they share: reading JSON,
//! building a reaction. No knowledge of any agent belongs here.

use super::{Action, Reaction};
use serde_json::{Map, Value};

pub(super) struct Call<'a> {
    pub event: &'a str,
    pub payload: &'a Value,
    pub exit: Option<i32>,
    /// Trimmed.
    pub stdout: &'a str,
    /// Trimmed.
    pub stderr: &'a str,
    pub headless: bool,
}

impl Call<'_> {
    /// The input of the tool call, wherever this payload has it.
    pub(super) fn tool_input(&self, pointer: &str) -> Map<String, Value> {
        self.payload
            .pointer(pointer)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn tool_name(&self) -> &str {
        text(self.payload, "/tool_name").unwrap_or_default()
    }

    /// Standard output, if it is one JSON object and nothing else.
    pub(super) fn json(&self) -> Option<Value> {
        object(self.stdout)
    }
}

/// The text as a JSON object, if it is exactly one.
pub(super) fn object(source: &str) -> Option<Value> {
    serde_json::from_str(source)
        .ok()
        .filter(|value: &Value| value.is_object())
}

pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

pub(super) fn is_true(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer) == Some(&Value::Bool(true))
}

pub(super) fn is_false(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer) == Some(&Value::Bool(false))
}

/// The first of the keys that the tool needs and this input lacks.
pub(super) fn missing_key<'k>(input: &Value, required: &[&'k str]) -> Option<&'k str> {
    required
        .iter()
        .find(|key| input.get(**key).is_none())
        .copied()
}

impl Reaction {
    /// The client takes no notice of the answer and calls the hook failed.
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self {
            accepted: false,
            note: Some(why.into()),
            ..Self::default()
        }
    }

    pub(super) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.add_note(note);
        self
    }

    /// Adds to the note.
    pub(super) fn add_note(&mut self, note: impl Into<String>) {
        let note = note.into();
        self.note = Some(match self.note.take() {
            Some(earlier) => format!("{earlier}; {note}"),
            None => note,
        });
    }

    pub(super) fn block(&mut self) {
        self.action = Action::Blocked;
    }

    /// Empty texts are left out.
    pub(super) fn show_model(&mut self, text: Option<&str>) {
        push(&mut self.model_sees, text);
    }

    pub(super) fn show_user(&mut self, text: Option<&str>) {
        push(&mut self.user_sees, text);
    }

    /// Blocked, and the model reads why.
    pub(super) fn deny(&mut self, reason: Option<&str>) {
        self.block();
        self.show_model(reason);
    }

    /// Blocked, and the agent goes back to work with this text.
    pub(super) fn send_back(&mut self, reason: Option<&str>) {
        self.deny(reason);
        self.retries = true;
    }

    /// The turn ends here; the text goes to the user.
    pub(super) fn end_session(&mut self, text: Option<&str>) {
        self.session_ends = true;
        self.show_user(text);
    }
}

fn push(list: &mut Vec<String>, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        list.push(text.to_owned());
    }
}
