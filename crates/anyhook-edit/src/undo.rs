//! Undoes an edit: by its offsets if the text has not changed since, by its
//! bytes if the text changed elsewhere, by its meaning if the edit itself changed.

use std::ops::Range;

use anyhook_model::document::Node;
use anyhook_util::hash::sha256;
use serde_json::Value;

use crate::edit::{
    climb_empty_parents, differs_only_by, parse, remove_node, with_bom, with_comments,
};
use crate::error::EditError;
use crate::patch::{EditAction, InsertedText, Patch, context_hashes};
use crate::path::Key;
use crate::text::{bom_len, cut, from};
use crate::tree::{matching_paths, node_at, without_node};

/// How many occurrences of the inserted text are tried when the text has changed.
const MAX_RELOCATION_CANDIDATES: usize = 64;

/// A text after an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoResult {
    pub text: String,
    pub method: UndoMethod,
}

/// How an edit was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UndoMethod {
    /// Nothing to undo: it was never written, or is already gone.
    Absent,
    /// The text is byte for byte as before the edit.
    Exact,
    /// The bytes of the edit were found elsewhere in a changed text and removed.
    Relocated,
    /// The edit itself was changed or reformatted; its element was removed, with
    /// the containers created for it that are empty.
    Structural,
}

/// Undoes one edit. `ours` recognizes our elements even if they were changed
/// after the edit.
pub fn undo(
    text: &str,
    patch: &Patch,
    ours: &dyn Fn(&Value) -> bool,
) -> Result<UndoResult, EditError> {
    let result = |text: String, method| Ok(UndoResult { text, method });
    let hash = sha256(text.as_bytes());
    if hash == patch.after {
        let restored = cut(text, ranges(&patch.spans));
        if sha256(restored.as_bytes()) == patch.before {
            return result(restored, UndoMethod::Exact);
        }
    }
    if hash == patch.before {
        return result(text.to_owned(), UndoMethod::Absent);
    }
    let body = from(text, bom_len(text));
    let format = with_comments(patch.format);
    let Some(root) = parse(body, format)? else {
        return result(text.to_owned(), UndoMethod::Absent);
    };
    let targets = targets(&root, patch, ours);
    if let Some(restored) = relocate(text, &root, patch, &targets) {
        return result(restored, UndoMethod::Relocated);
    }
    let Some(target) = targets.first() else {
        return result(text.to_owned(), UndoMethod::Absent);
    };
    let rest = remove_node(body, format, &root, target)?;
    result(with_bom(text, &rest), UndoMethod::Structural)
}

/// Undoes several edits, the last one first.
pub fn undo_all(
    text: &str,
    patches: &[Patch],
    ours: &dyn Fn(&Value) -> bool,
) -> Result<UndoResult, EditError> {
    undo_steps(text, patches, |text, patch| undo(text, patch, ours))
}

/// Undoes the last step first. The method is the least exact one of all.
pub(crate) fn undo_steps<T>(
    text: &str,
    steps: &[T],
    undo_step: impl Fn(&str, &T) -> Result<UndoResult, EditError>,
) -> Result<UndoResult, EditError> {
    let mut undone = UndoResult {
        text: text.to_owned(),
        method: UndoMethod::Absent,
    };
    for step in steps.iter().rev() {
        let next = undo_step(&undone.text, step)?;
        undone = UndoResult {
            text: next.text,
            method: undone.method.max(next.method),
        };
    }
    Ok(undone)
}

fn ranges(spans: &[InsertedText]) -> Vec<Range<usize>> {
    spans
        .iter()
        .map(|span| span.offset..span.offset + span.text.len())
        .collect()
}

/// The nodes that may be removed, best first: those equal to the recorded value,
/// those that `ours` recognizes, and empty containers created for the edit.
fn targets(root: &Node, patch: &Patch, ours: &dyn Fn(&Value) -> bool) -> Vec<Vec<Key>> {
    let mut equal = Vec::new();
    let mut recognized = Vec::new();
    let mut empty = Vec::new();
    for path in matching_paths(root, &patch.path) {
        let Some(node) = node_at(root, &path) else {
            continue;
        };
        match (patch.action, node.as_array()) {
            (EditAction::Append, Some([])) if patch.created > 0 => {
                empty.push(climb_created_parents(root, path, patch, patch.created - 1));
            }
            (EditAction::Append, Some(items)) => {
                for (index, item) in items.iter().enumerate().rev() {
                    let value = item.to_json();
                    let list = if value == patch.value {
                        &mut equal
                    } else if ours(&value) {
                        &mut recognized
                    } else {
                        continue;
                    };
                    let mut target = path.clone();
                    target.push(Key::Index(index));
                    list.push(climb_created_parents(root, target, patch, patch.created));
                }
            }
            (EditAction::Set, _) if node.to_json() == patch.value => {
                equal.push(climb_created_parents(root, path, patch, patch.created));
            }
            _ => {}
        }
    }
    equal.append(&mut recognized);
    equal.append(&mut empty);
    equal
}

/// Climbs over the containers that the edit created. The whole document is
/// removed if the edit created it and only its preamble would be left.
fn climb_created_parents(root: &Node, target: Vec<Key>, patch: &Patch, limit: usize) -> Vec<Key> {
    let target = climb_empty_parents(root, target, limit);
    let created_document = patch.created > patch.path.len();
    if !created_document || target.len() != 1 || patch.preamble.is_empty() {
        return target;
    }
    let rest = without_node(root, &target).map(|rest| rest.to_json());
    if rest == Some(Value::Object(patch.preamble.clone())) {
        Vec::new()
    } else {
        target
    }
}

/// Searches for the bytes of the edit in a changed text. A copy counts if
/// removing it removes exactly one of the targets from the tree.
fn relocate(text: &str, root: &Node, patch: &Patch, targets: &[Vec<Key>]) -> Option<String> {
    let format = with_comments(patch.format);
    let main = patch.spans.iter().max_by_key(|span| span.text.len())?;
    let mut copies: Vec<(usize, usize, Vec<Range<usize>>)> = text
        .match_indices(&main.text)
        .take(MAX_RELOCATION_CANDIDATES)
        .filter_map(|(at, _)| {
            let moved = moved_ranges(text, &patch.spans, main.offset, at)?;
            Some((
                changed_neighbours(text, main, at),
                at.abs_diff(main.offset),
                moved,
            ))
        })
        .collect();
    copies.sort_by_key(|(changed, distance, _)| (*changed, *distance));
    copies.into_iter().find_map(|(_, _, ranges)| {
        let rest = cut(text, ranges);
        let body = from(&rest, bom_len(&rest));
        let back = parse(body, format).ok()?;
        targets
            .iter()
            .any(|target| differs_only_by(format, back.as_ref(), root, target))
            .then_some(rest)
    })
}

/// The ranges of all spans if the main one is at `at` now, or `None` if the
/// others are not at the same distance from it.
fn moved_ranges(
    text: &str,
    spans: &[InsertedText],
    was: usize,
    at: usize,
) -> Option<Vec<Range<usize>>> {
    spans
        .iter()
        .map(|span| {
            let start = (at + span.offset).checked_sub(was)?;
            let range = start..start + span.text.len();
            (text.get(range.clone())? == span.text).then_some(range)
        })
        .collect()
}

/// On how many sides (0 to 2) the text around a copy differs from that around the edit.
fn changed_neighbours(text: &str, span: &InsertedText, at: usize) -> usize {
    let (lead, tail) = context_hashes(text, at, span.text.len());
    usize::from(lead != span.lead) + usize::from(tail != span.tail)
}
