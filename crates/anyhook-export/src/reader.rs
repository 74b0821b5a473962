//! Reads the journal in batches from a position on.
//!
//! The reader moves on with every batch; what is saved is for the caller to decide, after
//! the receiver has accepted the batch.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use anyhook_store::journal::{self, BatchLimit, JournalFile, LineBatch};
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// How far each file of the journal was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JournalCursor {
    positions: BTreeMap<String, u64>,
}

#[derive(Debug)]
pub struct JournalReader {
    dir: PathBuf,
    cursor: JournalCursor,
    limit: BatchLimit,
    /// Not read to the end in this round.
    files: VecDeque<JournalFile>,
    has_gap: bool,
}

impl JournalReader {
    pub fn new(dir: impl Into<PathBuf>, cursor: JournalCursor) -> Self {
        Self {
            dir: dir.into(),
            cursor,
            limit: BatchLimit::default(),
            files: VecDeque::new(),
            has_gap: false,
        }
    }

    pub fn with_limit(mut self, limit: BatchLimit) -> Self {
        self.limit = limit;
        self
    }

    /// The position after the last batch that [`Self::next_batch`] has returned.
    pub fn cursor(&self) -> &JournalCursor {
        &self.cursor
    }

    /// Whether all files that were known have gone since the last question: what they had
    /// after the position was never read.
    pub(crate) fn has_gap(&mut self) -> bool {
        std::mem::take(&mut self.has_gap)
    }

    /// Whether a file is shorter than it was read, as after a power failure: it will be read
    /// again from its start.
    pub fn is_cut(&self) -> Result<bool> {
        let positions = &self.cursor.positions;
        let files = journal::files(&self.dir)?;
        let is_cut = |file: &JournalFile| positions.get(&file.key).is_some_and(|at| *at > file.len);
        Ok(files.iter().any(is_cut))
    }

    /// The next whole lines; `None` when the journal has no more for now.
    pub fn next_batch(&mut self) -> Result<Option<LineBatch>> {
        let mut is_listed = false;
        loop {
            let Some(file) = self.files.front() else {
                if is_listed {
                    return Ok(None);
                }
                self.list_files()?;
                is_listed = true;
                continue;
            };
            let positions = &mut self.cursor.positions;
            let from = positions.get(&file.key).copied().unwrap_or_default();
            let batch = file.read_lines(from, self.limit)?;
            positions.insert(file.key.clone(), batch.end);
            if batch.end == from {
                self.files.pop_front();
            } else if !batch.lines.is_empty() || batch.refused > 0 {
                return Ok(Some(batch));
            }
        }
    }

    /// Deleted files need no position.
    fn list_files(&mut self) -> Result<()> {
        let files = journal::files(&self.dir)?;
        let positions = &mut self.cursor.positions;
        let had_files = !positions.is_empty();
        positions.retain(|key, _| files.iter().any(|file| file.key == *key));
        self.has_gap |= had_files && positions.is_empty();
        // See `is_cut`.
        positions.retain(|key, position| {
            let file = files.iter().find(|file| file.key == *key);
            file.is_none_or(|file| *position <= file.len)
        });
        let is_unread = |file: &JournalFile| {
            let position = positions.get(&file.key).copied();
            file.len > position.unwrap_or_default()
        };
        self.files = files.into_iter().filter(is_unread).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn drain(reader: &mut JournalReader) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            lines.extend(batch.lines);
        }
        lines
    }

    #[test]
    fn a_reader_continues_after_rotation_and_restart() {
        let dir = tempfile::tempdir().unwrap();
        let current = dir.path().join("events.jsonl");
        std::fs::write(&current, "1\n2\n3\n4\nhal").unwrap();
        let limit = BatchLimit {
            lines: 3,
            bytes: 1 << 20,
        };
        let mut reader = JournalReader::new(dir.path(), JournalCursor::default()).with_limit(limit);
        let first = reader.next_batch().unwrap().unwrap();
        assert_eq!(first.lines, ["1", "2", "3"]);
        let saved = serde_json::to_string(reader.cursor()).unwrap();
        // The process ends here; meanwhile the journal goes on.
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&current)
            .unwrap();
        file.write_all(b"f\n").unwrap();
        std::fs::rename(&current, dir.path().join("events-1.jsonl")).unwrap();
        std::fs::write(&current, "5\n").unwrap();
        let cursor = serde_json::from_str(&saved).unwrap();
        let mut reader = JournalReader::new(dir.path(), cursor).with_limit(limit);
        assert_eq!(drain(&mut reader), ["4", "half", "5"]);
        // A writer that still has the renamed file open.
        file.write_all(b"late\n").unwrap();
        assert_eq!(drain(&mut reader), ["late"]);
        assert_eq!(drain(&mut reader), [""; 0]);
    }
}
