//! Building blocks of the checks: typed values, fields of a table, words of a
//! closed list.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::Vocabulary;
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::{Member, Node, Value};
use crate::fields::{self, Field, FieldShape};
use crate::suggest::nearest;

pub(super) struct Checker<'v> {
    pub(super) vocabulary: &'v Vocabulary<'v>,
    pub(super) findings: Vec<Diagnostic>,
    /// The matcher that is being checked is not about a tool.
    pub(super) matches_subject: bool,
    /// The manifest states version 0.1 of the format.
    pub(super) is_version_0_1: bool,
}

impl<'v> Checker<'v> {
    pub(super) fn new(vocabulary: &'v Vocabulary<'v>, findings: Vec<Diagnostic>) -> Self {
        Self {
            vocabulary,
            findings,
            matches_subject: false,
            is_version_0_1: false,
        }
    }

    pub(super) fn push(&mut self, finding: Diagnostic, path: &Path<'_>) {
        self.findings.push(finding.path(path.to_string()));
    }

    pub(super) fn wrong_type(&mut self, node: &Node, expected: &str, path: &Path<'_>) {
        let mut finding = Diagnostic::error(
            "wrong-type",
            node.span,
            format!("`{path}` must be {expected}, not {}", node.type_name()),
        );
        if let Some(help) = type_help(node, expected) {
            finding = finding.help(help);
        }
        self.push(finding, path);
    }

    /// The members of an object; `None` and a finding if it is not an object.
    pub(super) fn object<'n>(&mut self, node: &'n Node, path: &Path<'_>) -> Option<&'n [Member]> {
        let members = node.as_object();
        if members.is_none() {
            self.wrong_type(node, "an object", path);
        }
        members
    }

    pub(super) fn array<'n>(&mut self, node: &'n Node, path: &Path<'_>) -> Option<&'n [Node]> {
        let items = node.as_array();
        if items.is_none() {
            self.wrong_type(node, "a list", path);
        }
        items
    }

