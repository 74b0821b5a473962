//! Text helpers: slices, lines, line endings, indentation, insertions and cuts.
//! Offsets are bytes; a range outside the text is an empty slice, never a panic.

use std::ops::Range;

/// The byte order mark, kept at the start of a file but not given to a parser.
pub(crate) const BOM: &str = "\u{feff}";

pub(crate) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

pub(crate) fn from(text: &str, start: usize) -> &str {
    text.get(start..).unwrap_or_default()
}

pub(crate) fn before(text: &str, end: usize) -> &str {
    text.get(..end).unwrap_or_default()
}

/// Length of the byte order mark at the start of `text`: 3 or 0.
pub(crate) fn bom_len(text: &str) -> usize {
    if text.starts_with(BOM) { BOM.len() } else { 0 }
}

/// Line and column of an offset, both from 1; the column counts characters.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = before(text, end);
    let line = head.matches('\n').count() + 1;
    let last = head.rsplit('\n').next().unwrap_or_default();
    (line, last.trim_start_matches(BOM).chars().count() + 1)
}

/// The line ending of the first line, or `\n` if there is none.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if before(text, at).ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

pub(crate) fn line_start(text: &str, offset: usize) -> usize {
    before(text, offset).rfind('\n').map_or(0, |at| at + 1)
}

/// The offset after the newline that ends the line of `offset`.
pub(crate) fn line_end(text: &str, offset: usize) -> usize {
    from(text, offset)
        .find('\n')
        .map_or(text.len(), |at| offset + at + 1)
}

/// The white space at the start of the line of `offset`.
pub(crate) fn indent_at(text: &str, offset: usize) -> &str {
    let line = from(text, line_start(text, offset));
    let rest = line.trim_start_matches([' ', '\t']);
    before(line, line.len() - rest.len())
}

/// The text without the given ranges; overlapping ranges count once.
pub(crate) fn cut(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        kept.push_str(slice(text, at..range.start.max(at)));
        at = at.max(range.end);
    }
    kept.push_str(from(text, at));
    kept
}

/// The same ranges, sorted and without overlaps.
pub(crate) fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Text to insert at an offset of the text before the edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Insertion {
    pub at: usize,
    pub text: String,
}

impl Insertion {
    pub(crate) fn new(at: usize, text: impl Into<String>) -> Self {
        Self {
            at,
            text: text.into(),
        }
    }
}

/// The text with all insertions, which must be sorted by offset.
pub(crate) fn splice(text: &str, insertions: &[Insertion]) -> String {
    let added: usize = insertions.iter().map(|one| one.text.len()).sum();
    let mut whole = String::with_capacity(text.len() + added);
    let mut at = 0;
    for insertion in insertions {
        whole.push_str(slice(text, at..insertion.at));
        whole.push_str(&insertion.text);
        at = insertion.at;
    }
    whole.push_str(from(text, at));
    whole
}
