//! The record of all edits to one file, kept until they are undone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file::{
    FileError, WriteObserver, read_text, real_path, remove_if_exists, remove_stale_temp_files,
    write_observed,
};
use crate::lock::target_id;
use crate::patch::Patch;
use crate::removal::Removal;

/// The version of the record; others are refused.
const LOG_VERSION: u32 = 1;

/// Everything done to one file since it was last free of our edits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InstallLog {
    pub version: u32,
    /// The file, with symbolic links resolved.
    pub path: PathBuf,
    /// Whether the file existed before our first edit.
    pub existed: bool,
    /// Its permission bits then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// SHA-256 of the file before our first edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// SHA-256 of the file after our last edit.
    pub after: String,
    /// The edits, oldest first.
    pub patches: Vec<Patch>,
    /// Elements of the owner that were taken out before the first of the edits, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<Removal>,
    /// The folders created for the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

impl InstallLog {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            version: LOG_VERSION,
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// Whether there is something to undo.
    pub(crate) fn has_edits(&self) -> bool {
        !self.patches.is_empty() || !self.removals.is_empty()
    }

    /// Where the record of `target` is kept in `folder`.
    pub fn location(folder: &Path, target: &Path) -> Result<PathBuf, FileError> {
        Ok(folder.join(format!("{}.json", target_id(&real_path(target)?))))
    }

    /// The record of `target`, if there is one.
    pub fn load(folder: &Path, target: &Path) -> Result<Option<Self>, FileError> {
        Self::load_file(&Self::location(folder, target)?)
    }

    /// The records of all files in `folder`, by path.
    pub fn list(folder: &Path) -> Result<Vec<Self>, FileError> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::io("read", folder)(error)),
        };
        let mut logs = Vec::new();
        for entry in entries {
            let path = entry.map_err(FileError::io("read", folder))?.path();
            if path.extension().is_some_and(|ending| ending == "json") {
                logs.extend(Self::load_file(&path)?);
            }
        }
        logs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(logs)
    }

    fn load_file(path: &Path) -> Result<Option<Self>, FileError> {
        let Some(text) = read_text(path)? else {
            return Ok(None);
        };
        let broken = |message: String| FileError::Log {
            path: path.to_owned(),
            message,
        };
        let log: Self = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let version = log.version;
        if version != LOG_VERSION {
            let message = format!("unsupported version {version}, expected {LOG_VERSION}");
            return Err(broken(message));
        }
        Ok(Some(log))
    }

    /// The caller must hold the lock of the target.
    pub(crate) fn save(&self, folder: &Path, observer: WriteObserver<'_>) -> Result<(), FileError> {
        let path = Self::location(folder, &self.path)?;
        remove_stale_temp_files(&path);
        let text = serde_json::to_string_pretty(self).map_err(|error| FileError::Log {
            path: path.clone(),
            message: error.to_string(),
        })?;
        write_observed(&path, text.as_bytes(), observer).map(drop)
    }

    /// The caller must hold the lock of the target.
    pub(crate) fn forget(folder: &Path, target: &Path) -> Result<(), FileError> {
        let path = Self::location(folder, target)?;
        remove_stale_temp_files(&path);
        remove_if_exists(&path)
    }
}
