//! Reads the journal: lists its files, and reads whole lines from a position on.
//!
//! A file is identified by its inode and its first line: rotation renames it without
//! changing either, and a new file that takes over an old inode begins with another
//! record. A line without its line feed is still being written and is left alone.
//! A name may lead to another file a moment later, so a file is read through the
//! handle by which it was identified.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::query::IngestCounts;
use crate::row::EventRow;
use crate::store::{JournalPosition, Store};

const CURRENT_FILE_NAME: &str = "events.jsonl";
const ROTATED_FILE_NAME_PREFIX: &str = "events-";
const FILE_NAME_SUFFIX: &str = ".jsonl";
/// In the journal's folder: files that are not imported yet.
const KEPT_FOLDER_NAME: &str = "unread";
/// Unread files beyond this number are kept: the journal removes its oldest of 64.
const FREE_UNREAD_FILES: usize = 16;
/// Kept files have 8 GiB at most.
const MAX_KEPT_FILES: usize = 512;
const MAX_LINE_BYTES: u64 = 32 * 1024 * 1024;
const MAX_FIRST_LINE_BYTES: u64 = 4096;

/// The size of one batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimit {
    pub lines: usize,
    pub bytes: u64,
}

impl Default for BatchLimit {
    fn default() -> Self {
        Self {
            lines: 1000,
            bytes: 8 * 1024 * 1024,
        }
    }
}

/// One file of the journal, open.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    /// Identifies the file, whatever its name.
    pub key: String,
    pub len: u64,
    file: File,
}

/// Whole lines of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineBatch {
    pub lines: Vec<String>,
    /// Lines that are too long or not UTF-8.
    pub refused: u64,
    /// Where the next batch begins.
    pub end: u64,
}

impl LineBatch {
    pub(crate) fn rows(&self) -> impl Iterator<Item = EventRow> {
        self.lines
            .iter()
            .filter_map(|line| EventRow::from_line(line))
    }
}

/// The files of a journal, rotated ones first, in the order they were written.
pub fn files(dir: &Path) -> Result<Vec<JournalFile>> {
    let failed = |source| StoreError::Journal {
        path: dir.to_owned(),
        source,
    };
    // Opened before listing: if it is renamed meanwhile, the list contains it.
    let current = JournalFile::open(dir.join(CURRENT_FILE_NAME))?;
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if let Some(name) = name.to_str()
            && name.starts_with(ROTATED_FILE_NAME_PREFIX)
            && name.ends_with(FILE_NAME_SUFFIX)
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let mut found: Vec<JournalFile> = Vec::new();
    for path in kept_files(dir)
        .into_iter()
        .chain(names.iter().map(|name| dir.join(name)))
    {
        let file = JournalFile::open(path)?;
        found.extend(file.filter(|file| found.iter().all(|other| other.key != file.key)));
    }
    let is_new = |file: &JournalFile| found.iter().all(|other| other.key != file.key);
    let current = current.filter(is_new);
    found.extend(current);
    Ok(found)
}

/// Files that the journal may have removed already and an importer still needs, oldest first.
fn kept_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join(KEPT_FOLDER_NAME)).into_iter();
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

impl JournalFile {
    /// Keeps the file when the journal removes it, by a second name.
    fn keep(&self, dir: &Path) -> io::Result<()> {
        let Some(name) = self.path.file_name().filter(|_| self.is_rotated()) else {
            return Ok(());
        };
        let folder = dir.join(KEPT_FOLDER_NAME);
        anyhook_util::fs::create_private_dir(&folder)?;
        match std::fs::hard_link(&self.path, folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the journal writes to another file by now.
    fn is_rotated(&self) -> bool {
        self.path
            .file_name()
            .is_some_and(|name| name != CURRENT_FILE_NAME)
    }

    /// Whether this is the second name.
    fn is_kept(&self) -> bool {
        let folder = self.path.parent().and_then(Path::file_name);
        folder.is_some_and(|name| name == KEPT_FOLDER_NAME)
    }

    /// Removes the second name.
    fn release(&self, dir: &Path) {
        if let Some(name) = self.path.file_name().filter(|_| self.is_rotated()) {
            // Most files have none.
            let _ = std::fs::remove_file(dir.join(KEPT_FOLDER_NAME).join(name));
        }
    }

    /// `None` while it has no whole line yet, and when it was deleted.
    fn open(path: PathBuf) -> Result<Option<Self>> {
        Self::identify(&path).or_else(|source| match source.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(StoreError::Journal { path, source }),
        })
    }

    fn identify(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut first = Vec::new();
        BufReader::new(&file)
            .take(MAX_FIRST_LINE_BYTES)
            .read_until(b'\n', &mut first)?;
        if first.last() != Some(&b'\n') && (first.len() as u64) < MAX_FIRST_LINE_BYTES {
            return Ok(None);
        }
        Ok(Some(Self {
            key: format!("{}:{:016x}", inode(&file), fnv1a(&first)),
            len: metadata.len(),
            path: path.to_owned(),
            file,
        }))
    }

    /// Whole lines from `from` on.
    pub fn read_lines(&self, from: u64, limit: BatchLimit) -> Result<LineBatch> {
        read_lines(&self.file, from, limit).map_err(|source| StoreError::Journal {
            path: self.path.clone(),
            source,
        })
    }
}

/// The key is stored, so the hash must be the same in every build.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn inode(file: &File) -> String {
    let (volume, number) = anyhook_util::fs::identity(file).unwrap_or_default();
    format!("{volume:x}:{number:x}")
}

