//! TOML as text: where a value goes in, what comes out.
//!
//! One value has several places where it could go (a header at the end of the
//! file, a line in a table's body, an inline array), and which of them mean the
//! same depends on the rest of the file. So this module proposes, best first,
//! and the caller reads each proposal back before it takes one.

mod parse;
mod render;

use std::ops::Range;

use serde_json::{Map, Value};

pub(crate) use self::parse::parse;
use crate::error::EditError;
use crate::list::{Comments, List, Look};
use crate::node::{Form, Kind, Node};
use crate::path::Key;
use crate::source::{Insertion, before, from, line_end, line_start, newline, slice};

/// The text of a whole document, for a file that has none yet.
pub(crate) fn document(text: &str, value: &Value) -> Result<Vec<Insertion>, EditError> {
    let map = value.as_object().cloned().unwrap_or_default();
    let body = render::body(&[], &map, newline(text))?;
    Ok(vec![Insertion::new(text.len(), body)])
}

/// Puts `value` at the end of the container at `path`, under `key` when that is a table.
pub(crate) fn insert(
    text: &str,
    root: &Node,
    path: &[Key],
    key: Option<&str>,
    value: &Value,
) -> Result<Vec<Vec<Insertion>>, EditError> {
    let Some(node) = root.at(path) else {
        return Ok(Vec::new());
    };
    let mut names = names(path);
    let Some(key) = key else {
        return match (node.form, value) {
            (Form::Tables, Value::Object(map)) => blocks(text, node, &names, &[map], true),
            (Form::Tables, _) => Err(EditError::Unwritable {
                what: "a plain value in an array of tables".to_owned(),
            }),
            _ => Ok(vec![list_insert(text, node, &render::inline(value)?)]),
        };
    };
    let line = format!("{} = {}", render::key(key), render::inline(value)?);
    if node.form == Form::Inline {
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

/// What to take out so that the node at `path` is gone.
pub(crate) fn remove(text: &str, root: &Node, path: &[Key]) -> Vec<Range<usize>> {
    let Some((last, parents)) = path.split_last() else {
        let mut ranges = statements(text, root, None);
        if !text.contains('#') {
            ranges.push(0..text.len());
        }
        return ranges;
    };
    let (Some(parent), Some(node)) = (root.at(parents), root.at(path)) else {
        return Vec::new();
    };
    let index = match (&parent.kind, last) {
        (Kind::Array(_), Key::Index(index)) => Some(*index),
        (Kind::Object(members), Key::Name(name)) => {
            members.iter().position(|member| member.key == *name)
        }
        _ => None,
    };
    if parent.form == Form::Inline {
        return index.map_or_else(Vec::new, |index| list(text, parent).remove(index));
    }
    let key_start = index
        .and_then(|index| parent.members()?.get(index))
        .map(|member| member.key_span.start);
    statements(text, node, key_start)
}

fn names(path: &[Key]) -> Vec<String> {
    path.iter()
        .filter_map(|key| match key {
            Key::Name(name) => Some(name.clone()),
            Key::Index(_) => None,
        })
        .collect()
}

/// The tables of an array that consists of tables only.
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

/// Sets the block off by an empty line, and ends the file as it ended before.
fn at_end(text: &str, block: &str, nl: &str) -> String {
    if text.trim().is_empty() {
        return if text.is_empty() || text.ends_with('\n') {
            block.to_owned()
        } else {
            format!("{nl}{block}")
        };
    }
    if !text.ends_with('\n') {
        let block = block.strip_suffix(nl).unwrap_or(block);
        return format!("{nl}{nl}{block}");
    }
    let body = before(text, text.len() - 1);
    let blank = body.strip_suffix('\r').unwrap_or(body).ends_with('\n');
    if blank {
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
        let Some(node) = root.at(here) else {
            continue;
        };
        match node.form {
            Form::Header => {
                proposals.push(vec![body_line(text, node, depth == 0, &line, nl)]);
                break;
            }
            Form::Implicit if deeper.is_empty() => {
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
        let indent = crate::source::indent_at(text, body_start(table, last));
        return if from(text, last).contains('\n') {
            Insertion::new(end, format!("{indent}{line}{nl}"))
        } else {
            Insertion::new(end, format!("{nl}{indent}{line}"))
        };
    }
    // A root table without a line of its own: below the comment that heads the file, if any.
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

/// Where the last line of a table's own body starts: its key tells the indentation.
fn body_start(table: &Node, last: usize) -> usize {
    let starts = table
        .members()
        .unwrap_or_default()
        .iter()
        .filter(|member| member.value.form == Form::Inline && member.value.span.end <= last);
    starts
        .map(|member| member.key_span.start)
        .max()
        .unwrap_or(table.span.start)
}

/// The end of the last value in a table's own body.
fn body_end(table: &Node) -> Option<usize> {
    let members = table.members()?.iter();
    members
        .filter_map(|member| match member.value.form {
            Form::Inline => Some(member.value.span.end),
            Form::Dotted => body_end(&member.value),
            _ => None,
        })
        .max()
}

/// The end of the last line that says something about this node.
fn statements_end(node: &Node) -> Option<usize> {
    let own = (!node.span.is_empty()).then_some(node.span.end);
    if node.form == Form::Inline {
        return own;
    }
    let below = match &node.kind {
        Kind::Array(items) => items.iter().filter_map(statements_end).max(),
        Kind::Object(members) => members
            .iter()
            .filter_map(|member| statements_end(&member.value))
            .max(),
        _ => None,
    };
    own.max(below)
}

/// The block of comments at the top of a file, when an empty line ends it.
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

/// The lines that make up a node: its header or its `key = value`, and those of all below it.
fn statements(text: &str, node: &Node, key_start: Option<usize>) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if node.form == Form::Inline {
        if let Some(start) = key_start {
            ranges.push(line_start(text, start)..line_end(text, node.span.end));
        }
        return ranges;
    }
    if node.form == Form::Header && !node.span.is_empty() {
        let mut start = line_start(text, node.span.start);
        let blank = line_start(text, start.saturating_sub(1));
        if slice(text, blank..start).trim().is_empty() {
            start = blank;
        }
        ranges.push(start..line_end(text, node.span.end));
    }
    match &node.kind {
        Kind::Array(items) => {
            for item in items {
                ranges.extend(statements(text, item, None));
            }
        }
        Kind::Object(members) => {
            for member in members {
                let start = Some(member.key_span.start);
                ranges.extend(statements(text, &member.value, start));
            }
        }
        _ => {}
    }
    ranges
}

fn list<'t>(text: &'t str, node: &Node) -> List<'t> {
    let mut items = Vec::new();
    match &node.kind {
        Kind::Array(elements) => items.extend(elements.iter().map(|item| item.span.clone())),
        _ => leaves(node, &mut items),
    }
    items.sort_by_key(|item| item.start);
    let inner = node.span.start + 1..node.span.end.saturating_sub(1);
    List::scan(text, inner, items, Comments::Hash)
}

/// The `key = value` pieces of an inline table, those behind dotted keys too.
fn leaves(node: &Node, into: &mut Vec<Range<usize>>) {
    for member in node.members().unwrap_or_default() {
        if member.value.form == Form::Dotted {
            leaves(&member.value, into);
        } else {
            into.push(member.key_span.start..member.value.span.end);
        }
    }
}

fn list_insert(text: &str, node: &Node, item: &str) -> Vec<Insertion> {
    let spread = slice(text, node.span.clone()).contains('\n');
    let look = Look {
        newline: newline(text),
        unit: "    ".to_owned(),
        block_when_empty: spread && node.items().is_some(),
        gap: " ",
        pad: if node.items().is_some() { "" } else { " " },
    };
    list(text, node).insert(&look, &|_| item.to_owned())
}
