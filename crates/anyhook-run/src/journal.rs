//! The journal: one line per event, appended by many processes at once.
//!
//! A line is one `write` to a file opened for appending, so lines of different
//! processes never mix. The writer that finds the file full renames it under a
//! lock on the file itself. A writer that does not get the lock appends without
//! it: at worst its line ends in the file that has just been renamed, whole.
//! Nothing here waits, and nothing here may fail an agent: a full disk costs
//! the line and nothing else.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhook_model::Record;

use crate::clock;
use crate::redact::Clean;

/// The file that is written to.
pub const CURRENT: &str = "events.jsonl";

/// The current file is renamed when it has this size.
pub const ROTATE_AT: u64 = 16 * 1024 * 1024;

/// Of the renamed files, so many are kept.
pub const KEEP: usize = 64;

/// How long a look at the current file holds, for a process that keeps it open.
const GLANCE: Duration = Duration::from_millis(20);

/// What most lines fit in.
const LINE: usize = 1024;

#[derive(Debug, Clone)]
pub struct Journal {
    folder: PathBuf,
    rotate_at: u64,
    /// The current file, for a process that writes many lines.
    kept: Option<Arc<Mutex<Option<Kept>>>>,
}

impl Journal {
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join("journal"),
            rotate_at: ROTATE_AT,
            kept: None,
        }
    }

    /// For a process that writes many lines: the file stays open, and its threads
    /// do not fight for the lock.
    pub fn kept_open(mut self) -> Self {
        self.kept = Some(Arc::default());
        self
    }

    pub fn rotating_at(mut self, bytes: u64) -> Self {
        self.rotate_at = bytes;
        self
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Redacts and appends a record.
    pub fn append(&self, record: &Record) -> io::Result<()> {
        let mut line = Vec::with_capacity(LINE);
        line.push(b'\n');
        serde_json::to_writer(&mut line, &Clean::new(record))?;
        line.push(b'\n');
        self.append_line(&line)
    }

    /// `line` begins with a newline that is left out when the file is whole.
    fn append_line(&self, line: &[u8]) -> io::Result<()> {
        let path = self.folder.join(CURRENT);
        let Some(kept) = &self.kept else {
            return self.append_to(&path, line);
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let size = line.len() as u64;
        if let Some(plain) = kept.as_mut()
            && (plain.holds(size) || self.look(plain, &path, size))
        {
            plain.room -= size;
            let file = plain.file.clone();
            // The system keeps lines apart; nobody has to wait for ours.
            drop(kept);
            return write(&file, line.get(1..).unwrap_or(line));
        }
        self.append_to(&path, line)?;
        *kept = open(&path).ok().map(Kept::new);
        Ok(())
    }

    /// Whether a line can be appended without a look at anything else.
    fn look(&self, kept: &mut Kept, path: &Path, line: u64) -> bool {
        kept.looked = None;
        let now = Instant::now();
        let Ok(data) = kept.file.metadata() else {
            return false;
        };
        kept.room = self.rotate_at.saturating_sub(data.len());
        let is_plain = line <= kept.room && !is_at_rest(&data) && is_current(&data, path);
        kept.looked = is_plain.then_some(now);
        is_plain
    }

    fn append_to(&self, path: &Path, line: &[u8]) -> io::Result<()> {
        for _ in 0..4 {
            let file = open(path)?;
            let locked = try_lock(&file);
            let data = file.metadata()?;
            if locked && !is_current(&data, path) {
                // Renamed between our open and our lock.
                continue;
            }
            let size = data.len();
            let is_full = size > 0 && size + line.len() as u64 > self.rotate_at;
            if locked && is_full && self.rotate(path).is_ok() {
                continue;
            }
            // A line that a full disk has cut must not take ours with it.
            let body = if locked && is_at_rest(&data) && !ends_with_newline(&file, size) {
                line
            } else {
                line.get(1..).unwrap_or(line)
            };
            return write(&file, body);
        }
        // Others rotate faster than we open: append to whatever is current.
        open(path)?.write_all(line.get(1..).unwrap_or(line))
    }

    fn rotate(&self, path: &Path) -> io::Result<()> {
        let time = clock::compact(clock::now_ms());
        let name = |n: u32| format!("events-{time}-{}-{n}.jsonl", std::process::id());
        let free = (0..1000)
            .map(|n| self.folder.join(name(n)))
            .find(|path| !path.exists())
            .ok_or(io::ErrorKind::AlreadyExists)?;
        std::fs::rename(path, free)?;
        self.prune();
        Ok(())
    }

    fn prune(&self) {
        let mut old = self.rotated();
        let surplus = old.len().saturating_sub(KEEP);
        for path in old.drain(..surplus) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The renamed files, oldest first.
    pub fn rotated(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut old: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("events-") && name.ends_with(".jsonl")
            })
            .map(|entry| entry.path())
            .collect();
        old.sort();
        old
    }
}

/// The current file as it was when it was looked at last.
#[derive(Debug)]
struct Kept {
    file: Arc<File>,
    /// When it was found to be the current one.
    looked: Option<Instant>,
    /// What may be appended to it.
    room: u64,
}

impl Kept {
    fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            looked: None,
            room: 0,
        }
    }

    /// Whether a line can be appended without another look. A line that comes
    /// to a file which has just been renamed is as good there.
    fn holds(&self, line: u64) -> bool {
        let is_fresh = |looked: Instant| looked.elapsed() < GLANCE;
        line <= self.room && self.looked.is_some_and(is_fresh)
    }
}

/// In one piece, or not at all.
fn write(mut file: &File, line: &[u8]) -> io::Result<()> {
    if file.write(line)? < line.len() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    // The record of what agents did is nobody else's business.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).or_else(|error| {
        let folder = path.parent().ok_or(error)?;
        crate::files::create_private_dir(folder)?;
        options.open(path)
    })
}

#[cfg(unix)]
fn try_lock(file: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(not(unix))]
fn try_lock(file: &File) -> bool {
    file.try_lock().is_ok()
}

#[cfg(unix)]
fn is_current(ours: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path)
        .is_ok_and(|theirs| ours.ino() == theirs.ino() && ours.dev() == theirs.dev())
}

#[cfg(not(unix))]
fn is_current(_ours: &Metadata, _path: &Path) -> bool {
    // Windows renames no file that is open.
    true
}

/// Whether nobody is writing: a line that is being written looks cut as well.
fn is_at_rest(data: &Metadata) -> bool {
    let age = data.modified().ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(1))
}

#[cfg(unix)]
fn ends_with_newline(file: &File, size: u64) -> bool {
    use std::os::unix::fs::FileExt;
    let mut last = [b'\n'];
    match size.checked_sub(1) {
        Some(at) => file.read_at(&mut last, at).is_err() || last == [b'\n'],
        None => true,
    }
}

#[cfg(not(unix))]
fn ends_with_newline(_file: &File, _size: u64) -> bool {
    true
}
