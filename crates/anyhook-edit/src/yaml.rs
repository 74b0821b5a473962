//! YAML text: where a value is inserted, and which bytes to remove.
//!
//! Block collections get lines of their own after their last one; flow
//! collections (`{}`, `[]`) get JSON, which is YAML as well. What a text means is
//! decided by the parser: the caller parses every result before it accepts it.

mod render;

use std::ops::Range;

use anyhook_model::document::{self, Member, Node, Value as NodeValue};
use anyhook_model::{Format, Span};
use serde_json::Value;

use crate::edit::PlannedEdit;
use crate::error::EditError;
use crate::list::{BracketedList, CommentSyntax, ListStyle};
use crate::path::Key;
use crate::text::{Insertion, before, from, line_end, line_start, newline, slice};
use crate::tree::{child_index, children, node_at};

/// One level of indentation.
const INDENT: &str = "  ";

/// Parses a text; `None` if it has no content. Values that JSON cannot express,
/// such as aliases, are opaque: they stay as they are.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, EditError> {
    let has_content = |line: &str| !line.is_empty() && !line.starts_with('#') && line != "---";
    if !text.lines().map(str::trim).any(has_content) {
        return Ok(None);
    }
    let (root, findings) = document::parse(text, Format::Yaml);
    if let Some(mut root) = root {
        open_empty_values(&mut root);
        locate_flow_ends(text, &mut root);
        let is_empty = matches!(&root.value, NodeValue::Object(members) if members.is_empty());
        return Ok(Some(root).filter(|root| !(is_empty && root.span.is_empty())));
    }
    match findings.iter().find(|finding| finding.is_error()) {
        Some(error) => {
            let message = error.message.clone();
            Err(EditError::parse(text, error.span.start, message))
        }
        None => Ok(None),
    }
}

/// Takes `key:` without a value for an empty object, to which keys can be added.
fn open_empty_values(node: &mut Node) {
    match &mut node.value {
        NodeValue::Null if node.span.is_empty() => node.value = NodeValue::Object(Vec::new()),
        NodeValue::Array(items) => items.iter_mut().for_each(open_empty_values),
        NodeValue::Object(members) => {
            let values = members.iter_mut().map(|member| &mut member.value);
            values.for_each(open_empty_values);
        }
        _ => {}
    }
}

/// Sets the end of collections in brackets, for which the parser includes what
/// follows them.
fn locate_flow_ends(text: &str, node: &mut Node) {
    match &mut node.value {
        NodeValue::Array(items) => {
            let items = items.iter_mut();
            items.for_each(|item| locate_flow_ends(text, item));
        }
        NodeValue::Object(members) => {
            let values = members.iter_mut().map(|member| &mut member.value);
            values.for_each(|value| locate_flow_ends(text, value));
        }
        _ => return,
    }
    if !is_flow(text, node) {
        return;
    }
    let last = match &node.value {
        NodeValue::Array(items) => items.last().map(|item| item.span.end),
        NodeValue::Object(members) => members.last().map(member_end),
        _ => None,
    };
    let mut at = last.unwrap_or(0).max(node.span.start + 1);
    for line in from(text, at).split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or(line);
        if let Some(close) = code.find([']', '}']) {
            node.span = Span::new(node.span.start, at + close + 1);
            return;
        }
        at += line.len();
    }
}

/// A value as a YAML document.
pub fn yaml_text(value: &Value) -> String {
    render::block(value, "", "\n")
}

/// The text of a whole document, for a file without one.
pub(crate) fn document(text: &str, value: &Value) -> Vec<Insertion> {
    let nl = newline(text);
    let start = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        nl
    };
    let lines = render::block(value, "", nl);
    vec![Insertion::new(text.len(), format!("{start}{lines}"))]
}

/// Inserts the planned values at the end of their container.
pub(crate) fn insert(text: &str, root: &Node, planned: &PlannedEdit<'_>) -> Vec<Insertion> {
    let Some(node) = node_at(root, planned.container) else {
        return Vec::new();
    };
    let nl = newline(text);
    if is_flow(text, node) {
        let items = planned.values.iter().map(|value| match planned.key {
            Some(key) => format!("{}: {value}", Value::from(key)),
            None => value.to_string(),
        });
        let item = items.collect::<Vec<_>>().join(", ");
        let style = ListStyle {
            newline: nl,
            indent: INDENT.to_owned(),
            block_when_empty: false,
            gap: " ",
            pad: "",
        };
        return flow_list(text, node).insert(&style, &|_| item.clone());
    }
    let end = line_end(text, content_end(root, planned.container, node));
    let indent = match child_column(text, node) {
        Some(column) => " ".repeat(column),
        // A key without a value: one level below the key.
        None => format!(
            "{}{INDENT}",
            " ".repeat(key_column(text, root, planned.container))
        ),
    };
    let lines = planned.values.iter().map(|value| match planned.key {
        Some(key) => render::member(key, value, &indent, nl),
        None => render::item(value, &indent, nl),
    });
    let mut lines: String = lines.collect();
    if !before(text, end).ends_with('\n') {
        // The file ends without a newline, and goes on doing so.
        lines = format!("{nl}{}", lines.strip_suffix(nl).unwrap_or(&lines));
    }
    vec![Insertion::new(end, lines)]
}

