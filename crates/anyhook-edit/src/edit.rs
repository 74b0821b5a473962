//! The operations on a text. Pure: a text and a request in, a new text out.
//!
//! Every operation plans its change on the tree, makes it in the text, parses
//! the result, and returns it only if the tree is the planned one. So a bug here
//! is an error message, never a damaged file. Several edits of one text are made
//! by `edited_document`, which parses the whole text only once more, at the end.

use std::ops::Range;

use anyhook_model::Format;
use anyhook_model::document::{self, Node, Notation};
use serde_json::{Map, Value};

use crate::edited_document::EditedDocument;
use crate::error::EditError;
use crate::patch::{EditAction, Patch};
use crate::path::{Key, display_path};
use crate::text::{before, bom_len, cut, from, line_and_column, merged};
use crate::tree::{
    Comparison, child_count, descend, node_at, same_content, without_node, wrong_type,
};
use crate::{json, toml, yaml};

/// How new text is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EditOptions {
    /// Writes `\/` for every `/` in JSON strings, for readers that treat `//` as
    /// a comment even inside strings.
    pub escape_slashes: bool,
    /// The members that a new document starts with.
    pub preamble: Map<String, Value>,
}

/// A text after an edit, and the record for undoing it.
#[derive(Debug, Clone, PartialEq)]
pub struct EditedText {
    pub text: String,
    pub patch: Patch,
}

/// A text after elements were removed.
#[derive(Debug, Clone, PartialEq)]
pub struct RemovedElements {
    pub text: String,
    /// The elements, in the order of the file.
    pub values: Vec<Value>,
}

