//! Files that anyhook generates as a whole: scripts and plugins.

use std::path::PathBuf;

use anyhook_util::hash::sha256;

use crate::editable_file::{ContentChange, LOCK_TIMEOUT};
use crate::file::{
    FileError, make_executable, missing_folders, read_text, remove_created, write_with_permissions,
};
use crate::install_log::InstallLog;
use crate::lock::FileLock;
use crate::undo::UndoMethod;

/// A generated file, and the folder for its lock and its record.
#[derive(Debug, Clone)]
pub struct GeneratedFile {
    pub path: PathBuf,
    pub state: PathBuf,
    pub executable: bool,
}

impl GeneratedFile {
    /// Writes the file. An existing file is replaced if it is what we wrote last
    /// or `generated` recognizes it as ours, and refused otherwise.
    pub fn install(
        &self,
        text: &str,
        generated: &dyn Fn(&str) -> bool,
    ) -> Result<ContentChange, FileError> {
        let lock = FileLock::acquire(&self.state, &self.path, LOCK_TIMEOUT)?;
        let target = lock.target();
        let before = read_text(target)?;
        let known = InstallLog::load(&self.state, target)?;
        if let Some(old) = &before
            && old != text
            && !is_ours(old, known.as_ref(), generated)
        {
            return Err(FileError::NotOurs(target.to_owned()));
        }
        let mut log = known.unwrap_or_else(|| InstallLog {
            folders: missing_folders(target),
            ..InstallLog::new(target)
        });
        log.after = sha256(text.as_bytes());
        log.save(&self.state, &mut |_, _| Ok(()))?;
        if before.as_deref() != Some(text) {
            write_with_permissions(target, text.as_bytes(), self.executable, &mut |_, _| Ok(()))?;
        }
        if self.executable {
            make_executable(target)?;
        }
        Ok(ContentChange::written(before, Some(text.to_owned())))
    }

    /// Removes the file and the folders created for it. A file that the user
    /// changed stays, and its record is dropped.
    pub fn uninstall(&self, generated: &dyn Fn(&str) -> bool) -> Result<ContentChange, FileError> {
        let lock = FileLock::acquire(&self.state, &self.path, LOCK_TIMEOUT)?;
        let target = lock.target();
        let before = read_text(target)?;
        let known = InstallLog::load(&self.state, target)?;
        let ours = before
            .as_ref()
            .is_none_or(|old| is_ours(old, known.as_ref(), generated));
        let (after, method) = if ours {
            let folders = known.map(|log| log.folders).unwrap_or_default();
            remove_created(target, &folders)?;
            (None, UndoMethod::Exact)
        } else {
            (before.clone(), UndoMethod::Absent)
        };
        InstallLog::forget(&self.state, target)?;
        Ok(ContentChange {
            before,
            after,
            method,
        })
    }
}

fn is_ours(text: &str, known: Option<&InstallLog>, generated: &dyn Fn(&str) -> bool) -> bool {
    known.is_some_and(|log| log.after == sha256(text.as_bytes())) || generated(text)
}
