//! An edit of a file from reading to writing, under its lock and with its record.
//!
//! The record is written before the file: a process that dies in between leaves
//! a record of an edit that is not there, which undoes to nothing, instead of an
//! edit that nobody remembers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::edit::{Edited, Format, Options, append, append_unless, get, remove_matching, set};
use crate::error::EditError;
use crate::file::{
    FileError, Step, Watch, missing_folders, mode, read_text, remove_created, write_watched,
};
use crate::lock::Lock;
use crate::log::InstallLog;
use crate::patch::{Patch, sha256};
use crate::path::Key;
use crate::source::BOM;
use crate::undo::{How, undo_all};

/// How long to wait for another process that edits the same file.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A text on which edits are made one after another.
#[derive(Debug, Clone)]
pub struct Draft {
    text: String,
    format: Format,
    options: Options,
    patches: Vec<Patch>,
}

impl Draft {
    pub fn new(text: impl Into<String>, format: Format, options: Options) -> Self {
        Self {
            text: text.into(),
            format,
            options,
            patches: Vec::new(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The edits so far, oldest first.
    pub fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// See [`get`].
    pub fn get(&self, path: &[Key]) -> Result<Option<Value>, EditError> {
        get(&self.text, self.format, path)
    }

    /// See [`append`].
    pub fn append(&mut self, path: &[Key], value: &Value) -> Result<(), EditError> {
        let edited = append(&self.text, self.format, path, value, &self.options)?;
        self.take(edited);
        Ok(())
    }

    /// See [`append_unless`]. Says whether something was appended.
    pub fn append_unless(
        &mut self,
        path: &[Key],
        value: &Value,
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<bool, EditError> {
        let edited = append_unless(&self.text, self.format, path, value, &self.options, ours)?;
        Ok(edited.map(|edited| self.take(edited)).is_some())
    }

    /// See [`set`].
    pub fn set(&mut self, path: &[Key], value: &Value) -> Result<(), EditError> {
        let edited = set(&self.text, self.format, path, value, &self.options)?;
        self.take(edited);
        Ok(())
    }

    fn take(&mut self, edited: Edited) {
        self.text = edited.text;
        self.patches.push(edited.patch);
    }
}

/// A file to edit, and the folder where its lock and its record are kept.
#[derive(Debug, Clone)]
pub struct Site {
    pub path: PathBuf,
    pub state: PathBuf,
    pub format: Format,
    pub options: Options,
}

/// The text of a file before and after. `None`: there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub before: Option<String>,
    pub after: Option<String>,
    /// How edits were taken out; [`How::Absent`] when none was.
    pub how: How,
}

impl Change {
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// A unified diff, empty when nothing changes.
    pub fn diff(&self, name: &str) -> String {
        let side = |text: &Option<String>| match text {
            Some(_) => name.to_owned(),
            None => "/dev/null".to_owned(),
        };
        crate::diff::diff(
            self.before.as_deref().unwrap_or_default(),
            self.after.as_deref().unwrap_or_default(),
            &side(&self.before),
            &side(&self.after),
        )
    }
}

/// What is wished for: edits, made on a draft.
pub type Wish<'w> = &'w mut dyn FnMut(&mut Draft) -> Result<(), EditError>;

impl Site {
    /// What [`Self::install`] would do. Writes nothing.
    pub fn preview_install(&self, wish: Wish<'_>) -> Result<Change, FileError> {
        let before = read_text(&self.path)?;
        let draft = self.draft(before.as_deref(), wish)?;
        Ok(installed(before, &draft))
    }

    /// Makes the edits that are wished for, and remembers how to undo them.
    pub fn install(&self, wish: Wish<'_>) -> Result<Change, FileError> {
        self.install_watched(wish, &mut |_, _| Ok(()))
    }

    /// As [`Self::install`], with a witness of every step of every write.
    pub fn install_watched(
        &self,
        wish: Wish<'_>,
        watch: &mut dyn FnMut(&Path, Step) -> std::io::Result<()>,
    ) -> Result<Change, FileError> {
        let lock = Lock::acquire(&self.state, &self.path, PATIENCE)?;
        let target = lock.target();
        let before = read_text(target)?;
        let draft = self.draft(before.as_deref(), wish)?;
        let change = installed(before, &draft);
        if change.is_empty() {
            return Ok(change);
        }
        let mut log = self.log(target, change.before.as_deref())?;
        log.patches.extend(draft.patches);
        log.after = sha256(draft.text.as_bytes());
        log.save(&self.state, watch)?;
        write_watched(target, draft.text.as_bytes(), watch)?;
        Ok(change)
    }

    /// What [`Self::uninstall`] would do. Writes nothing.
    pub fn preview_uninstall(
        &self,
        places: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<Change, FileError> {
        let log = InstallLog::load(&self.state, &self.path)?;
        self.uninstalled(read_text(&self.path)?, log.as_ref(), places, ours)
    }

    /// Takes out what was installed, by its record; then whatever else is ours
    /// in the arrays at `places`, for when the record was lost.
    pub fn uninstall(
        &self,
        places: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<Change, FileError> {
        self.uninstall_watched(places, ours, &mut |_, _| Ok(()))
    }

    /// As [`Self::uninstall`], with a witness of every step of every write.
    pub fn uninstall_watched(
        &self,
        places: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
        watch: Watch<'_>,
    ) -> Result<Change, FileError> {
        let lock = Lock::acquire(&self.state, &self.path, PATIENCE)?;
        let target = lock.target();
        let log = InstallLog::load(&self.state, target)?;
        let change = self.uninstalled(read_text(target)?, log.as_ref(), places, ours)?;
        let folders = log.map(|log| log.folders).unwrap_or_default();
        match &change.after {
            Some(text) if !change.is_empty() => {
                write_watched(target, text.as_bytes(), watch)?;
            }
            Some(_) => {}
            None => remove_created(target, &folders)?,
        }
        InstallLog::forget(&self.state, target)?;
        Ok(change)
    }

    fn draft(&self, before: Option<&str>, wish: Wish<'_>) -> Result<Draft, FileError> {
        let text = before.unwrap_or_default();
        let mut draft = Draft::new(text, self.format, self.options.clone());
        wish(&mut draft).map_err(|error| self.refused(error))?;
        Ok(draft)
    }

    /// The record to go on with: a new one when the file is not the one it speaks of.
    fn log(&self, target: &Path, before: Option<&str>) -> Result<InstallLog, FileError> {
        let known = InstallLog::load(&self.state, target)?;
        let gone = before.is_none();
        if let Some(log) = known.filter(|log| !gone && !log.patches.is_empty()) {
            return Ok(log);
        }
        Ok(InstallLog {
            existed: !gone,
            mode: mode(target),
            before: before.map(|text| sha256(text.as_bytes())),
            folders: missing_folders(target),
            ..InstallLog::new(target)
        })
    }

    fn uninstalled(
        &self,
        before: Option<String>,
        log: Option<&InstallLog>,
        places: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<Change, FileError> {
        let Some(text) = before else {
            return Ok(Change {
                before: None,
                after: None,
                how: How::Absent,
            });
        };
        let patches = log.map(|log| log.patches.as_slice()).unwrap_or_default();
        let undone = undo_all(&text, patches, ours).map_err(|error| self.refused(error))?;
        let (mut rest, mut how) = (undone.text, undone.how);
        for place in places {
            let swept = remove_matching(&rest, self.format, place, ours, 0)
                .map_err(|error| self.refused(error))?;
            if !swept.values.is_empty() {
                rest = swept.text;
                how = How::Structural;
            }
        }
        let made = log.is_some_and(|log| !log.existed);
        let blank = rest.trim_start_matches(BOM).trim().is_empty();
        Ok(Change {
            before: Some(text),
            after: (!(made && blank)).then_some(rest),
            how,
        })
    }

    fn refused(&self, source: EditError) -> FileError {
        FileError::Edit {
            path: self.path.clone(),
            source,
        }
    }
}

fn installed(before: Option<String>, draft: &Draft) -> Change {
    let after = if draft.patches.is_empty() {
        before.clone()
    } else {
        Some(draft.text.clone())
    };
    Change {
        before,
        after,
        how: How::Absent,
    }
}
