//! TOML text: where a value is inserted, and which bytes to remove.
//!
//! A value can be written in several places (a header at the end of the file, a
//! line in a table's body, an inline array), and which of them mean the same
//! depends on the rest of the file. So this module makes proposals, best first,
//! and the caller parses the result of each before it accepts one.

mod parse;
mod render;

use std::ops::Range;

use anyhook_model::document::{Node, Notation};
use serde_json::{Map, Value};

pub(crate) use self::parse::parse;
use crate::edit::PlannedEdit;
use crate::error::EditError;
use crate::list::{BracketedList, CommentSyntax, ListStyle};
use crate::path::Key;
use crate::text::{Insertion, before, from, indent_at, line_end, line_start, newline, slice};
use crate::tree::{child_index, children, node_at};

/// The text of a whole document, for a file without one.
pub(crate) fn document(text: &str, value: &Value) -> Result<Vec<Insertion>, EditError> {
    let map = value.as_object().cloned().unwrap_or_default();
    let body = render::body(&[], &map, newline(text))?;
    Ok(vec![Insertion::new(text.len(), body)])
}

/// Inserts the planned value at the end of its container.
pub(crate) fn insert(
    text: &str,
    root: &Node,
    planned: &PlannedEdit<'_>,
) -> Result<Vec<Vec<Insertion>>, EditError> {
    let path = planned.container;
    let Some(node) = node_at(root, path) else {
        return Ok(Vec::new());
    };
    let mut names = names(path);
    let Some((key, value)) = planned.key.zip(planned.values.first()) else {
        if node.notation == Notation::ArrayOfTables {
            let maps = planned.values.iter().map(Value::as_object);
            let maps: Option<Vec<_>> = maps.collect();
            let maps = maps.ok_or_else(|| EditError::Unwritable {
                what: "a plain value in an array of tables".to_owned(),
            })?;
            return blocks(text, node, &names, &maps, true);
        }
        let items = planned.values.iter().map(render::inline);
        let items = items.collect::<Result<Vec<_>, _>>()?;
        return Ok(vec![list_insert(text, node, &items.join(", "))]);
    };
    let line = format!("{} = {}", render::key(key), render::inline(value)?);
    if node.notation == Notation::Inline {
        return Ok(vec![list_insert(text, node, &line)]);
    }
    names.push(key.to_owned());
    let tables = tables(value);
    let mut proposals = match value {
        Value::Object(map) if !map.is_empty() => blocks(text, node, &names, &[map], false)?,
        _ if !tables.is_empty() => blocks(text, node, &names, &tables, true)?,
        _ => Vec::new(),
    };
    proposals.extend(lines(text, root, path, &line));
    Ok(proposals)
}

/// The bytes to remove so that the node at `path` is gone.
pub(crate) fn remove(text: &str, root: &Node, path: &[Key]) -> Vec<Range<usize>> {
    let Some((last, parents)) = path.split_last() else {
        let mut ranges = statements(text, 0, root);
        if !text.contains('#') {
            ranges.push(0..text.len());
        }
        return ranges;
    };
    let Some(parent) = node_at(root, parents) else {
        return Vec::new();
    };
    let index = child_index(parent, last);
    if parent.notation == Notation::Inline {
        return index.map_or_else(Vec::new, |index| list(text, parent).remove(index));
    }
    let child = index.and_then(|index| children(parent).into_iter().nth(index));
    child.map_or_else(Vec::new, |(start, node)| statements(text, start, node))
}

fn names(path: &[Key]) -> Vec<String> {
    path.iter()
        .filter_map(|key| match key {
            Key::Name(name) => Some(name.clone()),
            Key::Index(_) => None,
        })
        .collect()
}

/// The tables of an array that contains only tables.
fn tables(value: &Value) -> Vec<&Map<String, Value>> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let maps: Vec<_> = items.iter().filter_map(Value::as_object).collect();
    if maps.len() == items.len() {
        maps
    } else {
        Vec::new()
    }
}

/// Tables with headers: at the end of the file, or, where that would attach
/// them to another element of an array of tables, after the text of `near`.
fn blocks(
    text: &str,
    near: &Node,
    names: &[String],
    maps: &[&Map<String, Value>],
    in_array: bool,
) -> Result<Vec<Vec<Insertion>>, EditError> {
    let nl = newline(text);
    let blocks = maps
        .iter()
        .map(|map| render::block(names, map, in_array, nl))
        .collect::<Result<Vec<_>, _>>()?
        .join(nl);
    let mut proposals = vec![vec![Insertion::new(text.len(), at_end(text, &blocks, nl))]];
    let end = statements_end(near).map(|end| line_end(text, end));
    if let Some(end) = end.filter(|end| *end < text.len()) {
        proposals.push(vec![Insertion::new(end, format!("{nl}{blocks}"))]);
    }
    Ok(proposals)
}

/// Puts an empty line before the block, and ends the file as it ended before.
fn at_end(text: &str, block: &str, nl: &str) -> String {
    let is_blank = text.trim().is_empty();
    let is_ended = text.is_empty() || text.ends_with('\n');
    if !is_blank && !is_ended {
        let block = block.strip_suffix(nl).unwrap_or(block);
        return format!("{nl}{nl}{block}");
    }
    if is_ended && (is_blank || text.lines().next_back() == Some("")) {
        block.to_owned()
    } else {
        format!("{nl}{block}")
    }
}

