//! Files that are ours as a whole: scripts and plugins that we generate.

use std::path::PathBuf;

use crate::file::{
    FileError, make_executable, missing_folders, read_text, remove_created, write_as,
};
use crate::lock::Lock;
use crate::log::InstallLog;
use crate::patch::sha256;
use crate::session::{Change, PATIENCE};
use crate::undo::How;

/// A generated file, and the folder where its lock and its record are kept.
#[derive(Debug, Clone)]
pub struct Placed {
    pub path: PathBuf,
    pub state: PathBuf,
    pub executable: bool,
}

impl Placed {
    /// Writes the file. One that is there already is replaced when it is what we
    /// wrote last or `generated` says that it is one of ours, and refused otherwise.
    pub fn install(
        &self,
        text: &str,
        generated: &dyn Fn(&str) -> bool,
    ) -> Result<Change, FileError> {
        let lock = Lock::acquire(&self.state, &self.path, PATIENCE)?;
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
            write_as(target, text.as_bytes(), self.executable, &mut |_, _| Ok(()))?;
        }
        if self.executable {
            make_executable(target)?;
        }
        Ok(Change {
            before,
            after: Some(text.to_owned()),
            how: How::Absent,
        })
    }

    /// Removes the file and the folders that we made for it. One that somebody
    /// made their own stays, and is no longer ours to know.
    pub fn uninstall(&self, generated: &dyn Fn(&str) -> bool) -> Result<Change, FileError> {
        let lock = Lock::acquire(&self.state, &self.path, PATIENCE)?;
        let target = lock.target();
        let before = read_text(target)?;
        let known = InstallLog::load(&self.state, target)?;
        let ours = before
            .as_ref()
            .is_none_or(|old| is_ours(old, known.as_ref(), generated));
        let (after, how) = if ours {
            let folders = known.map(|log| log.folders).unwrap_or_default();
            remove_created(target, &folders)?;
            (None, How::Exact)
        } else {
            (before.clone(), How::Absent)
        };
        InstallLog::forget(&self.state, target)?;
        Ok(Change { before, after, how })
    }
}

fn is_ours(text: &str, known: Option<&InstallLog>, generated: &dyn Fn(&str) -> bool) -> bool {
    known.is_some_and(|log| log.after == sha256(text.as_bytes())) || generated(text)
}
