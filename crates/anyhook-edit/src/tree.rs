//! Navigation in located trees, and the comparison of two of them.
//!
//! A tree is what an edit is planned on and checked against; it is never
//! written back.

use anyhook_model::Span;
use anyhook_model::document::{Member, Node, Value};

use crate::error::EditError;
use crate::path::{Key, display_path};
use crate::text::line_and_column;

/// The tree of a new value, which has no position.
pub(crate) fn tree_from_json(value: &serde_json::Value) -> Node {
    let value = match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => Value::Number(number.to_string()),
        serde_json::Value::String(text) => Value::String(text.clone()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(tree_from_json).collect()),
        serde_json::Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| new_member(key, tree_from_json(value)))
                .collect(),
        ),
    };
    Node::inline(value, Span::default())
}

fn new_member(key: &str, value: Node) -> Member {
    Member {
        key: key.to_owned(),
        key_span: Span::default(),
        value,
    }
}

/// The children of a container, each with the start of its text, which includes its key.
pub(crate) fn children(node: &Node) -> Vec<(usize, &Node)> {
    match &node.value {
        Value::Array(items) => items.iter().map(|item| (item.span.start, item)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|member| (member.key_span.start, &member.value))
            .collect(),
        _ => Vec::new(),
    }
}

/// Number of children of a container; 0 for a scalar.
pub(crate) fn child_count(node: &Node) -> usize {
    children(node).len()
}

/// The position of a child among its siblings.
pub(crate) fn child_index(node: &Node, key: &Key) -> Option<usize> {
    match (&node.value, key) {
        (Value::Array(items), Key::Index(index)) => (*index < items.len()).then_some(*index),
        (Value::Object(members), Key::Name(name)) => {
            members.iter().position(|member| member.key == *name)
        }
        _ => None,
    }
}

fn child<'n>(node: &'n Node, key: &Key) -> Option<&'n Node> {
    let index = child_index(node, key)?;
    match &node.value {
        Value::Array(items) => items.get(index),
        Value::Object(members) => members.get(index).map(|member| &member.value),
        _ => None,
    }
}

fn child_mut<'n>(node: &'n mut Node, key: &Key) -> Option<&'n mut Node> {
    let index = child_index(node, key)?;
    match &mut node.value {
        Value::Array(items) => items.get_mut(index),
        Value::Object(members) => members.get_mut(index).map(|member| &mut member.value),
        _ => None,
    }
}

pub(crate) fn node_at<'n>(root: &'n Node, path: &[Key]) -> Option<&'n Node> {
    path.iter().try_fold(root, child)
}

pub(crate) fn node_at_mut<'n>(root: &'n mut Node, path: &[Key]) -> Option<&'n mut Node> {
    path.iter().try_fold(root, child_mut)
}

/// Adds an element to the array at `path`, or a member to the object there.
pub(crate) fn add_child(root: &mut Node, path: &[Key], key: Option<&str>, value: Node) {
    match (node_at_mut(root, path).map(|node| &mut node.value), key) {
        (Some(Value::Array(items)), None) => items.push(value),
        (Some(Value::Object(members)), Some(key)) => members.push(new_member(key, value)),
        _ => {}
    }
}

/// The tree without the node at `path`; `None` if that is the root.
pub(crate) fn without_node(root: &Node, path: &[Key]) -> Option<Node> {
    let (last, parents) = path.split_last()?;
    let mut rest = root.clone();
    if let Some(parent) = node_at_mut(&mut rest, parents)
        && let Some(index) = child_index(parent, last)
    {
        match &mut parent.value {
            Value::Array(items) => drop(items.remove(index)),
            Value::Object(members) => drop(members.remove(index)),
            _ => {}
        }
    }
    Some(rest)
}

/// Every existing path that `path` matches when each index in it means any index.
pub(crate) fn matching_paths(root: &Node, path: &[Key]) -> Vec<Vec<Key>> {
    let mut found = vec![Vec::new()];
    for key in path {
        let mut next = Vec::new();
        for prefix in found {
            let Some(node) = node_at(root, &prefix) else {
                continue;
            };
            match key {
                Key::Name(_) if child(node, key).is_some() => {
                    next.push(extended(&prefix, key.clone()));
                }
                Key::Name(_) => {}
                Key::Index(_) => {
                    let count = node.as_array().map_or(0, <[Node]>::len);
                    next.extend((0..count).map(|index| extended(&prefix, Key::Index(index))));
                }
            }
        }
        found = next;
    }
    found
}

/// Follows `path` as far as it exists: the number of keys followed and the
/// node reached. Refuses whatever makes the path ambiguous.
pub(crate) fn descend<'n>(
    root: &'n Node,
    text: &str,
    path: &[Key],
) -> Result<(usize, &'n Node), EditError> {
    let mut node = root;
    for (depth, key) in path.iter().enumerate() {
        let here = || display_path(path.get(..depth).unwrap_or_default());
        match (key, &node.value) {
            (Key::Name(name), Value::Object(members)) => {
                let mut same = members.iter().filter(|member| member.key == *name);
                let Some(first) = same.next() else {
                    return Ok((depth, node));
                };
                if let Some(second) = same.next() {
                    let (line, column) = line_and_column(text, second.key_span.start);
                    return Err(EditError::DuplicateKey {
                        key: name.clone(),
                        first_line: line_and_column(text, first.key_span.start).0,
                        line,
                        column,
                    });
                }
                node = &first.value;
            }
            (Key::Index(index), Value::Array(items)) => {
                node = items.get(*index).ok_or_else(|| EditError::NoElement {
                    at: here(),
                    index: *index,
                })?;
            }
            (Key::Name(_), _) => return Err(wrong_type(node, text, here(), "an object")),
            (Key::Index(_), _) => return Err(wrong_type(node, text, here(), "a list")),
        }
    }
    Ok((path.len(), node))
}

pub(crate) fn wrong_type(node: &Node, text: &str, at: String, expected: &'static str) -> EditError {
    let (line, column) = line_and_column(text, node.span.start);
    EditError::WrongType {
        at,
        found: node.type_name(),
        expected,
        line,
        column,
    }
}

/// Whether two trees have the same content, whatever their white space and positions.
pub(crate) fn same_content(a: &Node, b: &Node, comparison: Comparison) -> bool {
    match (&a.value, &b.value) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_content(a, b, comparison))
        }
        (Value::Object(a), Value::Object(b)) => {
            let (a, b) = (comparison.members(a), comparison.members(b));
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.key == b.key && same_content(&a.value, &b.value, comparison))
        }
        (a, b) => a == b,
    }
}

fn is_hollow(node: &Node) -> bool {
    match &node.value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.iter().all(|member| is_hollow(&member.value)),
        _ => false,
    }
}

fn extended(prefix: &[Key], key: Key) -> Vec<Key> {
    let mut path = prefix.to_vec();
    path.push(key);
    path
}

/// What counts as a difference between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The order of keys and every empty container.
    Strict,
    /// The order of keys is free, as in TOML.
    Unordered,
    /// Also, an empty table or array of tables may be missing: TOML has no
    /// syntax for an empty array of tables.
    IgnoreEmpty,
}

impl Comparison {
    /// The members that count, in the order in which they are compared.
    fn members(self, members: &[Member]) -> Vec<&Member> {
        let mut list: Vec<&Member> = members.iter().collect();
        if self == Self::IgnoreEmpty {
            list.retain(|member| !is_hollow(&member.value));
        }
        if self != Self::Strict {
            list.sort_by(|a, b| a.key.cmp(&b.key));
        }
        list
    }
}
