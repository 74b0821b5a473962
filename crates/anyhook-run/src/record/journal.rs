//! The journal: one line per event, appended by many processes at once.
//!
//! A line is one `write` to a file opened for appending, so lines of different
//! processes never mix. The writer that finds the file full renames it under a
//! lock on the file itself. A writer that does not get the lock appends without
//! it: at worst its line ends in the file that has just been renamed, whole.
//! Nothing here waits, and nothing here may fail an agent: a full disk costs
//! the line and nothing else.
//!
//! Windows appends in one piece on its own disks, but not on network drives, and
//! Wine never does: writers at the same moment overwrite each other's lines. So
//! there the threads of a process take turns, and a process waits for the lock,
//! for a bounded time.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhook_model::Record;
use anyhook_util::fs::{is_current, open_in_private_dir, private_file_options, try_lock};
use anyhook_util::sync::lock;

use crate::record::redact::redacted_json;

/// The file that is written to.
pub const CURRENT_FILE_NAME: &str = "events.jsonl";

/// The current file is renamed when it reaches this size.
const ROTATE_SIZE_BYTES: u64 = 16 * 1024 * 1024;

/// The environment cannot choose a smaller one: a project can set variables through the
/// agent, and with tiny files old records would be gone after a few calls.
pub(crate) const MIN_ROTATE_SIZE_BYTES: u64 = 1024 * 1024;

/// The oldest renamed files beyond this number are removed.
const MAX_ROTATED_FILES: usize = 64;

/// How often a process that keeps the file open checks that it is still current.
const FILE_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How often and how long a writer on Windows waits for the lock.
const LOCK_ATTEMPTS: u32 = if cfg!(windows) { 20 } else { 1 };
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(1);

/// Most lines fit in this.
const TYPICAL_LINE_BYTES: usize = 1024;

#[derive(Debug, Clone)]
pub struct Journal {
    folder: PathBuf,
    rotate_size: u64,
    /// The current file, for a process that writes many lines.
    open_file: Option<Arc<Mutex<Option<OpenFile>>>>,
}

impl Journal {
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join("journal"),
            rotate_size: ROTATE_SIZE_BYTES,
            open_file: None,
        }
    }

    /// For a process that writes many lines: the file stays open, and its threads
    /// do not compete for the lock.
    pub fn keep_open(mut self) -> Self {
        self.open_file = Some(Arc::default());
        self
    }

    pub fn with_rotate_size(mut self, bytes: u64) -> Self {
        self.rotate_size = bytes;
        self
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Redacts and appends a record.
    pub fn append(&self, record: &Record) -> io::Result<()> {
        let mut line = Vec::with_capacity(TYPICAL_LINE_BYTES);
        line.push(b'\n');
        serde_json::to_writer(&mut line, &redacted_json(record)?)?;
        line.push(b'\n');
        self.append_line(&line)
    }

    /// `line` begins with a newline that is left out when the file is whole.
    fn append_line(&self, line: &[u8]) -> io::Result<()> {
        let path = self.folder.join(CURRENT_FILE_NAME);
        let Some(slot) = &self.open_file else {
            return self.append_to(&path, line);
        };
        let mut slot = lock(slot);
        let size = line.len() as u64;
        if let Some(open_file) = slot.as_mut()
            && (open_file.has_room(size) || self.check(open_file, &path, size))
        {
            open_file.room -= size;
            let file = open_file.file.clone();
            // Unix keeps lines apart, so other threads need not wait.
            let _turn = cfg!(windows).then_some(slot);
            return write(&file, line.get(1..).unwrap_or(line));
        }
        self.append_to(&path, line)?;
        *slot = open(&path).ok().map(|file| OpenFile {
            file: Arc::new(file),
            checked: None,
            room: 0,
        });
        Ok(())
    }

    /// Whether a line can be appended as it is to the open file.
    fn check(&self, open_file: &mut OpenFile, path: &Path, line: u64) -> bool {
        open_file.checked = None;
        let now = Instant::now();
        let Ok(data) = open_file.file.metadata() else {
            return false;
        };
        open_file.room = self.rotate_size.saturating_sub(data.len());
        let is_plain =
            line <= open_file.room && !is_at_rest(&data) && is_current(&open_file.file, path);
        open_file.checked = is_plain.then_some(now);
        is_plain
    }

    fn append_to(&self, path: &Path, line: &[u8]) -> io::Result<()> {
        for _ in 0..4 {
            let file = open(path)?;
            let locked = lock_for_writing(&file);
            let data = file.metadata()?;
            if locked && !is_current(&file, path) {
                // Renamed between opening and locking.
                continue;
            }
            let size = data.len();
            let is_full = size > 0 && size + line.len() as u64 > self.rotate_size;
            if locked && is_full && self.rotate(path).is_ok() {
                continue;
            }
            // A line that a full disk has cut must not spoil this one.
            let body = if locked && is_at_rest(&data) && !ends_with_newline(&file, size) {
                line
            } else {
                line.get(1..).unwrap_or(line)
            };
            return write(&file, body);
        }
        // Others rotate faster than this process opens: append to the current file.
        open(path)?.write_all(line.get(1..).unwrap_or(line))
    }

    fn rotate(&self, path: &Path) -> io::Result<()> {
        let time = anyhook_util::time::compact(jiff::Timestamp::now());
        let name = |n: u32| format!("events-{time}-{}-{n}.jsonl", std::process::id());
        let free = (0..1000)
            .map(|n| self.folder.join(name(n)))
            .find(|path| !path.exists())
            .ok_or(io::ErrorKind::AlreadyExists)?;
        anyhook_util::fs::rename(path, &free)?;
        let old = self.rotated();
        let surplus = old.len().saturating_sub(MAX_ROTATED_FILES);
        for path in old.iter().take(surplus) {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    /// The renamed files, oldest first.
    pub fn rotated(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut old: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        old.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("events-") && name.ends_with(".jsonl")
        });
        old.sort();
        old
    }
}

/// The current file as it was at the last check.
#[derive(Debug)]
struct OpenFile {
    file: Arc<File>,
    /// When it was last found to be the current one.
    checked: Option<Instant>,
    /// How many bytes may be appended to it.
    room: u64,
}

impl OpenFile {
    /// Whether a line can be appended without another check. A line that goes to
    /// a file which has just been renamed is not lost.
    fn has_room(&self, line: u64) -> bool {
        let is_fresh = |checked: Instant| checked.elapsed() < FILE_CHECK_INTERVAL;
        line <= self.room && self.checked.is_some_and(is_fresh)
    }
}

/// Whether this writer has the lock now.
fn lock_for_writing(file: &File) -> bool {
    let mut attempts_left = LOCK_ATTEMPTS;
    loop {
        attempts_left -= 1;
        match try_lock(file) {
            Err(TryLockError::WouldBlock) if attempts_left > 0 => {
                std::thread::sleep(LOCK_RETRY_DELAY);
            }
            result => return result.is_ok(),
        }
    }
}

/// Writes a line in one piece, or fails.
fn write(mut file: &File, line: &[u8]) -> io::Result<()> {
    if file.write(line)? < line.len() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = private_file_options();
    options.read(true).append(true).create(true);
    open_in_private_dir(&options, path)
}

/// Whether no process is writing: a line that is being written looks cut, too.
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

#[cfg(windows)]
fn ends_with_newline(file: &File, size: u64) -> bool {
    use std::os::windows::fs::FileExt;
    let mut last = [b'\n'];
    match size.checked_sub(1) {
        Some(at) => file.seek_read(&mut last, at).is_err() || last == [b'\n'],
        None => true,
    }
}
