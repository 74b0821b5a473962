//! Documents as trees with positions: one parser for JSON and JSON with
//! comments, one for YAML, and one tree for both.
//!
//! Owns syntax; `parse` interprets the tree. Any text gives
//! findings or a tree, never a panic, and the work is bounded by the length of
//! the text: nesting is limited, and YAML aliases are refused. TOML is parsed
//! by `anyhook-edit`, into the same tree.

mod json;
mod yaml;

use std::collections::HashSet;

use serde_json::{Map, Number};

use crate::diagnostic::{Diagnostic, Span};
use crate::word_enum::word_enum;

/// Longest text that is parsed.
pub const MAX_BYTES: usize = 4 << 20;

/// Deepest nesting of lists and objects that is parsed.
pub const MAX_DEPTH: usize = 100;

word_enum! {
    /// The format of a config file.
    Format {
        /// Strict: comments and trailing commas are errors.
        Json = "json",
        /// JSON with comments and trailing commas.
        Jsonc = "jsonc",
        Toml = "toml",
        /// 1.2, core schema.
        Yaml = "yaml",
    }
}

impl Format {
    /// By the extension of a file's name. A `.json` file may contain comments.
    pub fn from_path(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "json" | "jsonc" => Some(Self::Jsonc),
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// By the start of the text, when there is no file name.
    pub fn detect(text: &str) -> Self {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with(['{', '[']) || start.starts_with("//") || start.starts_with("/*") {
            Self::Jsonc
        } else {
            Self::Yaml
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    pub notation: Notation,
    /// The text of the value; for a TOML table with a header, the header.
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// As written in JSON notation, so that no digit of a huge number is lost.
    Number(String),
    String(String),
    /// A scalar that JSON does not have: TOML's dates, `inf` and `nan`.
    Literal(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

/// How a value is written. JSON and YAML only have `Inline`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// In one piece.
    Inline,
    /// A TOML table with a header line, or the root table.
    Header,
    ArrayOfTables,
    /// A TOML table that exists because of dotted keys in its parent's body.
    Dotted,
    /// A TOML table that exists only because of a longer header.
    Implicit,
}

impl Node {
    pub fn inline(value: Value, span: Span) -> Self {
        Self {
            value,
            notation: Notation::Inline,
            span,
        }
    }

    /// A number that JSON values cannot hold becomes a string of its digits.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Number(digits) => match parse_number(digits) {
                Some(number) => serde_json::Value::Number(number),
                None => serde_json::Value::String(digits.clone()),
            },
            Value::String(text) | Value::Literal(text) => serde_json::Value::String(text.clone()),
            Value::Array(items) => items.iter().map(Self::to_json).collect(),
            Value::Object(members) => serde_json::Value::Object(object_to_json(members)),
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match &self.value {
            Value::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The first member with that key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_object()?
            .iter()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    /// The type of the value, for messages.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Literal(_) => "a date or special number",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

pub(crate) fn object_to_json(members: &[Member]) -> Map<String, serde_json::Value> {
    let mut map = Map::with_capacity(members.len());
    for member in members {
        map.insert(member.key.clone(), member.value.to_json());
    }
    map
}

/// The tree, if the syntax allows one, and every syntax error.
///
/// After an error that can be skipped (a missing comma, a duplicate key) there
/// still is a tree, so that the rest of the text is checked in the same pass.
pub fn parse(text: &str, format: Format) -> (Option<Node>, Vec<Diagnostic>) {
    if text.len() > MAX_BYTES {
        let finding = Diagnostic::error(
            "too-large",
            Span::at(0),
            format!("the file is larger than {} MiB", MAX_BYTES >> 20),
        );
        return (None, vec![finding]);
    }
    let (tree, mut findings) = match format {
        Format::Json => json::parse(text, false),
        Format::Jsonc => json::parse(text, true),
        Format::Yaml => yaml::parse(text),
        Format::Toml => {
            let finding = Diagnostic::error("syntax", Span::at(0), "TOML is not supported here")
                .help("write the file as YAML or JSON");
            (None, vec![finding])
        }
    };
    if tree.is_none() && findings.is_empty() {
        findings.push(Diagnostic::error(
            "syntax",
            Span::at(0),
            "the file is empty",
        ));
    }
    (tree, findings)
}

/// Parses another program's JSON file that is to be edited in place. `None`:
/// it has only white space and comments. The error is the first one found.
///
/// Accepts what is legal JSON even where anyhook has no value for it: duplicate
/// keys, numbers of any size, halves of surrogate pairs. Text must not start
/// with a byte order mark.
pub fn parse_json_for_editing(text: &str, comments: bool) -> Result<Option<Node>, Diagnostic> {
    json::parse_for_editing(text, comments)
}

/// A decimal integer or float in JSON's notation, or `None` if it is too large
/// for a JSON value.
fn parse_number(text: &str) -> Option<Number> {
    if !text.contains(['.', 'e', 'E']) {
        // Negative zero is a float in every format, or it would lose its sign.
        if text == "-0" {
            return Number::from_f64(-0.0);
        }
        if let Ok(value) = text.parse::<i64>() {
            return Some(value.into());
        }
        if let Ok(value) = text.parse::<u64>() {
            return Some(value.into());
        }
    }
    Number::from_f64(text.parse().ok()?)
}

fn too_deep(span: Span, limit: usize) -> Diagnostic {
    Diagnostic::error(
        "too-deep",
        span,
        format!("nested more than {limit} levels deep"),
    )
}

fn report_duplicates(members: &[Member], findings: &mut Vec<Diagnostic>) {
    let mut seen = HashSet::new();
    for member in members {
        if !seen.insert(member.key.as_str()) {
            findings.push(
                Diagnostic::error(
                    "duplicate-key",
                    member.key_span,
                    format!("duplicate key `{}`", member.key),
                )
                .help("keep one of the two"),
            );
        }
    }
}
