//! A lock per target file, so that only one process edits it at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhook_util::fs::try_lock;
use anyhook_util::hash::sha256;

use crate::file::{FileError, real_path, remove_stale_temp_files};

const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The lock of one target file, held until it is dropped or the process ends.
///
/// The lock is on a separate file: the target is replaced by renaming, so a lock
/// on it would guard a file that no longer exists.
#[derive(Debug)]
pub struct FileLock {
    target: PathBuf,
    _file: File,
}

impl FileLock {
    /// Waits up to `timeout` for the lock of `target`, then removes the temporary
    /// files of processes that died while writing it.
    pub fn acquire(folder: &Path, target: &Path, timeout: Duration) -> Result<Self, FileError> {
        let target = real_path(target)?;
        fs::create_dir_all(folder).map_err(FileError::io("create the folder", folder))?;
        let path = folder.join(format!("{}.lock", target_id(&target)));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(FileError::io("open", &path))?;
        let deadline = Instant::now() + timeout;
        loop {
            match try_lock(&file) {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(FileError::io("lock", &path)(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(FileError::Busy(target));
                }
                Err(TryLockError::WouldBlock) => sleep(LOCK_POLL_INTERVAL),
            }
        }
        remove_stale_temp_files(&target);
        Ok(Self {
            target,
            _file: file,
        })
    }

    /// The locked file, with symbolic links resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

/// An identifier of a target that is safe as a file name.
pub(crate) fn target_id(real: &Path) -> String {
    let mut hash = sha256(real.as_os_str().as_encoded_bytes());
    hash.truncate(32);
    hash
}