/// The bytes to remove so that the node at `path` is gone.
pub(crate) fn remove(text: &str, root: &Node, path: &[Key]) -> Vec<Range<usize>> {
    let Some((last, parents)) = path.split_last() else {
        return Vec::from([Range {
            start: 0,
            end: text.len(),
        }]);
    };
    let (Some(parent), Some(node)) = (node_at(root, parents), node_at(root, path)) else {
        return Vec::new();
    };
    let Some(index) = child_index(parent, last) else {
        return Vec::new();
    };
    if is_flow(text, parent) {
        return flow_list(text, parent).remove(index);
    }
    let Some((start, _)) = children(parent).get(index).copied() else {
        return Vec::new();
    };
    let end = line_end(text, content_end(root, path, node));
    let mut start = line_start(text, start);
    if end == text.len() && !text.ends_with('\n') {
        // The newline before it ended the line that is the last one now.
        start = before(text, start).trim_end_matches(['\r', '\n']).len();
    }
    Vec::from([Range { start, end }])
}

/// Whether a collection is written in brackets.
fn is_flow(text: &str, node: &Node) -> bool {
    from(text, node.span.start).starts_with(['[', '{'])
}

fn flow_list<'t>(text: &'t str, node: &Node) -> BracketedList<'t> {
    let items = children(node).into_iter();
    let items = items
        .map(|(start, item)| start..item.span.end.max(start))
        .collect();
    BracketedList::scan(text, node, items, CommentSyntax::Hash)
}

/// The end of a node's last text. The parser's own end of a block collection is
/// that of the comments behind it.
fn content_end(root: &Node, path: &[Key], node: &Node) -> usize {
    let own = match path.split_last() {
        Some((Key::Name(name), parents)) => {
            let parent = node_at(root, parents).and_then(Node::as_object);
            let mut members = parent.into_iter().flatten();
            let member = members.find(|member| member.key == *name);
            member.map_or(0, |member| member.key_span.end)
        }
        _ => 0,
    };
    own.max(last_text(node))
}

fn last_text(node: &Node) -> usize {
    match &node.value {
        NodeValue::Array(items) => items.iter().map(last_text).max().unwrap_or(node.span.end),
        NodeValue::Object(members) if !members.is_empty() => {
            let ends = members.iter().map(member_end);
            ends.max().unwrap_or(node.span.end)
        }
        // An empty value is located at whatever follows it.
        NodeValue::Object(_) if node.span.is_empty() => 0,
        _ => node.span.end,
    }
}

fn member_end(member: &Member) -> usize {
    member.key_span.end.max(last_text(&member.value))
}

/// The column at which the keys or dashes of a block collection start.
fn child_column(text: &str, node: &Node) -> Option<usize> {
    let start = match &node.value {
        NodeValue::Object(members) => members.first()?.key_span.start,
        NodeValue::Array(items) => {
            let first = items.first()?.span.start;
            let starts_with_dash = from(text, node.span.start).starts_with('-');
            let dash = || before(text, first).rfind('-');
            if starts_with_dash {
                node.span.start
            } else {
                dash()?
            }
        }
        _ => return None,
    };
    Some(column(text, start))
}

/// The column of the key whose value is at `path`.
fn key_column(text: &str, root: &Node, path: &[Key]) -> usize {
    let Some((last, parents)) = path.split_last() else {
        return 0;
    };
    let parent = node_at(root, parents);
    let index = parent.and_then(|parent| child_index(parent, last));
    let start = parent.zip(index).and_then(|(parent, index)| {
        let (start, _) = children(parent).get(index).copied()?;
        Some(start)
    });
    start.map_or(0, |start| column(text, start))
}

fn column(text: &str, offset: usize) -> usize {
    slice(text, line_start(text, offset)..offset)
        .chars()
        .count()
}
