//! The real clock and files, and session memories on disk.
//!
//! One small file per session, private to the user. It is changed under a lock
//! on the file itself, because each hook call is a separate process and several
//! run at once. A process that does not get the lock soon continues without a
//! memory; an agent never waits for it.

use std::fs::File;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhook_util::fs::{
    is_current, open_in_private_dir, open_regular, private_file_options, try_lock,
};
use openhook::stable_id;

use super::file_changes::is_absolute;
use super::machine::{FileTail, Machine, SessionKey};
use super::session_memory::SessionMemory;

/// A memory that was not changed for this long is removed.
const MEMORY_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// One sweep checks at most this many files.
const MAX_SWEPT_FILES: usize = 512;

/// A larger memory is discarded.
const MAX_MEMORY_BYTES: u64 = 1024 * 1024;

/// The lock is held for less than a millisecond, unless its holder was stopped.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_micros(500);

/// The folder of memories and queues in the state folder.
pub(crate) const FOLDER_NAME: &str = "openhook";

/// The age of this file is the time since the last sweep.
const SWEEP_MARKER: &str = "swept";

/// This machine, with its memories under a state folder.
#[derive(Debug, Clone)]
pub struct LocalMachine {
    folder: PathBuf,
    lock_timeout: Duration,
}

impl LocalMachine {
    /// `state` is the program's state folder; the memories are in `openhook/`.
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join(FOLDER_NAME),
            lock_timeout: LOCK_TIMEOUT,
        }
    }

    /// The same for a caller that may wait longer for other processes.
    #[must_use]
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self {
            lock_timeout,
            ..self
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn update(
        &self,
        session: SessionKey<'_>,
        change: &mut dyn FnMut(&mut SessionMemory),
    ) -> io::Result<()> {
        let name = stable_id(&[session.source, session.id]);
        let path = self.folder.join(format!("{name}.json"));
        let is_new = !path.exists();
        let Some(mut file) = open_locked(&path, self.lock_timeout)? else {
            return Ok(());
        };
        let mut text = String::new();
        // An unreadable memory was cut off, and is replaced.
        let read = Read::by_ref(&mut file)
            .take(MAX_MEMORY_BYTES)
            .read_to_string(&mut text);
        let line = text.lines().next().filter(|_| read.is_ok());
        let mut memory: SessionMemory = line
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_default();
        let before = memory.clone();
        change(&mut memory);
        if memory != before || is_new {
            // Truncated only after the write: until then, the rest of the old
            // text is behind the first line.
            let mut line = serde_json::to_vec(&memory)?;
            line.push(b'\n');
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&line)?;
            file.set_len(line.len() as u64)?;
        }
        drop(file);
        if is_new {
            self.sweep();
        }
        Ok(())
    }

    /// Removes the state of old sessions, at most once per interval.
    fn sweep(&self) {
        let marker = self.folder.join(SWEEP_MARKER);
        let is_fresh = age(&marker).is_some_and(|age| age < SWEEP_INTERVAL);
        if is_fresh || std::fs::write(&marker, []).is_err() {
            return;
        }
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        for entry in entries.flatten().take(MAX_SWEPT_FILES) {
            let path = entry.path();
            if age(&path).is_some_and(|age| age > MEMORY_RETENTION) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Machine for LocalMachine {
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }

    fn exists(&self, path: &str) -> Option<bool> {
        if !is_absolute(path) {
            return None;
        }
        match std::fs::symlink_metadata(path) {
            Ok(_) => Some(true),
            Err(error) => matches!(error.kind(), NotFound | NotADirectory).then_some(false),
        }
    }

    fn read_tail(&self, path: &str, limit: usize) -> Option<FileTail> {
        if !is_absolute(path) {
            return None;
        }
        let (mut file, metadata) = open_regular(Path::new(path)).ok()?;
        let from = metadata.len().saturating_sub(limit as u64);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes).ok()?;
        Some(FileTail {
            bytes,
            whole: from == 0,
        })
    }

    fn remember(&self, session: SessionKey<'_>, change: &mut dyn FnMut(&mut SessionMemory)) {
        let mut done = false;
        let _ = self.update(session, &mut |memory| {
            done = true;
            change(memory);
        });
        if !done {
            change(&mut SessionMemory::default());
        }
    }
}

/// Opens and locks a file that anyhook's processes share.
pub(crate) fn open_shared(path: &Path) -> io::Result<Option<File>> {
    open_locked(path, LOCK_TIMEOUT)
}

/// Opens and locks a file; `None` if the lock is not available in time, or if the
/// path is not a regular file.
fn open_locked(path: &Path, timeout: Duration) -> io::Result<Option<File>> {
    let started = Instant::now();
    while started.elapsed() < timeout {
        let file = open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        if try_lock(&file).is_ok() {
            if is_current(&file, path) {
                return Ok(Some(file));
            }
            // Swept between opening and locking.
            continue;
        }
        std::thread::sleep(LOCK_RETRY_INTERVAL);
    }
    Ok(None)
}

pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = private_file_options();
    options.read(true).write(true).create(true).truncate(false);
    open_in_private_dir(&options, path)
}

fn age(path: &Path) -> Option<Duration> {
    let modified = std::fs::metadata(path).ok()?.modified();
    modified.ok()?.elapsed().ok()
}
