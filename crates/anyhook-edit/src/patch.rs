//! The record of one edit, with everything needed to undo it.

use anyhook_model::Format;
use anyhook_util::hash::sha256;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::path::Key;
use crate::text::Insertion;

/// How much text on either side of an insertion is hashed.
const CONTEXT_BYTES: usize = 24;

/// One edit: what was requested, what was inserted, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    pub format: Format,
    pub action: EditAction,
    pub path: Vec<Key>,
    pub value: Value,
    /// How many containers around the value the edit created, including the document.
    pub created: usize,
    /// The initial members of the document, if the edit created it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub preamble: Map<String, Value>,
    /// The insertions, in the order of the text.
    pub spans: Vec<InsertedText>,
    /// SHA-256 of the text before the edit.
    pub before: String,
    /// SHA-256 of the text after the edit.
    pub after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditAction {
    /// An element at the end of an array.
    Append,
    /// A member of an object.
    Set,
}

/// One piece of inserted text. The text around it may be private, so only its
/// hash is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsertedText {
    /// Byte offset in the text after the edit.
    pub offset: usize,
    pub text: String,
    /// Hash of the bytes just before.
    pub lead: String,
    /// Hash of the bytes just after.
    pub tail: String,
}

/// The insertions as they are found in the text `after` all of them.
pub(crate) fn inserted_texts(after: &str, insertions: Vec<Insertion>) -> Vec<InsertedText> {
    let mut shift = 0;
    let located = insertions.into_iter().map(|Insertion { at, text }| {
        let offset = at + shift;
        shift += text.len();
        let (lead, tail) = context_hashes(after, offset, text.len());
        InsertedText {
            offset,
            text,
            lead,
            tail,
        }
    });
    located.collect()
}

/// Hashes of the text before and after a piece of text.
pub(crate) fn context_hashes(text: &str, offset: usize, len: usize) -> (String, String) {
    let bytes = text.as_bytes();
    let end = offset + len;
    let lead = bytes.get(offset.saturating_sub(CONTEXT_BYTES)..offset);
    let tail = bytes.get(end..bytes.len().min(end + CONTEXT_BYTES));
    let short = |bytes: Option<&[u8]>| {
        let mut hash = sha256(bytes.unwrap_or_default());
        hash.truncate(16);
        hash
    };
    (short(lead), short(tail))
}