/// A `key = value` line in the body of the table at `path`.
fn lines(text: &str, root: &Node, path: &[Key], line: &str) -> Vec<Vec<Insertion>> {
    let nl = newline(text);
    let mut proposals = Vec::new();
    let mut line = line.to_owned();
    for depth in (0..=path.len()).rev() {
        let (here, deeper) = path.split_at(depth);
        let Some(node) = node_at(root, here) else {
            continue;
        };
        match node.notation {
            Notation::Header => {
                proposals.push(vec![body_line(text, node, depth == 0, &line, nl)]);
                break;
            }
            Notation::Implicit if deeper.is_empty() => {
                let header = render::dotted(&names(here));
                let block = format!("[{header}]{nl}{line}{nl}");
                proposals.push(vec![Insertion::new(text.len(), at_end(text, &block, nl))]);
            }
            _ => {}
        }
        if let Some(Key::Name(name)) = here.last() {
            line = format!("{}.{line}", render::key(name));
        }
    }
    proposals
}

fn body_line(text: &str, table: &Node, is_root: bool, line: &str, nl: &str) -> Insertion {
    let last = body_end(table).or_else(|| (!is_root).then_some(table.span.end));
    if let Some(last) = last {
        let end = line_end(text, last);
        let indent = indent_at(text, body_start(table, last));
        return if from(text, last).contains('\n') {
            Insertion::new(end, format!("{indent}{line}{nl}"))
        } else {
            Insertion::new(end, format!("{nl}{indent}{line}"))
        };
    }
    // A root table without a line of its own: below the comment at the top of the file, if any.
    let at = heading_end(text);
    let rest = from(text, at);
    let gap = if rest.trim().is_empty() || rest.starts_with(['\n', '\r']) {
        ""
    } else {
        nl
    };
    let start = if at == 0 || before(text, at).ends_with('\n') {
        ""
    } else {
        nl
    };
    Insertion::new(at, format!("{start}{line}{nl}{gap}"))
}

/// Start of the last line in a table's own body, for its indentation.
fn body_start(table: &Node, last: usize) -> usize {
    children(table)
        .into_iter()
        .filter(|(_, child)| child.notation == Notation::Inline && child.span.end <= last)
        .map(|(start, _)| start)
        .max()
        .unwrap_or(table.span.start)
}

/// The end of the last value in a table's own body.
fn body_end(table: &Node) -> Option<usize> {
    let values = children(table).into_iter();
    let ends = values.filter_map(|(_, value)| match value.notation {
        Notation::Inline => Some(value.span.end),
        Notation::Dotted => body_end(value),
        _ => None,
    });
    ends.max()
}

/// The end of the last line that belongs to this node.
fn statements_end(node: &Node) -> Option<usize> {
    let own = (!node.span.is_empty()).then_some(node.span.end);
    if node.notation == Notation::Inline {
        return own;
    }
    let below = children(node).into_iter();
    own.max(below.filter_map(|(_, child)| statements_end(child)).max())
}

/// The end of the comments at the top of a file, if an empty line follows them.
fn heading_end(text: &str) -> usize {
    let mut at = 0;
    while from(text, at).starts_with('#') {
        at = line_end(text, at);
    }
    let rest = from(text, at);
    if rest.is_empty() || rest.starts_with(['\n', '\r']) {
        at
    } else {
        0
    }
}

/// The lines of a node: its header or its `key = value`, and those of its descendants.
fn statements(text: &str, start: usize, node: &Node) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if node.notation == Notation::Inline {
        ranges.push(line_start(text, start)..line_end(text, node.span.end));
        return ranges;
    }
    if node.notation == Notation::Header && !node.span.is_empty() {
        let mut start = line_start(text, node.span.start);
        let blank = line_start(text, start.saturating_sub(1));
        if slice(text, blank..start).trim().is_empty() {
            start = blank;
        }
        ranges.push(start..line_end(text, node.span.end));
    }
    for (start, child) in children(node) {
        ranges.extend(statements(text, start, child));
    }
    ranges
}

fn list<'t>(text: &'t str, node: &Node) -> BracketedList<'t> {
    let mut items = Vec::new();
    leaves(node, &mut items);
    items.sort_by_key(|item| item.start);
    BracketedList::scan(text, node, items, CommentSyntax::Hash)
}

/// The elements of an inline array, or the `key = value` pieces of an inline
/// table, including those with dotted keys.
fn leaves(node: &Node, into: &mut Vec<Range<usize>>) {
    for (start, child) in children(node) {
        if child.notation == Notation::Dotted {
            leaves(child, into);
        } else {
            into.push(start..child.span.end);
        }
    }
}

fn list_insert(text: &str, node: &Node, item: &str) -> Vec<Insertion> {
    let spread = slice(text, node.span.range()).contains('\n');
    let style = ListStyle {
        newline: newline(text),
        indent: "    ".to_owned(),
        block_when_empty: spread && node.as_array().is_some(),
        gap: " ",
        pad: if node.as_array().is_some() { "" } else { " " },
    };
    list(text, node).insert(&style, &|_| item.to_owned())
}
