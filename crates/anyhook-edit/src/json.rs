//! JSON text: where a value is inserted, and which bytes to remove.

mod render;

use std::ops::Range;

use anyhook_model::document::Node;
use serde_json::Value;

use self::render::JsonStyle;
use crate::edit::PlannedEdit;
use crate::list::{BracketedList, CommentSyntax};
use crate::path::Key;
use crate::text::{Insertion, before, from, newline, slice};
use crate::tree::{child_count, child_index, children, node_at};

/// The text of a whole document, for a file without one.
pub(crate) fn document(text: &str, value: &Value, escape_slashes: bool) -> Vec<Insertion> {
    let style = JsonStyle::detect(text, None, escape_slashes);
    let body = style.value(value, Some(""));
    let nl = newline(text);
    let trimmed = text.trim_end();
    if trimmed.is_empty() {
        let end = if text.starts_with(['\n', '\r']) {
            ""
        } else {
            nl
        };
        return vec![Insertion::new(0, format!("{body}{end}"))];
    }
    // Only comments: they stay on top.
    let start = if from(text, trimmed.len()).contains('\n') {
        ""
    } else {
        nl
    };
    vec![Insertion::new(text.len(), format!("{start}{body}{nl}"))]
}

/// Inserts the planned values at the end of their container. Several can only be
/// added to an array that is not empty.
pub(crate) fn insert(
    text: &str,
    root: &Node,
    planned: &PlannedEdit<'_>,
    escape_slashes: bool,
) -> Vec<Insertion> {
    let Some(node) = node_at(root, planned.container) else {
        return Vec::new();
    };
    let mut style = JsonStyle::detect(text, Some(root), escape_slashes);
    style.list.block_when_empty = opens_over_lines(text, root, planned.container);
    let one_line = siblings_are_one_liners(text, node);
    let list = list(text, node);
    list.insert(&style.list, &|indent| {
        let separator = list.separator(&style.list, indent);
        let indent = indent.filter(|_| !one_line);
        let items = planned.values.iter().map(|value| match planned.key {
            Some(key) => style.member(key, value, indent),
            None => style.value(value, indent),
        });
        items.collect::<Vec<_>>().join(&separator)
    })
}

/// The bytes to remove so that the node at `path` is gone.
pub(crate) fn remove(text: &str, root: &Node, path: &[Key]) -> Vec<Range<usize>> {
    let Some((last, parents)) = path.split_last() else {
        let around = [before(text, root.span.start), from(text, root.span.end)];
        let whole = around.iter().all(|part| part.trim().is_empty());
        return vec![if whole {
            0..text.len()
        } else {
            root.span.range()
        }];
    };
    let Some(parent) = node_at(root, parents) else {
        return Vec::new();
    };
    child_index(parent, last).map_or_else(Vec::new, |index| list(text, parent).remove(index))
}

fn list<'t>(text: &'t str, node: &Node) -> BracketedList<'t> {
    let items = children(node).into_iter();
    let items = items.map(|(start, item)| start..item.span.end).collect();
    BracketedList::scan(text, node, items, CommentSyntax::Slash)
}

/// An empty container is opened over several lines if it is in a container
/// that is: a file on one line stays on one line.
fn opens_over_lines(text: &str, root: &Node, path: &[Key]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return true;
    };
    if node_at(root, path).is_some_and(|node| slice(text, node.span.range()).contains('\n')) {
        return true;
    }
    node_at(root, parents).is_some_and(|parent| {
        child_index(parent, last).is_some_and(|index| list(text, parent).on_own_line(index))
    })
}

/// Whether the elements of an array are each written on one line.
fn siblings_are_one_liners(text: &str, node: &Node) -> bool {
    node.as_array()
        .and_then(<[Node]>::last)
        .is_some_and(|last| child_count(last) > 0 && !slice(text, last.span.range()).contains('\n'))
}