fn read_lines(mut file: &File, from: u64, limit: BatchLimit) -> io::Result<LineBatch> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut batch = LineBatch {
        end: from,
        ..LineBatch::default()
    };
    while batch.lines.len() < limit.lines && batch.end - from < limit.bytes {
        let mut line = Vec::new();
        let mut size = (&mut reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)? as u64;
        if line.last() == Some(&b'\n') {
            line.pop();
            match String::from_utf8(line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => batch.lines.push(text),
                Err(_) => batch.refused += 1,
            }
        } else if size < MAX_LINE_BYTES {
            break;
        } else {
            let Some(rest) = skip_line(&mut reader)? else {
                break;
            };
            size += rest;
            batch.refused += 1;
        }
        batch.end += size;
    }
    Ok(batch)
}

/// The number of bytes to the next line feed, inclusive; `None` when there is none yet.
fn skip_line(reader: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let (size, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        reader.consume(size);
        skipped += size as u64;
        if ended {
            return Ok(Some(skipped));
        }
    }
}

/// Imports a journal into a store, which also keeps the position in each file.
#[derive(Debug)]
pub struct JournalImporter {
    dir: PathBuf,
    source: String,
    limit: BatchLimit,
    positions: HashMap<String, u64>,
    /// Files with a second name.
    kept: HashSet<String>,
}

impl JournalImporter {
    /// `source` identifies this journal among all that are imported into the same store.
    pub fn new(dir: impl Into<PathBuf>, source: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            source: source.into(),
            limit: BatchLimit::default(),
            positions: HashMap::new(),
            kept: HashSet::new(),
        }
    }

    pub fn with_limit(mut self, limit: BatchLimit) -> Self {
        self.limit = limit;
        self
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Imports everything that the journal contains now.
    pub fn import_all(&mut self, store: &dyn Store) -> Result<IngestCounts> {
        Ok(self.import_batches(store, usize::MAX)?.0)
    }

    /// The journal bounds itself by removing its oldest file. What is not imported by then is
    /// kept here, so that no call waits for the store.
    fn keep_unread(&mut self, store: &dyn Store, files: &[JournalFile]) -> Result<()> {
        let mut kept = kept_files(&self.dir).len();
        for file in files.iter().filter(|file| file.is_rotated()) {
            let pos = match self.positions.get(&file.key) {
                Some(pos) => *pos,
                None => store.journal_position(&self.source, &file.key)?,
            };
            self.positions.insert(file.key.clone(), pos);
            if pos < file.len && kept < MAX_KEPT_FILES && !self.kept.contains(&file.key) {
                // A file system without hard links keeps what the journal keeps.
                kept += usize::from(file.keep(&self.dir).is_ok());
                self.kept.insert(file.key.clone());
            }
        }
        self.kept
            .retain(|key| files.iter().any(|file| file.key == *key));
        Ok(())
    }

    /// How many bytes of the journal a store has not imported yet.
    pub fn unread_bytes(&self, store: &dyn Store) -> Result<u64> {
        let mut left = 0;
        for file in files(&self.dir)? {
            let pos = store.journal_position(&self.source, &file.key)?;
            left += file.len.saturating_sub(pos);
        }
        Ok(left)
    }

    /// Imports at most this many batches; also returns the number of bytes that are left.
    pub fn import_batches(
        &mut self,
        store: &dyn Store,
        mut batches: usize,
    ) -> Result<(IngestCounts, u64)> {
        let mut done = IngestCounts::default();
        let mut left = 0;
        let files = files(&self.dir)?;
        self.positions
            .retain(|key, _| files.iter().any(|file| file.key == *key));
        if files.len() > FREE_UNREAD_FILES && batches < usize::MAX {
            self.keep_unread(store, &files)?;
        }
        for file in files {
            let mut pos = match self.positions.get(&file.key) {
                Some(pos) => *pos,
                None => store.journal_position(&self.source, &file.key)?,
            };
            while pos < file.len {
                if batches == 0 {
                    left += file.len - pos;
                    break;
                }
                batches -= 1;
                let batch = file.read_lines(pos, self.limit)?;
                if batch.end == pos {
                    break;
                }
                let rows: Vec<_> = batch.rows().collect();
                let position = JournalPosition {
                    source: self.source.clone(),
                    file: file.key.clone(),
                    pos: batch.end,
                };
                done += store.insert(&rows, Some(&position))?;
                done.refused += batch.refused + (batch.lines.len() - rows.len()) as u64;
                pos = batch.end;
            }
            if pos >= file.len && (self.kept.remove(&file.key) || file.is_kept()) {
                file.release(&self.dir);
            }
            self.positions.insert(file.key, pos);
        }
        Ok((done, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_renamed_while_it_is_read_stays_the_same() -> std::io::Result<()> {
        let list = |dir: &Path| files(dir).map_err(io::Error::other);
        let dir = tempfile::tempdir()?;
        let current = dir.path().join(CURRENT_FILE_NAME);
        std::fs::write(&current, "old 1\nold 2\n")?;
        let found = list(dir.path())?;
        std::fs::rename(&current, dir.path().join("events-1.jsonl"))?;
        std::fs::write(&current, "new 1\nnew 2\n")?;
        let read = found
            .iter()
            .map(|file| file.read_lines(6, BatchLimit::default()));
        let lines: Vec<String> = read
            .flat_map(|read| read.unwrap_or_default().lines)
            .collect();
        assert_eq!(lines, ["old 2"]);
        let names: Vec<String> = list(dir.path())?.into_iter().map(|file| file.key).collect();
        assert_eq!(names.len(), 2);
        assert_eq!(names.first(), found.first().map(|file| &file.key));
        Ok(())
    }
}
