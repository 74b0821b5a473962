//! A small file with what an export must remember: its position in the journal, and what it
//! has begun and not finished.
//!
//! One process uses it at a time. It is replaced as a whole, so that a killed process leaves
//! the old state or the new one.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhook_util::fs::{open_in_private_dir, private_file_options, replace_durably, try_lock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ExportError, Result};

const MAX_STATE_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    /// Held until the export ends; a killed process loses it.
    _lock: File,
}

impl StateFile {
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let mut lock_path = path.clone().into_os_string();
        lock_path.push(".lock");
        let mut options = private_file_options();
        options.write(true).create(true);
        let lock = open_in_private_dir(&options, Path::new(&lock_path));
        let lock = lock.map_err(|source| ExportError::State {
            path: PathBuf::from(&lock_path),
            source,
        })?;
        if try_lock(&lock).is_err() {
            return Err(ExportError::Locked { path });
        }
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The saved state. An unreadable one counts as none: everything is exported again, and
    /// the ids show that it is the same.
    pub fn load<T: DeserializeOwned>(&self) -> Option<T> {
        let text = anyhook_util::fs::read_text(&self.path, MAX_STATE_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub fn save(&self, state: &impl Serialize) -> Result<()> {
        let saved = serde_json::to_vec(state)
            .map_err(std::io::Error::from)
            .and_then(|text| replace_durably(&self.path, &text));
        saved.map_err(|source| ExportError::State {
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_used_by_one_export_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/otlp.json");
        let first = StateFile::open(&path).unwrap();
        assert_eq!(first.load::<u32>(), None);
        first.save(&7).unwrap();
        let refused = StateFile::open(&path).unwrap_err();
        assert!(matches!(refused, ExportError::Locked { .. }));
        drop(first);
        assert_eq!(StateFile::open(&path).unwrap().load::<u32>(), Some(7));
    }

    #[test]
    fn an_unreadable_state_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("otlp.json");
        std::fs::write(&path, "{\"cut").unwrap();
        assert_eq!(StateFile::open(&path).unwrap().load::<u32>(), None);
    }
}