    pub(super) fn text(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let text = node.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong_type(node, "text", path);
        }
        text
    }

    /// Text that must not be blank.
    pub(super) fn filled_text(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let text = self.text(node, path)?;
        if text.trim().is_empty() {
            self.push(
                Diagnostic::error("empty", node.span, format!("`{path}` is empty")),
                path,
            );
            return None;
        }
        Some(text)
    }

    pub(super) fn flag(&mut self, node: &Node, path: &Path<'_>) -> Option<bool> {
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        self.wrong_type(node, "true or false", path);
        None
    }

    pub(super) fn number(&mut self, node: &Node, path: &Path<'_>) -> Option<f64> {
        let number = node.as_f64();
        if number.is_none() {
            self.wrong_type(node, "a number", path);
        }
        number
    }

    pub(super) fn texts(&mut self, node: &Node, path: &Path<'_>) -> Vec<String> {
        let items = self.array(node, path).unwrap_or_default();
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.text(item, &path.index(index)))
            .collect()
    }

    /// Name to text.
    pub(super) fn text_map(&mut self, node: &Node, path: &Path<'_>) -> Map<String, Json> {
        let mut map = Map::new();
        for member in self.object(node, path).unwrap_or_default() {
            if let Some(text) = self.text(&member.value, &path.key(&member.key)) {
                map.insert(member.key.clone(), text.into());
            }
        }
        map
    }

    /// The checked members of an object, as JSON. Null is ignored and an unknown
    /// field kept, both with a finding.
    pub(super) fn fields(
        &mut self,
        members: &[Member],
        table: &'static [Field],
        path: &Path<'_>,
        mut check: impl FnMut(&mut Self, &Member, &Field, &Path<'_>) -> Option<Json>,
    ) -> Map<String, Json> {
        let mut checked = Map::new();
        for member in members {
            let value = match fields::find(table, &member.key) {
                Some(_) if self.is_null(member, path) => None,
                Some(field) => check(self, member, field, &path.key(&member.key)),
                None => Some(self.unknown_field(member, table, path)),
            };
            checked.extend(value.map(|value| (member.key.clone(), value)));
        }
        checked
    }

    /// The value of checked fields. The checks make a failure impossible; it must
    /// not pass without a finding all the same.
    pub(super) fn build<T: DeserializeOwned>(
        &mut self,
        fields: Map<String, Json>,
        span: Span,
        path: &Path<'_>,
    ) -> Option<T> {
        match serde_json::from_value(Json::Object(fields)) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("invalid value: {error}");
                self.push(Diagnostic::error("wrong-type", span, message), path);
                None
            }
        }
    }

    /// A field that is checked by its shape in the table of fields.
    pub(super) fn shaped(&mut self, node: &Node, field: &Field, path: &Path<'_>) -> Option<Json> {
        match field.shape {
            FieldShape::Text => self.filled_text(node, path).map(Json::from),
            FieldShape::Flag => self.flag(node, path).map(Json::from),
            FieldShape::Seconds => self.seconds(node, path).map(Json::from),
            FieldShape::Texts => Some(self.texts(node, path).into()),
            FieldShape::TextMap => Some(self.text_map(node, path).into()),
            FieldShape::OneOf(words) => {
                let word = self.word(node, words, "unknown-word", field.name, path);
                word.map(Json::from)
            }
            FieldShape::Object => self.object(node, path).map(|_| node.to_json()),
            _ => Some(node.to_json()),
        }
    }

    /// A number of seconds.
    pub(super) fn seconds(&mut self, node: &Node, path: &Path<'_>) -> Option<f64> {
        let seconds = self.number(node, path)?;
        if seconds < 0.0 {
            let finding = Diagnostic::error("negative", node.span, format!("`{path}` is negative"))
                .help("it is a number of seconds; 0 means the default of 30");
            self.push(finding, path);
            return None;
        }
        Some(seconds)
    }

    /// A word of a closed list.
    pub(super) fn word(
        &mut self,
        node: &Node,
        words: &[&'static str],
        code: &'static str,
        what: &str,
        path: &Path<'_>,
    ) -> Option<&'static str> {
        let text = self.text(node, path)?;
        let found = words.iter().find(|word| **word == text).copied();
        if found.is_none() {
            let near = nearest(&text, words.iter().copied());
            let finding =
                Diagnostic::error(code, node.span, format!("unknown {what} `{text}`")).help(
                    suggestion(near, &format!("expected one of {}", list(words))),
                );
            self.push(finding, path);
        }
        found
    }

    /// Name to word of a closed list.
    pub(super) fn word_map(
        &mut self,
        node: &Node,
        words: &[&'static str],
        (code, what): (&'static str, &str),
        path: &Path<'_>,
    ) -> Json {
        let mut map = Map::new();
        for member in self.object(node, path).unwrap_or_default() {
            let word = self.word(&member.value, words, code, what, &path.key(&member.key));
            map.extend(word.map(|word| (member.key.clone(), word.into())));
        }
        map.into()
    }

    pub(super) fn missing(&mut self, field: &str, object: Span, help: &str, path: &Path<'_>) {
        let message = match path.to_string() {
            place if place.is_empty() => format!("the required field `{field}` is missing"),
            place => format!("`{place}` is missing the required field `{field}`"),
        };
        let finding = Diagnostic::error("missing-field", object, message).help(help);
        self.push(finding, path);
    }

    /// Whether the value is null, which is ignored with a warning.
    pub(super) fn is_null(&mut self, member: &Member, path: &Path<'_>) -> bool {
        let null = member.value.value == Value::Null;
        if null {
            let finding = Diagnostic::warning(
                "no-value",
                member.key_span,
                format!("`{}` has no value and is ignored", member.key),
            )
            .help("give it a value or remove it");
            self.push(finding, &path.key(&member.key));
        }
        null
    }

    /// The value of a field that is not in the table, which is reported.
    pub(super) fn unknown_field(
        &mut self,
        member: &Member,
        table: &[Field],
        path: &Path<'_>,
    ) -> Json {
        let key = member.key.as_str();
        if key.starts_with(['_', '$']) || key.starts_with("x-") || key.starts_with("x_") {
            return member.value.to_json();
        }
        let message = format!("unknown field `{key}` is kept but has no effect");
        let finding = if let Some(near) = nearest(key, fields::names(table)) {
            Diagnostic::warning("unknown-field", member.key_span, message)
                .help(format!("did you mean `{near}`?"))
        } else if let Some(level) = level_of(key) {
            Diagnostic::warning("unknown-field", member.key_span, message)
                .help(format!("`{key}` belongs {level}"))
        } else {
            Diagnostic::info("unknown-field", member.key_span, message)
        };
        self.push(finding, &path.key(key));
        member.value.to_json()
    }
}

fn level_of(key: &str) -> Option<&'static str> {
    [
        (fields::HANDLER, "in `handler`"),
        (fields::HOOK, "in a hook, next to `event` and `handler`"),
        (fields::MANIFEST, "at the top level, next to `hooks`"),
    ]
    .into_iter()
    .find(|(table, _)| fields::names(table).any(|name| name == key))
    .map(|(_, level)| level)
}

fn type_help(node: &Node, expected: &str) -> Option<String> {
    match (&node.value, expected) {
        (Value::String(text), "true or false") => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" => Some("write `true`".into()),
            "no" | "off" | "false" => Some("write `false`".into()),
            _ => None,
        },
        (Value::String(text), "a number") if text.trim().parse::<f64>().is_ok() => {
            Some("remove the quotes".into())
        }
        (Value::String(_), "a list") => Some("put it in `[` and `]`".into()),
        (Value::Number(value), "text") => Some(format!("write it in quotes: `\"{value}\"`")),
        (Value::Bool(value), "text") => Some(format!("write it in quotes: `\"{value}\"`")),
        _ => None,
    }
}

/// "did you mean" if there is a similar word, else the other help.
pub(super) fn suggestion(near: Option<&str>, otherwise: &str) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// `a`, `b` or `c`
pub(super) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
