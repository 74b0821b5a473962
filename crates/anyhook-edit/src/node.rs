//! The located tree: what a text says and where each part of it stands.
//!
//! Both formats parse into this one tree. It is what edits are planned on and
//! checked against; it is never written back.

use std::ops::Range;

use serde_json::{Map, Number, Value};

use crate::error::EditError;
use crate::path::{Key, show};
use crate::source::position;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub kind: Kind,
    pub form: Form,
    /// The text of the value; for a table with a header, the header.
    pub span: Range<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// As written, so that no digit of a huge number is lost.
    Number(String),
    Text(String),
    /// A scalar that JSON does not have: TOML's dates, `inf` and `nan`.
    Other(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Node,
}

/// How a value stands in the text. JSON knows `Inline` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Written in one piece.
    Inline,
    /// A TOML table with a header line, or the root table.
    Header,
    /// A TOML array of tables.
    Tables,
    /// A TOML table that exists because of dotted keys in its parent's body.
    Dotted,
    /// A TOML table that exists because of a longer header only.
    Implicit,
}

impl Node {
    pub(crate) fn inline(kind: Kind, span: Range<usize>) -> Self {
        Self {
            kind,
            form: Form::Inline,
            span,
        }
    }

    pub(crate) fn from_value(value: &Value) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(flag) => Kind::Bool(*flag),
            Value::Number(number) => Kind::Number(number.to_string()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => Kind::Array(items.iter().map(Self::from_value).collect()),
            Value::Object(map) => Kind::Object(
                map.iter()
                    .map(|(key, value)| Member::new(key, Self::from_value(value)))
                    .collect(),
            ),
        };
        Self::inline(kind, 0..0)
    }

    /// A number that JSON values cannot hold comes out as a string of its digits.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(digits) => serde_json::from_str::<Number>(digits)
                .map_or_else(|_| Value::String(digits.clone()), Value::Number),
            Kind::Text(text) | Kind::Other(text) => Value::String(text.clone()),
            Kind::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|member| (member.key.clone(), member.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    pub(crate) fn found(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::Other(_) => "a date or special number",
            Kind::Array(_) => "an array",
            Kind::Object(_) => "an object",
        }
    }

    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Number of children of a container; 0 for a scalar.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Array(items) => items.len(),
            Kind::Object(members) => members.len(),
            _ => 0,
        }
    }

    pub(crate) fn is_container(&self) -> bool {
        matches!(self.kind, Kind::Array(_) | Kind::Object(_))
    }

    fn child(&self, key: &Key) -> Option<&Node> {
        match (&self.kind, key) {
            (Kind::Array(items), Key::Index(index)) => items.get(*index),
            (Kind::Object(members), Key::Name(name)) => members
                .iter()
                .find(|member| member.key == *name)
                .map(|member| &member.value),
            _ => None,
        }
    }

    fn child_mut(&mut self, key: &Key) -> Option<&mut Node> {
        match (&mut self.kind, key) {
            (Kind::Array(items), Key::Index(index)) => items.get_mut(*index),
            (Kind::Object(members), Key::Name(name)) => members
                .iter_mut()
                .find(|member| member.key == *name)
                .map(|member| &mut member.value),
            _ => None,
        }
    }

    pub(crate) fn at(&self, path: &[Key]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.child(key))
    }

    pub(crate) fn at_mut(&mut self, path: &[Key]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, key| node.child_mut(key))
    }

    /// The node itself takes the child: an element of an array, a member of an object.
    pub(crate) fn push(&mut self, key: Option<&str>, value: Node) {
        match (&mut self.kind, key) {
            (Kind::Array(items), None) => items.push(value),
            (Kind::Object(members), Some(key)) => members.push(Member::new(key, value)),
            _ => {}
        }
    }

    /// The tree without the node at `path`; nothing is left when that is the root.
    pub(crate) fn without(&self, path: &[Key]) -> Option<Node> {
        let (last, parents) = path.split_last()?;
        let mut rest = self.clone();
        if let Some(parent) = rest.at_mut(parents) {
            match (&mut parent.kind, last) {
                (Kind::Array(items), Key::Index(index)) if *index < items.len() => {
                    items.remove(*index);
                }
                (Kind::Object(members), Key::Name(name)) => {
                    if let Some(at) = members.iter().position(|member| member.key == *name) {
                        members.remove(at);
                    }
                }
                _ => {}
            }
        }
        Some(rest)
    }

    /// Every node that `path` can mean when each index in it stands for any index.
    pub(crate) fn expand(&self, path: &[Key]) -> Vec<Vec<Key>> {
        let mut found = vec![Vec::new()];
        for key in path {
            let mut next = Vec::new();
            for prefix in found {
                let Some(node) = self.at(&prefix) else {
                    continue;
                };
                match key {
                    Key::Name(_) if node.child(key).is_some() => {
                        next.push(extended(&prefix, key.clone()));
                    }
                    Key::Name(_) => {}
                    Key::Index(_) => {
                        let count = node.items().map_or(0, <[Node]>::len);
                        next.extend((0..count).map(|at| extended(&prefix, Key::Index(at))));
                    }
                }
            }
            found = next;
        }
        found
    }

    /// Walks as far along `path` as there is something: the number of keys
    /// taken and the node reached. Refuses what makes the path ambiguous.
    pub(crate) fn descend(&self, text: &str, path: &[Key]) -> Result<(usize, &Node), EditError> {
        let mut node = self;
        for (depth, key) in path.iter().enumerate() {
            let here = || show(path.get(..depth).unwrap_or_default());
            match (key, &node.kind) {
                (Key::Name(name), Kind::Object(members)) => {
                    let mut same = members.iter().filter(|member| member.key == *name);
                    let Some(first) = same.next() else {
                        return Ok((depth, node));
                    };
                    if let Some(second) = same.next() {
                        let (line, column) = position(text, second.key_span.start);
                        return Err(EditError::DuplicateKey {
                            key: name.clone(),
                            first_line: position(text, first.key_span.start).0,
                            line,
                            column,
                        });
                    }
                    node = &first.value;
                }
                (Key::Index(index), Kind::Array(items)) => {
                    node = items.get(*index).ok_or_else(|| EditError::NoElement {
                        at: here(),
                        index: *index,
                    })?;
                }
                (Key::Name(_), _) => return Err(node.mismatch(text, here(), "an object")),
                (Key::Index(_), _) => return Err(node.mismatch(text, here(), "an array")),
            }
        }
        Ok((path.len(), node))
    }

    pub(crate) fn mismatch(&self, text: &str, at: String, expected: &'static str) -> EditError {
        let (line, column) = position(text, self.span.start);
        EditError::Kind {
            at,
            found: self.found(),
            expected,
            line,
            column,
        }
    }

    /// Equal in what they say, whatever the white space and the spans.
    pub(crate) fn same(&self, other: &Node, compare: Compare) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null, Kind::Null) => true,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Number(a), Kind::Number(b))
            | (Kind::Text(a), Kind::Text(b))
            | (Kind::Other(a), Kind::Other(b)) => a == b,
            (Kind::Array(a), Kind::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b, compare))
            }
            (Kind::Object(a), Kind::Object(b)) => {
                let (a, b) = (compare.arrange(a), compare.arrange(b));
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| a.key == b.key && a.value.same(&b.value, compare))
            }
            _ => false,
        }
    }

    fn is_hollow(&self) -> bool {
        match &self.kind {
            Kind::Array(items) => items.is_empty(),
            Kind::Object(members) => members.iter().all(|member| member.value.is_hollow()),
            _ => false,
        }
    }
}

fn extended(prefix: &[Key], key: Key) -> Vec<Key> {
    let mut path = prefix.to_vec();
    path.push(key);
    path
}

impl Member {
    pub(crate) fn new(key: &str, value: Node) -> Self {
        Self {
            key: key.to_owned(),
            key_span: 0..0,
            value,
        }
    }
}

/// What counts as a difference between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Order of keys and every empty container.
    Strict,
    /// Order of keys is free, as in TOML.
    Unordered,
    /// Also, an empty table or array of tables may be missing: TOML cannot
    /// write an array of no tables.
    Hollow,
}

impl Compare {
    fn arrange(self, members: &[Member]) -> Vec<&Member> {
        let mut list: Vec<&Member> = members.iter().collect();
        if self == Self::Hollow {
            list.retain(|member| !member.value.is_hollow());
        }
        if self != Self::Strict {
            list.sort_by(|a, b| a.key.cmp(&b.key));
        }
        list
    }
}
