//! The world as it is: the clock, the files, and a memory on disk.
//!
//! One small file per session, private to the user. It is changed under a lock
//! on the file itself: each hook call is a process of its own, and several run
//! at once. Whoever does not get the lock soon goes on without a memory; an
//! agent never waits for it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use openhook::stable_id;

use crate::change::is_absolute;
use crate::memory::Memory;
use crate::world::{Session, Tail, World};

/// A memory that nobody has touched for so long is removed.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often old memories are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// How many files one sweep looks at.
const MOST_SWEPT: usize = 512;

/// A memory that has grown beyond this is begun anew.
const MEMORY_LIMIT: u64 = 1024 * 1024;

/// How long the lock is tried for. It is held for less than a millisecond,
/// unless its holder was stopped.
const WAIT: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_micros(500);

/// Where memories and queues are, in the state folder.
pub(crate) const FOLDER: &str = "openhook";

/// The file whose age tells when the last sweep was.
const SWEPT: &str = "swept";

/// The real world, with its memory under a state folder.
#[derive(Debug, Clone)]
pub struct StateWorld {
    folder: PathBuf,
}

impl StateWorld {
    /// `state` is the program's state folder; the memories are in `openhook/`.
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join(FOLDER),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, session: Session<'_>) -> PathBuf {
        let name = stable_id(&[session.source, session.id]);
        self.folder.join(format!("{name}.json"))
    }

    fn update(
        &self,
        session: Session<'_>,
        change: &mut dyn FnMut(&mut Memory),
    ) -> io::Result<bool> {
        let path = self.path(session);
        let is_new = !path.exists();
        let Some(mut file) = locked(&path)? else {
            return Ok(false);
        };
        let mut text = String::new();
        // What cannot be read was cut off, and is begun anew.
        let read = Read::by_ref(&mut file)
            .take(MEMORY_LIMIT)
            .read_to_string(&mut text);
        let line = text.lines().next().filter(|_| read.is_ok());
        let mut memory: Memory = line
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_default();
        let before = memory.clone();
        change(&mut memory);
        if memory != before || is_new {
            // Cut only after it is written: whatever remains of the old text in
            // between is behind the first line.
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
        Ok(true)
    }

    /// Removes memories of sessions that have not been heard of for long, once
    /// in a while.
    fn sweep(&self) {
        let marker = self.folder.join(SWEPT);
        if age(&marker).is_some_and(|age| age < SWEEP_EVERY) {
            return;
        }
        if std::fs::write(&marker, []).is_err() {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten().take(MOST_SWEPT) {
            let path = entry.path();
            if age(&path).is_some_and(|age| age > KEPT) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl World for StateWorld {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    fn exists(&self, path: &str) -> Option<bool> {
        if !is_absolute(path) {
            return None;
        }
        match std::fs::symlink_metadata(path) {
            Ok(_) => Some(true),
            Err(error) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            )
            .then_some(false),
        }
    }

    fn read_tail(&self, path: &str, limit: usize) -> Option<Tail> {
        if !is_absolute(path) || !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut file = File::open(path).ok()?;
        let from = file.metadata().ok()?.len().saturating_sub(limit as u64);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes).ok()?;
        Some(Tail {
            bytes,
            whole: from == 0,
        })
    }

    fn remember(&self, session: Session<'_>, change: &mut dyn FnMut(&mut Memory)) {
        let mut done = false;
        let _ = self.update(session, &mut |memory| {
            done = true;
            change(memory);
        });
        if !done {
            change(&mut Memory::default());
        }
    }
}

/// The file, and its lock with it. None when the lock is not to be had, or when
/// the file is no file.
pub(crate) fn locked(path: &Path) -> io::Result<Option<File>> {
    let begun = Instant::now();
    while begun.elapsed() < WAIT {
        let file = open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        if try_lock(&file) {
            if is_current(&file, path) {
                return Ok(Some(file));
            }
            // Swept between our open and our lock.
            continue;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(None)
}

pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path.parent().ok_or(error)?)?;
        options.open(path)
    })
}

#[cfg(unix)]
pub(crate) fn try_lock(file: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(not(unix))]
pub(crate) fn try_lock(file: &File) -> bool {
    file.try_lock().is_ok()
}

#[cfg(unix)]
pub(crate) fn is_current(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |data: Metadata| (data.dev(), data.ino());
    let (ours, theirs) = (file.metadata(), std::fs::metadata(path));
    ours.ok().map(place) == theirs.ok().map(place)
}

#[cfg(not(unix))]
pub(crate) fn is_current(_file: &File, _path: &Path) -> bool {
    // Windows removes no file that is open.
    true
}

fn age(path: &Path) -> Option<Duration> {
    let data: Metadata = std::fs::metadata(path).ok()?;
    data.modified().ok()?.elapsed().ok()
}
