//! A document as a tree with positions, the same from JSON, JSON with
//! comments, and YAML.
//!
//! Owns syntax; what the tree means is `parse`'s matter. Any text gives
//! findings or a tree, never a panic, and the work is bounded by the length of
//! the text: nesting is limited, and YAML aliases are refused.

mod json;
mod number;
mod yaml;

use std::collections::HashSet;

use serde_json::{Map, Number};

use crate::diagnostic::{Diagnostic, Span};

/// Longest text that is read.
pub const MAX_BYTES: usize = 4 << 20;

/// Deepest nesting that is read.
pub const MAX_DEPTH: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Strict.
    Json,
    /// With comments and trailing commas.
    Jsonc,
    /// 1.2, core schema.
    Yaml,
}

impl Format {
    /// By the end of a file's name. A `.json` file may hold comments.
    pub fn from_path(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "json" | "jsonc" => Some(Self::Jsonc),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// By the first thing in the text, when there is no name to go by.
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
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Number(value) => serde_json::Value::Number(value.clone()),
            Value::String(value) => serde_json::Value::String(value.clone()),
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

    /// The first member of that name.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_object()?
            .iter()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    /// What it is, as a user would say.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

pub fn object_to_json(members: &[Member]) -> Map<String, serde_json::Value> {
    let mut map = Map::with_capacity(members.len());
    for member in members {
        map.insert(member.key.clone(), member.value.to_json());
    }
    map
}

/// The tree, when the syntax allows one, and every mistake of syntax.
///
/// A mistake that can be stepped over (a missing comma, a doubled key) leaves
/// a tree, so that the rest of the text can be checked in the same pass.
pub fn parse(text: &str, format: Format) -> (Option<Node>, Vec<Diagnostic>) {
    if text.len() > MAX_BYTES {
        let finding = Diagnostic::error(
            "too-large",
            Span::at(0),
            format!("the file is larger than {} MiB", MAX_BYTES >> 20),
        );
        return (None, vec![finding]);
    }
    match format {
        Format::Json => json::parse(text, false),
        Format::Jsonc => json::parse(text, true),
        Format::Yaml => yaml::parse(text),
    }
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error(
        "too-deep",
        span,
        format!("nested more than {MAX_DEPTH} levels deep"),
    )
}

fn report_duplicates(members: &[Member], findings: &mut Vec<Diagnostic>) {
    // Most objects are small, and comparing a few keys is cheaper than hashing them.
    let small = members.len() <= 16;
    let mut seen = HashSet::new();
    for (index, member) in members.iter().enumerate() {
        let doubled = if small {
            let mut earlier = members.iter().take(index);
            earlier.any(|other| other.key == member.key)
        } else {
            !seen.insert(member.key.as_str())
        };
        if doubled {
            findings.push(
                Diagnostic::error(
                    "duplicate-key",
                    member.key_span,
                    format!("`{}` is there twice", member.key),
                )
                .help("keep one of the two"),
            );
        }
    }
}
