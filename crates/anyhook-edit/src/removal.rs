//! Takes elements of the file's owner out of a text, with a record that puts
//! them back: byte for byte if the text has not changed since, at the same place
//! if it changed elsewhere, else at the end of their array.

use anyhook_model::Format;
use anyhook_util::hash::sha256;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::{
    EditOptions, RemovedElement, edit, get, has_same_content, remove_last_matching, with_comments,
};
use crate::error::EditError;
use crate::patch::{EditAction, context_hashes};
use crate::path::Key;
use crate::text::{Insertion, slice, splice};
use crate::undo::{UndoMethod, UndoResult, undo_steps};

/// One element that was taken out, with everything needed to put it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Removal {
    pub format: Format,
    /// The array that it was in.
    pub path: Vec<Key>,
    pub value: Value,
    /// Where it goes if its place is not found again: an array and an element.
    pub fallback: (Vec<Key>, Value),
    /// The removed pieces, in the order of the text.
    pub pieces: Vec<RemovedText>,
    /// SHA-256 of the text before the removal.
    pub before: String,
    /// SHA-256 of the text after the removal.
    pub after: String,
}

/// One piece of removed text. The text around it is kept as a hash only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedText {
    /// Byte offset in the text after the removal.
    pub offset: usize,
    pub text: String,
    /// Hash of the bytes just before.
    pub lead: String,
    /// Hash of the bytes just after.
    pub tail: String,
}

/// Where an element goes if its place is not found again.
pub type FallbackPlace<'f> = &'f dyn Fn(&Value) -> (Vec<Key>, Value);

/// Takes every element that matches out of the array at `path`, with the
/// containers that are empty then. The last element is the first of the result.
pub fn take_out(
    text: &str,
    format: Format,
    path: &[Key],
    matches: &dyn Fn(&Value) -> bool,
    fallback: FallbackPlace<'_>,
) -> Result<(String, Vec<Removal>), EditError> {
    let mut rest = text.to_owned();
    let mut removals = Vec::new();
    while let Some(step) = remove_last_matching(&rest, format, path, matches)? {
        removals.push(removal(&rest, &step, format, path, fallback(&step.value)));
        rest = step.text;
    }
    Ok((rest, removals))
}

fn removal(
    before: &str,
    step: &RemovedElement,
    format: Format,
    path: &[Key],
    fallback: (Vec<Key>, Value),
) -> Removal {
    let mut removed = 0;
    let pieces = step.ranges.iter().map(|range| {
        let offset = range.start - removed;
        removed += range.len();
        let (lead, tail) = context_hashes(&step.text, offset, 0);
        RemovedText {
            offset,
            text: slice(before, range.clone()).to_owned(),
            lead,
            tail,
        }
    });
    Removal {
        format,
        path: path.to_vec(),
        value: step.value.clone(),
        fallback,
        pieces: pieces.collect(),
        before: sha256(before.as_bytes()),
        after: sha256(step.text.as_bytes()),
    }
}

/// Puts back what was taken out, the last removal first. Elements that are there
/// again stay as they are.
pub fn put_back(
    text: &str,
    removals: &[Removal],
    options: &EditOptions,
) -> Result<UndoResult, EditError> {
    undo_steps(text, removals, |text, removal| {
        put_one_back(text, removal, options)
    })
}

fn put_one_back(
    text: &str,
    removal: &Removal,
    options: &EditOptions,
) -> Result<UndoResult, EditError> {
    let result = |text: String, method| Ok(UndoResult { text, method });
    let hash = sha256(text.as_bytes());
    if hash == removal.after {
        let places = removal.pieces.iter().map(|piece| Some(piece.offset));
        if let Some(restored) = spliced(text, removal, places)
            && sha256(restored.as_bytes()) == removal.before
        {
            return result(restored, UndoMethod::Exact);
        }
    }
    if hash == removal.before {
        return result(text.to_owned(), UndoMethod::Absent);
    }
    let format = with_comments(removal.format);
    let (array, element) = &removal.fallback;
    let is_there = |path: &[Key], value: &Value| {
        let found = get(text, format, path);
        matches!(found, Ok(Some(Value::Array(items))) if items.contains(value))
    };
    if is_there(&removal.path, &removal.value) || is_there(array, element) {
        return result(text.to_owned(), UndoMethod::Absent);
    }
    if let Some(restored) = relocated(text, removal) {
        return result(restored, UndoMethod::Relocated);
    }
    let edited = edit(text, format, EditAction::Append, array, element, options)?;
    result(edited.text, UndoMethod::Structural)
}

