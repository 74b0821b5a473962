//! One writer at a time for each target file.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fs4::{FileExt, TryLockError};

use crate::file::{FileError, real_path, remove_stale};
use crate::patch::sha256;

const PAUSE: Duration = Duration::from_millis(10);

/// Holds the lock of one target file until it is dropped, or the process ends.
///
/// The lock is on a file of its own in a folder of ours: the target is replaced
/// by renaming, so a lock on it would guard a file that is gone.
#[derive(Debug)]
pub struct Lock {
    target: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits for the lock of `target` up to `patience`, then clears away what a
    /// process that died in the middle of a write left behind.
    pub fn acquire(folder: &Path, target: &Path, patience: Duration) -> Result<Self, FileError> {
        let target = real_path(target)?;
        fs::create_dir_all(folder).map_err(FileError::io("make the folder", folder))?;
        let path = folder.join(format!("{}.lock", id(&target)));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(FileError::io("open", &path))?;
        let deadline = Instant::now() + patience;
        loop {
            match FileExt::try_lock(&file) {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(FileError::io("lock", &path)(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(FileError::Busy(target));
                }
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
            }
        }
        remove_stale(&target);
        Ok(Self {
            target,
            _file: file,
        })
    }

    /// The file that is locked, behind any symbolic links.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

/// A name for a target that is safe as a file name.
pub(crate) fn id(real: &Path) -> String {
    let mut hash = sha256(real.as_os_str().as_encoded_bytes());
    hash.truncate(32);
    hash
}
