//! The record of one edit, enough to take it out again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::edit::Format;
use crate::path::Key;
use crate::source::Insertion;

/// How much of the text on either side of a span is remembered, as a hash.
const CONTEXT: usize = 24;

/// One edit: what was asked for, what went into the text, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    pub format: Format,
    pub action: Action,
    pub path: Vec<Key>,
    pub value: Value,
    /// How many containers around the value the edit had to make, the document included.
    pub created: usize,
    /// What the document started with, when the edit made the document.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub preamble: Map<String, Value>,
    /// What went in, in the order of the text.
    pub spans: Vec<Span>,
    /// SHA-256 of the text before the edit.
    pub before: String,
    /// SHA-256 of the text after the edit.
    pub after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// An element at the end of an array.
    Append,
    /// A member of an object.
    Set,
}

/// One piece of inserted text. The text around it is the user's, so only its
/// hash is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Byte offset in the text after the edit.
    pub offset: usize,
    pub text: String,
    /// Hash of the bytes just before.
    pub lead: String,
    /// Hash of the bytes just after.
    pub tail: String,
}

impl Patch {
    /// The mechanical part of the record; the caller adds what was asked for.
    pub(crate) fn of(before: &str, after: &str, insertions: &[Insertion]) -> Self {
        let mut shift = 0;
        let mut spans = Vec::with_capacity(insertions.len());
        for insertion in insertions {
            let offset = insertion.at + shift;
            shift += insertion.text.len();
            let (lead, tail) = context(after, offset, insertion.text.len());
            spans.push(Span {
                offset,
                text: insertion.text.clone(),
                lead,
                tail,
            });
        }
        Self {
            format: Format::Json,
            action: Action::Append,
            path: Vec::new(),
            value: Value::Null,
            created: 0,
            preamble: Map::new(),
            spans,
            before: sha256(before.as_bytes()),
            after: sha256(after.as_bytes()),
        }
    }
}

/// Hashes of what stands on either side of a piece of text.
pub(crate) fn context(text: &str, offset: usize, len: usize) -> (String, String) {
    let bytes = text.as_bytes();
    let end = offset + len;
    let lead = bytes.get(offset.saturating_sub(CONTEXT)..offset);
    let tail = bytes.get(end..bytes.len().min(end + CONTEXT));
    let short = |bytes: Option<&[u8]>| {
        let mut hash = sha256(bytes.unwrap_or_default());
        hash.truncate(16);
        hash
    };
    (short(lead), short(tail))
}

/// The SHA-256 of some bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _infallible = write!(hex, "{byte:02x}");
    }
    hex
}
