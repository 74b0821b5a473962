//! Reads what is new in a transcript.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ledger::TokenCounts;
use super::table::{FoundUsage, TranscriptTable};

/// Longer lines are skipped: counts are in short ones.
const MAX_LINE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of one transcript that are read at a time; the rest comes with the next round.
const MAX_ROUND_BYTES: u64 = 64 * 1024 * 1024;
/// Calls whose counts may still grow.
const MAX_RECENT_CALLS: usize = 8;

/// How far a transcript was read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TranscriptPosition {
    /// Or, in a database, the number of the last row.
    pub(crate) bytes: u64,
    /// The model that was named last.
    model: String,
    /// Counts that were reported for the newest calls.
    recent: Vec<(String, TokenCounts)>,
    /// When it was last read, in microseconds since 1970.
    pub(crate) used_us: i64,
}

/// Tokens that a transcript has and its reader had not.
#[derive(Debug, PartialEq)]
pub(crate) struct NewTokens {
    pub(crate) id: String,
    pub(crate) time: Option<String>,
    pub(crate) model: String,
    pub(crate) tokens: TokenCounts,
}

/// Whole lines from the position on. A transcript that cannot be read has nothing new.
pub(crate) fn read_transcript(
    path: &Path,
    table: &TranscriptTable,
    position: &mut TranscriptPosition,
) -> Vec<NewTokens> {
    let Ok((mut file, metadata)) = anyhook_util::fs::open_regular(path) else {
        return Vec::new();
    };
    if metadata.len() < position.bytes {
        // Rewritten: begin anew, and count again only what differs.
        position.bytes = 0;
    }
    if metadata.len() == position.bytes || file.seek(SeekFrom::Start(position.bytes)).is_err() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut reader = BufReader::with_capacity(128 * 1024, file);
    let mut read = 0;
    while read < MAX_ROUND_BYTES {
        let Some((line, size)) = next_line(&mut reader) else {
            break;
        };
        read += size;
        let has_word = |line: &str| table.words.iter().any(|word| line.contains(word.as_str()));
        if let Ok(line) = std::str::from_utf8(&line)
            && has_word(line)
            && let Ok(object) = serde_json::from_str(line)
        {
            found.extend(position.new_tokens(table.fields.find(&object)));
        }
    }
    position.bytes += read;
    found
}

/// A whole line (empty if it is too long) and its size; `None` while it has no end.
fn next_line(reader: &mut BufReader<File>) -> Option<(Vec<u8>, u64)> {
    let mut size = 0;
    loop {
        let mut part = Vec::new();
        let count = reader
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut part)
            .ok()?;
        if count == 0 {
            return None;
        }
        let is_whole = part.last() == Some(&b'\n');
        let is_first = size == 0;
        size += count as u64;
        if is_whole {
            let line = if is_first { part } else { Vec::new() };
            return Some((line, size));
        }
    }
}

impl TranscriptPosition {
    pub(crate) fn new_tokens(&mut self, found: FoundUsage) -> Option<NewTokens> {
        if let Some(model) = found.model {
            self.model = model;
        }
        let tokens = found.tokens?;
        let id = found.id?;
        let known = self.recent.iter().position(|(known, _)| *known == id);
        let earlier = known.map(|at| self.recent.remove(at).1);
        if self.recent.len() >= MAX_RECENT_CALLS {
            self.recent.remove(0);
        }
        self.recent.push((id.clone(), tokens));
        let tokens = tokens.since(earlier.unwrap_or_default());
        (tokens != TokenCounts::default()).then(|| NewTokens {
            id,
            time: found.time,
            model: self.model.clone(),
            tokens,
        })
    }
}