/// The value at `path`.
pub fn get(text: &str, format: Format, path: &[Key]) -> Result<Option<Value>, EditError> {
    let body = from(text, bom_len(text));
    let Some(root) = parse(body, format)? else {
        return Ok(None);
    };
    match descend(&root, body, path) {
        Ok((depth, node)) => Ok((depth == path.len()).then(|| node.to_json())),
        Err(EditError::NoElement { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes every element that matches from the array at `path`, with the
/// containers on the path that are empty then; the document stays.
///
/// Only a [`Patch`] knows whether we created those; if there is one, use
/// [`undo`](crate::undo) instead.
pub fn remove_matching(
    text: &str,
    format: Format,
    path: &[Key],
    matches: &dyn Fn(&Value) -> bool,
) -> Result<RemovedElements, EditError> {
    remove_matching_in(text, format, &[path.to_vec()], matches)
}

/// As [`remove_matching`], from the arrays at all `paths`. A text without a match is
/// parsed once, however many arrays there are.
pub(crate) fn remove_matching_in(
    text: &str,
    format: Format,
    paths: &[Vec<Key>],
    matches: &dyn Fn(&Value) -> bool,
) -> Result<RemovedElements, EditError> {
    let format = with_comments(format);
    let mut removed = RemovedElements {
        text: text.to_owned(),
        values: Vec::new(),
    };
    // Arrays from here on have no match left: from the end, because a removal moves
    // only what is behind it.
    let mut unchecked = paths.len();
    while unchecked > 0 {
        let body = from(&removed.text, bom_len(&removed.text));
        let Some(root) = parse(body, format)? else {
            break;
        };
        let mut found = None;
        while let Some(path) = unchecked.checked_sub(1).and_then(|last| paths.get(last)) {
            found = last_match(&root, body, path, matches)?;
            if found.is_some() {
                break;
            }
            unchecked -= 1;
        }
        let Some((target, value)) = found else {
            break;
        };
        let with_parents = climb_empty_parents(&root, target.clone(), target.len() - 1);
        let body = remove_node(body, format, &root, &with_parents)
            .or_else(|_| remove_node(body, format, &root, &target))?;
        removed.text = with_bom(&removed.text, &body);
        removed.values.insert(0, value);
    }
    Ok(removed)
}

/// A text without one element of an array.
pub(crate) struct RemovedElement {
    pub text: String,
    pub value: Value,
    /// What was removed from the text before, sorted and without overlaps.
    pub ranges: Vec<Range<usize>>,
}

/// Removes the last element that matches; see [`remove_matching`].
pub(crate) fn remove_last_matching(
    text: &str,
    format: Format,
    path: &[Key],
    matches: &dyn Fn(&Value) -> bool,
) -> Result<Option<RemovedElement>, EditError> {
    let format = with_comments(format);
    let bom = bom_len(text);
    let body = from(text, bom);
    let Some(root) = parse(body, format)? else {
        return Ok(None);
    };
    let Some((target, value)) = last_match(&root, body, path, matches)? else {
        return Ok(None);
    };
    let with_parents = climb_empty_parents(&root, target.clone(), path.len());
    let (rest, ranges) = remove_ranges(body, format, &root, &with_parents)
        .or_else(|_| remove_ranges(body, format, &root, &target))?;
    let moved = |range: Range<usize>| range.start + bom..range.end + bom;
    Ok(Some(RemovedElement {
        text: with_bom(text, &rest),
        value,
        ranges: merged(ranges).into_iter().map(moved).collect(),
    }))
}

/// The last element that matches in the array at `path`, and its path.
fn last_match(
    root: &Node,
    body: &str,
    path: &[Key],
    matches: &dyn Fn(&Value) -> bool,
) -> Result<Option<(Vec<Key>, Value)>, EditError> {
    let (depth, node) = match descend(root, body, path) {
        Err(EditError::NoElement { .. }) => return Ok(None),
        reached => reached?,
    };
    if depth < path.len() {
        return Ok(None);
    }
    let Some(items) = node.as_array() else {
        return Err(wrong_type(node, body, display_path(path), "a list"));
    };
    let mut items = items.iter().map(Node::to_json).enumerate().rev();
    let found = items.find(|(_, value)| matches(value));
    Ok(found.map(|(index, value)| {
        let mut target = path.to_vec();
        target.push(Key::Index(index));
        (target, value)
    }))
}

/// Appends `value` to the array at `path`, which is created if it is missing, or
/// sets a key that does not exist yet.
pub fn edit(
    text: &str,
    format: Format,
    action: EditAction,
    path: &[Key],
    value: &Value,
    options: &EditOptions,
) -> Result<EditedText, EditError> {
    let mut document = EditedDocument::new(text.to_owned(), format);
    let patch = document.edit(action, path, value, options)?;
    Ok(EditedText {
        text: document.into_checked_text()?,
        patch,
    })
}

/// The goal of an edit: `values` are added to `container`.
pub(crate) struct PlannedEdit<'p> {
    pub container: &'p [Key],
    /// The key of the only value, if the container is an object.
    pub key: Option<&'p str>,
    pub values: Vec<Value>,
    /// How many containers around the values are created.
    pub created: usize,
}

pub(crate) fn plan_edit<'p>(
    text: &str,
    tree: &Node,
    action: EditAction,
    path: &'p [Key],
    values: &[Value],
) -> Result<PlannedEdit<'p>, EditError> {
    let (depth, node) = descend(tree, text, path)?;
    let (container, missing) = path.split_at(depth);
    let Some((first, deeper)) = missing.split_first() else {
        if action == EditAction::Set {
            let (line, column) = line_and_column(text, node.span.start);
            return Err(EditError::AlreadySet {
                at: display_path(path),
                line,
                column,
            });
        }
        if node.as_array().is_none() {
            return Err(wrong_type(node, text, display_path(path), "a list"));
        }
        return Ok(PlannedEdit {
            container,
            key: None,
            values: values.to_vec(),
            created: 0,
        });
    };
    let (mut value, mut created) = match (action, values) {
        (EditAction::Set, [value]) => (value.clone(), 0),
        _ => (Value::Array(values.to_vec()), 1),
    };
    for step in deeper.iter().rev() {
        let Key::Name(name) = step else {
            let at = display_path(path);
            return Err(EditError::NoElement { at, index: 0 });
        };
        value = Value::Object(Map::from_iter([(name.clone(), value)]));
        created += 1;
    }
    let key = match first {
        Key::Name(name) => Some(name.as_str()),
        Key::Index(_) => None,
    };
    Ok(PlannedEdit {
        container,
        key,
        values: vec![value],
        created,
    })
}

pub(crate) fn parse(body: &str, format: Format) -> Result<Option<Node>, EditError> {
    let comments = match format {
        Format::Json => false,
        Format::Jsonc => true,
        Format::Toml => return toml::parse(body).map(Some),
        Format::Yaml => return yaml::parse(body),
    };
    document::parse_json_for_editing(body, comments)
        .map_err(|error| EditError::parse(body, error.span.start, error.message))
}

/// The format for removing things: comments that the file's reader does not
/// accept are no reason to keep our entries in it.
pub(crate) fn with_comments(format: Format) -> Format {
    match format {
        Format::Json => Format::Jsonc,
        other => other,
    }
}

pub(crate) fn comparison_for(format: Format) -> Comparison {
    match format {
        Format::Toml => Comparison::Unordered,
        _ => Comparison::Strict,
    }
}

/// The body after the byte order mark of `original`, if it has one.
pub(crate) fn with_bom(original: &str, body: &str) -> String {
    let mark = before(original, bom_len(original));
    format!("{mark}{body}")
}

/// The topmost node that can be removed with `target`: up to `limit` containers
/// around it that contain nothing else.
pub(crate) fn climb_empty_parents(root: &Node, mut target: Vec<Key>, limit: usize) -> Vec<Key> {
    for _ in 0..limit {
        let parent = target
            .split_last()
            .and_then(|(_, parents)| node_at(root, parents));
        if parent.is_none_or(|parent| child_count(parent) != 1) {
            break;
        }
        target.pop();
    }
    target
}

/// The text without the node at `target`; parsed again to check that nothing else changed.
pub(crate) fn remove_node(
    body: &str,
    format: Format,
    root: &Node,
    target: &[Key],
) -> Result<String, EditError> {
    remove_ranges(body, format, root, target).map(|(rest, _)| rest)
}

/// As [`remove_node`], with the ranges that were removed.
fn remove_ranges(
    body: &str,
    format: Format,
    root: &Node,
    target: &[Key],
) -> Result<(String, Vec<Range<usize>>), EditError> {
    descend(root, body, target)?;
    let ranges = match format {
        Format::Toml => toml::remove(body, root, target),
        Format::Yaml => yaml::remove(body, root, target),
        _ => json::remove(body, root, target),
    };
    let new = cut(body, ranges.clone());
    let parsed = parse(&new, format)?;
    if differs_only_by(format, parsed.as_ref(), root, target) {
        Ok((new, ranges))
    } else {
        Err(EditError::Unsafe {
            at: display_path(target),
        })
    }
}

/// Whether a text has the same content as another.
pub(crate) fn has_same_content(text: &str, other: &str, format: Format) -> bool {
    let format = with_comments(format);
    let parsed = |text: &str| parse(from(text, bom_len(text)), format).ok();
    match (parsed(text), parsed(other)) {
        (Some(Some(one)), Some(Some(other))) => same_content(&one, &other, comparison_for(format)),
        (Some(None), Some(None)) => true,
        _ => false,
    }
}

/// Whether `new` is `root` without the node at `target`.
pub(crate) fn differs_only_by(
    format: Format,
    new: Option<&Node>,
    root: &Node,
    target: &[Key],
) -> bool {
    let (rest, new) = match (without_node(root, target), new) {
        (None, None) => return true,
        (None, Some(new)) => return format == Format::Toml && child_count(new) == 0,
        (Some(_), None) => return false,
        (Some(rest), Some(new)) => (rest, new),
    };
    // Removing the last table of an array removes the array: it has no syntax when empty.
    let last_of_tables = target
        .split_last()
        .and_then(|(_, parents)| node_at(root, parents))
        .is_some_and(|parent| {
            parent.notation == Notation::ArrayOfTables && child_count(parent) == 1
        });
    same_content(new, &rest, comparison_for(format))
        || (format == Format::Toml
            && last_of_tables
            && same_content(new, &rest, Comparison::IgnoreEmpty))
}