/// The text with the pieces at their old places, found by what is around them,
/// if that adds the element and nothing else.
fn relocated(text: &str, removal: &Removal) -> Option<String> {
    let places = removal.pieces.iter().map(|piece| only_place(text, piece));
    let restored = spliced(text, removal, places)?;
    let is_element = |value: &Value| *value == removal.value;
    let step = remove_last_matching(&restored, removal.format, &removal.path, &is_element);
    let rest = step.ok()??.text;
    has_same_content(&rest, text, removal.format).then_some(restored)
}

/// The only place where the text around is that of the piece: on both sides, or
/// else on one.
fn only_place(text: &str, piece: &RemovedText) -> Option<usize> {
    let (mut both, mut leads, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        let (lead, tail) = context_hashes(text, at, 0);
        match (lead == piece.lead, tail == piece.tail) {
            (true, true) => both.push(at),
            (true, false) => leads.push(at),
            (false, true) => tails.push(at),
            (false, false) => {}
        }
    }
    [both, tails, leads]
        .into_iter()
        .find_map(|places| match places.as_slice() {
            [place] => Some(*place),
            _ => None,
        })
}

fn spliced(
    text: &str,
    removal: &Removal,
    places: impl Iterator<Item = Option<usize>>,
) -> Option<String> {
    let pieces = removal.pieces.iter().zip(places);
    let insertions: Option<Vec<Insertion>> = pieces
        .map(|(piece, at)| Some(Insertion::new(at?, piece.text.as_str())))
        .collect();
    let insertions = insertions?;
    let is_sorted = insertions.is_sorted_by_key(|one| one.at);
    let are_inside = insertions.iter().all(|one| text.is_char_boundary(one.at));
    (is_sorted && are_inside).then(|| splice(text, &insertions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FILE: &str = r#"{
  // mine
  "permissions": { "allow": ["Bash(ls:*)"] },
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [ { "command": "a" }, { "command": "b" } ] } // guard
    ],
    "Stop": [ { "hooks": [{ "command": "a" }] } ]
  }
}
"#;

    fn names(words: &[&str]) -> Vec<Key> {
        words.iter().map(|word| Key::from(*word)).collect()
    }

    fn taken(path: &[Key], value: &Value) -> (String, Vec<Removal>) {
        let fallback = |value: &Value| (names(&["hooks", "PreToolUse"]), json!({"hooks": [value]}));
        take_out(FILE, Format::Jsonc, path, &|one| one == value, &fallback).unwrap()
    }

    #[test]
    fn an_element_comes_back_byte_for_byte() {
        let mut inner = names(&["hooks", "PreToolUse"]);
        inner.extend([Key::from(0), Key::from("hooks")]);
        for (path, value) in [
            (inner, json!({"command": "a"})),
            (
                names(&["hooks", "Stop"]),
                json!({"hooks": [{"command": "a"}]}),
            ),
        ] {
            let (text, removals) = taken(&path, &value);
            assert_eq!(removals.len(), 1, "{text}");
            assert_ne!(text, FILE);
            let back = put_back(&text, &removals, &EditOptions::default()).unwrap();
            assert_eq!((back.text.as_str(), back.method), (FILE, UndoMethod::Exact));
            let back = put_back(FILE, &removals, &EditOptions::default()).unwrap();
            assert_eq!(back.method, UndoMethod::Absent);
        }
    }

    #[test]
    fn a_change_elsewhere_stays_and_the_element_comes_back_to_its_place() {
        let value = json!({"hooks": [{"command": "a"}]});
        let (text, removals) = taken(&names(&["hooks", "Stop"]), &value);
        let changed = text.replace("ls:*", "pwd:*");
        let back = put_back(&changed, &removals, &EditOptions::default()).unwrap();
        assert_eq!(back.method, UndoMethod::Relocated);
        assert_eq!(back.text, FILE.replace("ls:*", "pwd:*"));
    }

    #[test]
    fn an_element_whose_place_is_gone_comes_back_at_the_end() {
        let value = json!({"hooks": [{"command": "a"}]});
        let (_, removals) = taken(&names(&["hooks", "Stop"]), &value);
        let back = put_back("{}\n", &removals, &EditOptions::default()).unwrap();
        assert_eq!(back.method, UndoMethod::Structural);
        let tree: Value = serde_json::from_str(&back.text).unwrap();
        assert_eq!(tree["hooks"]["PreToolUse"][0]["hooks"][0], value);
    }
}
