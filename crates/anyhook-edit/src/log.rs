//! The record of what was done to one file, kept by us until it is undone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file::{FileError, Watch, read_text, real_path, remove_stale, write_watched};
use crate::lock::id;
use crate::patch::Patch;

/// The layout of the record; another number is refused.
const VERSION: u32 = 1;

/// Everything that was done to one file since it was last free of us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallLog {
    pub version: u32,
    /// The file behind any symbolic links.
    pub path: PathBuf,
    /// Whether the file was there before us.
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
    /// The folders that we made for the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

impl InstallLog {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            version: VERSION,
            path: path.to_owned(),
            existed: false,
            mode: None,
            before: None,
            after: String::new(),
            patches: Vec::new(),
            folders: Vec::new(),
        }
    }

    /// Where the record of `target` is kept in `folder`.
    pub fn location(folder: &Path, target: &Path) -> Result<PathBuf, FileError> {
        Ok(folder.join(format!("{}.json", id(&real_path(target)?))))
    }

    /// The record of `target`, when there is one.
    pub fn load(folder: &Path, target: &Path) -> Result<Option<Self>, FileError> {
        Self::read(&Self::location(folder, target)?)
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
                logs.extend(Self::read(&path)?);
            }
        }
        logs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(logs)
    }

    fn read(path: &Path) -> Result<Option<Self>, FileError> {
        let Some(text) = read_text(path)? else {
            return Ok(None);
        };
        let broken = |message: String| FileError::Log {
            path: path.to_owned(),
            message,
        };
        let log: Self = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        if log.version == VERSION {
            Ok(Some(log))
        } else {
            Err(broken(format!(
                "its version is {}, this program knows {VERSION}",
                log.version
            )))
        }
    }

    /// Only for who holds the lock of the target.
    pub(crate) fn save(&self, folder: &Path, watch: Watch<'_>) -> Result<(), FileError> {
        let path = Self::location(folder, &self.path)?;
        remove_stale(&path);
        let text = serde_json::to_string_pretty(self).map_err(|error| FileError::Log {
            path: path.clone(),
            message: error.to_string(),
        })?;
        write_watched(&path, text.as_bytes(), watch).map(drop)
    }

    /// Only for who holds the lock of the target.
    pub(crate) fn forget(folder: &Path, target: &Path) -> Result<(), FileError> {
        let path = Self::location(folder, target)?;
        remove_stale(&path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }
}
