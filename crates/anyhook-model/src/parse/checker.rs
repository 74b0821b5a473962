//! The steps that every check is made of: typed reading, unknown fields, words
//! of a closed list.

use serde_json::{Map, Number};

use super::Vocabulary;
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::{Member, Node, Value};
use crate::fields::{self, Field};
use crate::suggest::nearest;

pub(super) struct Checker<'v> {
    pub(super) vocabulary: &'v Vocabulary<'v>,
    pub(super) findings: Vec<Diagnostic>,
}

impl<'v> Checker<'v> {
    pub(super) fn new(vocabulary: &'v Vocabulary<'v>, findings: Vec<Diagnostic>) -> Self {
        Self {
            vocabulary,
            findings,
        }
    }

    pub(super) fn push(&mut self, finding: Diagnostic, path: &Path<'_>) {
        self.findings.push(finding.path(path.to_string()));
    }

    pub(super) fn wrong_type(&mut self, node: &Node, wanted: &str, path: &Path<'_>) {
        let mut finding = Diagnostic::error(
            "wrong-type",
            node.span,
            format!("`{path}` must be {wanted}, not {}", node.kind()),
        );
        if let Some(help) = type_help(node, wanted) {
            finding = finding.help(help);
        }
        self.push(finding, path);
    }

    /// The members of an object; an absent one when it is not an object.
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

    /// Text in which something must stand.
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

    pub(super) fn number<'n>(&mut self, node: &'n Node, path: &Path<'_>) -> Option<&'n Number> {
        if let Value::Number(value) = &node.value {
            return Some(value);
        }
        self.wrong_type(node, "a number", path);
        None
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
    pub(super) fn text_map(
        &mut self,
        node: &Node,
        path: &Path<'_>,
    ) -> Map<String, serde_json::Value> {
        let mut map = Map::new();
        for member in self.object(node, path).unwrap_or_default() {
            if let Some(text) = self.text(&member.value, &path.key(&member.key)) {
                map.insert(member.key.clone(), text.into());
            }
        }
        map
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
            let finding = Diagnostic::error(code, node.span, format!("unknown {what} `{text}`"))
                .help(suggestion(near, &format!("it is one of {}", list(words))));
            self.push(finding, path);
        }
        found
    }

    pub(super) fn missing(&mut self, field: &str, object: Span, help: &str, path: &Path<'_>) {
        let message = match path.to_string() {
            place if place.is_empty() => format!("the required field `{field}` is missing"),
            place => format!("`{place}` lacks the required field `{field}`"),
        };
        let finding = Diagnostic::error("missing-field", object, message).help(help);
        self.push(finding, path);
    }

    /// True when the value is null, which is taken as absent, aloud.
    pub(super) fn is_null(&mut self, member: &Member, path: &Path<'_>) -> bool {
        let null = member.value.value == Value::Null;
        if null {
            let finding = Diagnostic::warning(
                "no-value",
                member.key_span,
                format!("`{}` has no value and is taken as absent", member.key),
            )
            .help("give it a value or remove it");
            self.push(finding, &path.key(&member.key));
        }
        null
    }

    /// Says what there is to say about a field that is not in the table.
    pub(super) fn unknown_field(&mut self, member: &Member, table: &[Field], path: &Path<'_>) {
        let key = member.key.as_str();
        if key.starts_with(['_', '$']) || key.starts_with("x-") || key.starts_with("x_") {
            return;
        }
        let message = format!("unknown field `{key}`: it is kept, and has no effect");
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
    }
}

fn level_of(key: &str) -> Option<&'static str> {
    [
        (fields::HANDLER, "in `handler`"),
        (fields::HOOK, "in a hook, beside `event` and `handler`"),
        (fields::MANIFEST, "at the top, beside `hooks`"),
    ]
    .into_iter()
    .find(|(table, _)| fields::names(table).any(|name| name == key))
    .map(|(_, level)| level)
}

fn type_help(node: &Node, wanted: &str) -> Option<String> {
    match (&node.value, wanted) {
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

/// "did you mean" when there is something near, else the other help.
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
