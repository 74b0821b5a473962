//! Reading the journal: which files there are, and whole lines from a position on.
//!
//! A file is known by its inode and its first line: rotation renames it without
//! changing either, and a new file that takes over an old inode begins with another
//! record. A line without its line feed is still being written and is left alone.
//! A name may lead to another file a moment later, so a file is read by the handle
//! that it was recognised by.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::backend::Mark;
use crate::error::{Result, StoreError};
use crate::query::Ingested;
use crate::row::EventRow;
use crate::store::Store;

pub const CURRENT: &str = "events.jsonl";
const ROTATED_PREFIX: &str = "events-";
const SUFFIX: &str = ".jsonl";
const LINE_MAX: u64 = 32 * 1024 * 1024;
const FIRST_LINE_MAX: u64 = 4096;

/// How much is taken at once.
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
    /// Where it was found.
    pub path: PathBuf,
    pub key: String,
    pub len: u64,
    file: File,
}

/// Whole lines of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    pub lines: Vec<String>,
    /// Lines that are too long, or no UTF-8.
    pub refused: u64,
    /// Where the next batch begins.
    pub end: u64,
}

/// The files of a journal, rotated ones first, in the order they were written.
pub fn files(dir: &Path) -> Result<Vec<JournalFile>> {
    let failed = |source| StoreError::Journal {
        path: dir.to_owned(),
        source,
    };
    // Before the list is made: when it is renamed meanwhile, the list has it.
    let current = JournalFile::open(dir.join(CURRENT))?;
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if let Some(name) = name.to_str()
            && name.starts_with(ROTATED_PREFIX)
            && name.ends_with(SUFFIX)
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let mut found = Vec::new();
    for name in names {
        found.extend(JournalFile::open(dir.join(name))?);
    }
    let is_new = |file: &JournalFile| found.iter().all(|other| other.key != file.key);
    let current = current.filter(is_new);
    found.extend(current);
    Ok(found)
}

impl JournalFile {
    /// `None` while there is no whole line yet, and when it is gone.
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
            .take(FIRST_LINE_MAX)
            .read_until(b'\n', &mut first)?;
        if first.last() != Some(&b'\n') && (first.len() as u64) < FIRST_LINE_MAX {
            return Ok(None);
        }
        Ok(Some(Self {
            key: format!("{}:{:016x}", inode(&metadata), fnv1a(&first)),
            len: metadata.len(),
            path: path.to_owned(),
            file,
        }))
    }

    /// Whole lines from `from` on.
    pub fn read(&self, from: u64, limit: BatchLimit) -> Result<Lines> {
        read(&self.file, from, limit).map_err(|source| StoreError::Journal {
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

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!("{:x}:{:x}", metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> String {
    "-".to_owned()
}

fn read(mut file: &File, from: u64, limit: BatchLimit) -> io::Result<Lines> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut batch = Lines {
        end: from,
        ..Lines::default()
    };
    while batch.lines.len() < limit.lines && batch.end - from < limit.bytes {
        let mut line = Vec::new();
        let mut size = (&mut reader).take(LINE_MAX).read_until(b'\n', &mut line)? as u64;
        if line.last() == Some(&b'\n') {
            line.pop();
            match String::from_utf8(line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => batch.lines.push(text),
                Err(_) => batch.refused += 1,
            }
        } else if size < LINE_MAX {
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

/// Bytes up to and with the next line feed; `None` when there is none yet.
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

/// Carries a journal into a store, and remembers there how far it came.
#[derive(Debug)]
pub struct Tail {
    dir: PathBuf,
    source: String,
    limit: BatchLimit,
    known: HashMap<String, u64>,
}

impl Tail {
    /// `source` names this journal among all that go into the same store.
    pub fn new(dir: impl Into<PathBuf>, source: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            source: source.into(),
            limit: BatchLimit::default(),
            known: HashMap::new(),
        }
    }

    pub fn with_limit(mut self, limit: BatchLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Takes everything that is there now.
    pub fn pump(&mut self, store: &dyn Store) -> Result<Ingested> {
        Ok(self.pump_some(store, usize::MAX)?.0)
    }

    /// Takes so many batches; says how many bytes of what is there now are left.
    pub fn pump_some(&mut self, store: &dyn Store, mut batches: usize) -> Result<(Ingested, u64)> {
        let mut done = Ingested::default();
        let mut left = 0;
        let files = files(&self.dir)?;
        self.known
            .retain(|key, _| files.iter().any(|file| file.key == *key));
        for file in files {
            let mut pos = match self.known.get(&file.key) {
                Some(pos) => *pos,
                None => store.position(&self.source, &file.key)?,
            };
            while pos < file.len {
                if batches == 0 {
                    left += file.len - pos;
                    break;
                }
                batches -= 1;
                let batch = file.read(pos, self.limit)?;
                if batch.end == pos {
                    break;
                }
                let rows: Vec<_> = batch
                    .lines
                    .iter()
                    .filter_map(|line| EventRow::from_line(line))
                    .collect();
                let mark = Mark {
                    source: self.source.clone(),
                    file: file.key.clone(),
                    pos: batch.end,
                };
                done += store.insert(&rows, Some(&mark))?;
                done.refused += batch.refused + (batch.lines.len() - rows.len()) as u64;
                pos = batch.end;
            }
            self.known.insert(file.key, pos);
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
        let current = dir.path().join(CURRENT);
        std::fs::write(&current, "old 1\nold 2\n")?;
        let found = list(dir.path())?;
        std::fs::rename(&current, dir.path().join("events-1.jsonl"))?;
        std::fs::write(&current, "new 1\nnew 2\n")?;
        let read = found.iter().map(|file| file.read(6, BatchLimit::default()));
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
