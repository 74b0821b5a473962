//! JSON and JSON with comments as text: where a value goes in, what comes out.

mod parse;
mod render;

use std::ops::Range;

use serde_json::Value;

pub(crate) use self::parse::parse;
use self::render::Style;
use crate::list::{Comments, Layout, List, Look};
use crate::node::{Kind, Node};
use crate::path::Key;
use crate::source::{Insertion, before, from, newline, slice};

/// The text of a whole document, for a file that has none yet.
pub(crate) fn document(text: &str, value: &Value, escape_slashes: bool) -> Vec<Insertion> {
    let style = Style::detect(text, None, escape_slashes);
    let layout = Layout::Block {
        indent: String::new(),
    };
    let body = style.value(value, &layout);
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

/// Puts `value` at the end of the container at `path`, under `key` when that is an object.
pub(crate) fn insert(
    text: &str,
    root: &Node,
    path: &[Key],
    key: Option<&str>,
    value: &Value,
    escape_slashes: bool,
) -> Vec<Insertion> {
    let Some(node) = root.at(path) else {
        return Vec::new();
    };
    let style = Style::detect(text, Some(root), escape_slashes);
    let list = list(text, node);
    let look = Look {
        newline: style.newline,
        unit: style.unit.clone(),
        block_when_empty: opens_over_lines(text, root, path),
        gap: style.gap,
        pad: "",
    };
    let terse = siblings_are_one_liners(text, node);
    list.insert(&look, &|layout| {
        let layout = if terse { &Layout::Inline } else { layout };
        match key {
            Some(key) => style.member(key, value, layout),
            None => style.value(value, layout),
        }
    })
}

/// What to take out so that the node at `path` is gone.
pub(crate) fn remove(text: &str, root: &Node, path: &[Key]) -> Vec<Range<usize>> {
    let Some((last, parents)) = path.split_last() else {
        let around = format!(
            "{}{}",
            before(text, root.span.start),
            from(text, root.span.end)
        );
        let whole = around.trim().is_empty();
        return vec![if whole {
            0..text.len()
        } else {
            root.span.clone()
        }];
    };
    let Some(parent) = root.at(parents) else {
        return Vec::new();
    };
    let index = match (&parent.kind, last) {
        (Kind::Array(_), Key::Index(index)) => Some(*index),
        (Kind::Object(members), Key::Name(name)) => {
            members.iter().position(|member| member.key == *name)
        }
        _ => None,
    };
    index.map_or_else(Vec::new, |index| list(text, parent).remove(index))
}

fn list<'t>(text: &'t str, node: &Node) -> List<'t> {
    let items = match &node.kind {
        Kind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
        Kind::Object(members) => members
            .iter()
            .map(|member| member.key_span.start..member.value.span.end)
            .collect(),
        _ => Vec::new(),
    };
    let inner = node.span.start + 1..node.span.end.saturating_sub(1);
    List::scan(text, inner, items, Comments::Slash)
}

/// An empty container is opened over several lines where its parent is: a file
/// on one line stays on one line.
fn opens_over_lines(text: &str, root: &Node, path: &[Key]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return true;
    };
    if root
        .at(path)
        .is_some_and(|node| slice(text, node.span.clone()).contains('\n'))
    {
        return true;
    }
    let Some(parent) = root.at(parents) else {
        return false;
    };
    let index = match last {
        Key::Index(index) => Some(*index),
        Key::Name(name) => parent
            .members()
            .and_then(|members| members.iter().position(|member| member.key == *name)),
    };
    index.is_some_and(|index| list(text, parent).on_own_line(index))
}

/// Elements that are each written on one line want company of the same kind.
fn siblings_are_one_liners(text: &str, node: &Node) -> bool {
    let last = match &node.kind {
        Kind::Array(items) => items.last(),
        _ => None,
    };
    last.is_some_and(|last| {
        last.is_container() && last.len() > 0 && !slice(text, last.span.clone()).contains('\n')
    })
}
