//! Takes an edit out again: by its offsets while the text is what the edit
//! left, by its content when the text changed elsewhere, by its meaning when
//! it changed right there.

use std::ops::Range;

use serde_json::Value;

use crate::edit::{climb, is_rest, parse, remove_at, with_bom};
use crate::error::EditError;
use crate::node::Node;
use crate::patch::{Action, Patch, Span, context, sha256};
use crate::path::Key;
use crate::source::{bom_len, cut, from};

/// Copies of the inserted text that are tried before giving up on finding it by content.
const MAX_COPIES: usize = 64;

/// A text without an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    pub text: String,
    pub how: How,
}

/// By which means an edit was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It was not there: never written, or taken out by somebody else.
    Absent,
    /// The text is byte for byte what it was before the edit.
    Exact,
    /// The very bytes of the edit were found elsewhere in a changed text and cut out.
    Relocated,
    /// The edit itself was changed or reformatted; its element was removed, and
    /// the containers made for it where nothing else is in them.
    Structural,
}

/// Takes one edit out of `text`. `ours` says which elements are ours even when
/// somebody changed them after the edit.
pub fn undo(text: &str, patch: &Patch, ours: &dyn Fn(&Value) -> bool) -> Result<Undone, EditError> {
    let done = |text: String, how| Ok(Undone { text, how });
    let hash = sha256(text.as_bytes());
    if hash == patch.after {
        let restored = cut(text, ranges(&patch.spans));
        if sha256(restored.as_bytes()) == patch.before {
            return done(restored, How::Exact);
        }
    }
    if hash == patch.before {
        return done(text.to_owned(), How::Absent);
    }
    let body = from(text, bom_len(text));
    let format = patch.format.lenient();
    let Some(root) = parse(body, format)? else {
        return done(text.to_owned(), How::Absent);
    };
    let targets = targets(&root, patch, ours);
    if let Some(restored) = relocate(text, &root, patch, &targets) {
        return done(restored, How::Relocated);
    }
    let Some(target) = targets.first() else {
        return done(text.to_owned(), How::Absent);
    };
    let rest = remove_at(body, format, &root, target)?;
    done(with_bom(text, &rest), How::Structural)
}

/// Takes out several edits, the last one first.
pub fn undo_all(
    text: &str,
    patches: &[Patch],
    ours: &dyn Fn(&Value) -> bool,
) -> Result<Undone, EditError> {
    let mut undone = Undone {
        text: text.to_owned(),
        how: How::Absent,
    };
    for patch in patches.iter().rev() {
        let next = undo(&undone.text, patch, ours)?;
        undone = Undone {
            text: next.text,
            how: undone.how.max(next.how),
        };
    }
    Ok(undone)
}

fn ranges(spans: &[Span]) -> Vec<Range<usize>> {
    spans
        .iter()
        .map(|span| span.offset..span.offset + span.text.len())
        .collect()
}

/// The nodes that may go, the likeliest first: what equals the recorded value,
/// what is ours by its looks, and containers made for it that stand empty.
fn targets(root: &Node, patch: &Patch, ours: &dyn Fn(&Value) -> bool) -> Vec<Vec<Key>> {
    let mut equal = Vec::new();
    let mut alike = Vec::new();
    let mut hollow = Vec::new();
    for place in root.expand(&patch.path) {
        let Some(node) = root.at(&place) else {
            continue;
        };
        match (patch.action, node.items()) {
            (Action::Append, Some([])) if patch.created > 0 => {
                hollow.push(climb_made(root, place, patch, patch.created - 1));
            }
            (Action::Append, Some(items)) => {
                for (index, item) in items.iter().enumerate().rev() {
                    let value = item.to_value();
                    let list = if value == patch.value {
                        &mut equal
                    } else if ours(&value) {
                        &mut alike
                    } else {
                        continue;
                    };
                    let mut target = place.clone();
                    target.push(Key::Index(index));
                    list.push(climb_made(root, target, patch, patch.created));
                }
            }
            (Action::Set, _) if node.to_value() == patch.value => {
                equal.push(climb_made(root, place, patch, patch.created));
            }
            _ => {}
        }
    }
    equal.append(&mut alike);
    equal.append(&mut hollow);
    equal
}

/// Climbs over the containers that the edit made. The document goes too when it
/// was made and nothing but its preamble would be left.
fn climb_made(root: &Node, target: Vec<Key>, patch: &Patch, limit: usize) -> Vec<Key> {
    let target = climb(root, target, limit);
    let made_document = patch.created > patch.path.len();
    if !made_document || target.len() != 1 || patch.preamble.is_empty() {
        return target;
    }
    let rest = root.without(&target).map(|rest| rest.to_value());
    if rest == Some(Value::Object(patch.preamble.clone())) {
        Vec::new()
    } else {
        target
    }
}

/// Looks for the very bytes of the edit in a changed text. A copy counts when
/// the text without it says what the text says now, minus one of the targets.
fn relocate(text: &str, root: &Node, patch: &Patch, targets: &[Vec<Key>]) -> Option<String> {
    let format = patch.format.lenient();
    let main = patch.spans.iter().max_by_key(|span| span.text.len())?;
    let mut copies: Vec<(usize, usize, Vec<Range<usize>>)> = text
        .match_indices(&main.text)
        .take(MAX_COPIES)
        .filter_map(|(at, _)| {
            let moved = moved(text, &patch.spans, main.offset, at)?;
            Some((strangeness(text, main, at), at.abs_diff(main.offset), moved))
        })
        .collect();
    copies.sort_by_key(|(strange, distance, _)| (*strange, *distance));
    copies.into_iter().find_map(|(_, _, ranges)| {
        let rest = cut(text, ranges);
        let body = from(&rest, bom_len(&rest));
        let back = parse(body, format).ok()?;
        targets
            .iter()
            .any(|target| is_rest(format, back.as_ref(), root, target))
            .then_some(rest)
    })
}

/// The ranges of all spans when the main one stands at `at` now, or nothing
/// when the others are not where they should be.
fn moved(text: &str, spans: &[Span], was: usize, at: usize) -> Option<Vec<Range<usize>>> {
    spans
        .iter()
        .map(|span| {
            let start = (at + span.offset).checked_sub(was)?;
            let range = start..start + span.text.len();
            (text.get(range.clone())? == span.text).then_some(range)
        })
        .collect()
}

/// On how many sides a copy has other neighbours than the edit had.
fn strangeness(text: &str, span: &Span, at: usize) -> usize {
    let (lead, tail) = context(text, at, span.text.len());
    usize::from(lead != span.lead) + usize::from(tail != span.tail)
}
