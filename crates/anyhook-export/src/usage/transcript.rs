//! Reads what is new in a transcript.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhook_util::hash::PartsHash;
use serde::{Deserialize, Serialize};

use super::ledger::TokenCounts;
use super::table::{FoundUsage, TranscriptTable};

/// Longer lines are skipped: counts are in short ones.
const MAX_LINE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of one transcript that are read at a time, and so of the calls in memory.
const MAX_PART_BYTES: u64 = 8 * 1024 * 1024;
/// Calls whose counts may still grow.
const MAX_RECENT_CALLS: usize = 8;
/// Bytes before the position by which another file in the transcript's place is recognized.
const MAX_TAIL_BYTES: u64 = 256;

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
    /// A hash of the bytes before the position; empty: not known.
    #[serde(default)]
    tail: String,
    /// The position is in a line that is too long.
    #[serde(default)]
    is_in_long_line: bool,
    /// What comes next may be in the ledger already: the transcript was rewritten, or
    /// payloads had the same calls.
    #[serde(default)]
    pub(crate) is_repeated: bool,
    /// There is more to read.
    #[serde(default)]
    pub(crate) is_unfinished: bool,
}

/// The counts that the ledger has for the calls of a session.
pub(crate) type KnownCalls = BTreeMap<String, TokenCounts>;

/// Tokens that a transcript has and its reader had not.
#[derive(Debug, PartialEq)]
pub(crate) struct NewTokens {
    pub(crate) id: String,
    pub(crate) time: Option<String>,
    pub(crate) model: String,
    pub(crate) tokens: TokenCounts,
}

/// The next part of a transcript, in whole lines from the position on, and its size. A
/// transcript that cannot be read has nothing new. `known_calls` is asked only where the
/// transcript was rewritten.
pub(crate) fn read_transcript(
    path: &Path,
    table: &TranscriptTable,
    position: &mut TranscriptPosition,
    known_calls: impl FnOnce() -> KnownCalls,
) -> (Vec<NewTokens>, u64) {
    position.is_unfinished = false;
    let Ok((mut file, metadata)) = anyhook_util::fs::open_regular(path) else {
        return Default::default();
    };
    let is_same = metadata.len() >= position.bytes
        && (position.tail.is_empty()
            || tail_hash(&mut file, position.bytes).as_ref() == Some(&position.tail));
    if !is_same {
        position.begin_again();
    }
    if metadata.len() == position.bytes || file.seek(SeekFrom::Start(position.bytes)).is_err() {
        return Default::default();
    }
    let known = position.is_repeated.then(known_calls);
    let mut found = Vec::new();
    let mut reader = BufReader::with_capacity(128 * 1024, file);
    let (mut read, mut is_at_end) = (0, false);
    while read < MAX_PART_BYTES && !is_at_end {
        let mut line = Vec::new();
        let size = (&mut reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .unwrap_or_default() as u64;
        let is_whole = line.last() == Some(&b'\n');
        let is_long = position.is_in_long_line || size == MAX_LINE_BYTES;
        if !is_whole && !is_long {
            // The agent is writing it.
            is_at_end = true;
            continue;
        }
        is_at_end = size == 0;
        read += size;
        position.is_in_long_line = !is_whole;
        if is_long {
            continue;
        }
        let has_word = |line: &str| table.words.iter().any(|word| line.contains(word.as_str()));
        if let Ok(line) = std::str::from_utf8(&line)
            && has_word(line)
            && let Ok(object) = serde_json::from_str(line)
        {
            let usage = table.fields.find(&object);
            found.extend(position.new_tokens(usage, known.as_ref()));
        }
    }
    position.bytes += read;
    position.is_unfinished = !is_at_end && metadata.len() > position.bytes;
    position.is_repeated &= position.is_unfinished;
    position.tail = tail_hash(reader.get_mut(), position.bytes).unwrap_or_default();
    (found, read)
}

/// A hash of the bytes before a position.
fn tail_hash(file: &mut File, position: u64) -> Option<String> {
    let start = position.saturating_sub(MAX_TAIL_BYTES);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut tail = Vec::new();
    file.take(position - start).read_to_end(&mut tail).ok()?;
    let mut hash = PartsHash::default();
    hash.add(&tail);
    Some(hash.finish())
}

impl TranscriptPosition {
    pub(crate) fn new(is_repeated: bool) -> Self {
        Self {
            is_repeated,
            ..Self::default()
        }
    }

    fn begin_again(&mut self) {
        self.bytes = 0;
        self.is_in_long_line = false;
        self.is_repeated = true;
    }

    /// What is new in the counts of a call. `known` has older calls than the newest few.
    pub(crate) fn new_tokens(
        &mut self,
        found: FoundUsage,
        known: Option<&KnownCalls>,
    ) -> Option<NewTokens> {
        if let Some(model) = found.model {
            self.model = model;
        }
        let tokens = found.tokens?;
        let id = found.id?;
        let recent = self.recent.iter().position(|(recent, _)| *recent == id);
        let recent = recent.map(|at| self.recent.remove(at).1);
        let earlier = recent.or_else(|| known?.get(&id).copied());
        let earlier = earlier.unwrap_or_default();
        if self.recent.len() >= MAX_RECENT_CALLS {
            self.recent.remove(0);
        }
        // Of a transcript that is read again the first counts of a call are lower.
        self.recent.push((id.clone(), tokens.max(earlier)));
        let tokens = tokens.since(earlier);
        (tokens != TokenCounts::default()).then(|| NewTokens {
            id,
            time: found.time,
            model: self.model.clone(),
            tokens,
        })
    }
}
