//! Edits of a file from reading to writing, under its lock and with its record.
//!
//! The record is written before the file: a process that dies in between leaves
//! a record of an edit that was not made, which is harmless to undo, instead of
//! an edit without a record.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_model::Format;
use anyhook_util::hash::sha256;
use serde_json::Value;

use crate::edit::{EditOptions, remove_matching_in};
use crate::edited_document::EditedDocument;
use crate::error::EditError;
use crate::file::{
    FileError, WriteObserver, missing_folders, permission_bits, read_text, remove_created,
    write_observed,
};
use crate::install_log::InstallLog;
use crate::lock::FileLock;
use crate::patch::{EditAction, Patch};
use crate::path::Key;
use crate::removal::{Removal, put_back};
use crate::text::BOM;
use crate::undo::{UndoMethod, undo_all};

/// How long to wait for another process that edits the same file.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A text, and the edits made to it one after another.
#[derive(Debug, Clone)]
pub struct TextEditor {
    document: EditedDocument,
    options: EditOptions,
    patches: Vec<Patch>,
}

impl TextEditor {
    pub fn new(text: impl Into<String>, format: Format, options: EditOptions) -> Self {
        Self {
            document: EditedDocument::new(text.into(), format),
            options,
            patches: Vec::new(),
        }
    }

    /// The text so far, which is not yet parsed as a whole.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// The edits so far, oldest first.
    pub fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// The value at `path`.
    pub fn get(&mut self, path: &[Key]) -> Result<Option<Value>, EditError> {
        self.document.get(path)
    }

    /// Appends `value` to the array at `path`, which is created if it is missing.
    pub fn append(&mut self, path: &[Key], value: &Value) -> Result<(), EditError> {
        self.edit(EditAction::Append, path, value)
    }

    /// As [`Self::append`], but does nothing if `ours` recognizes an element of
    /// the array. Returns whether something was appended.
    pub fn append_unless(
        &mut self,
        path: &[Key],
        value: &Value,
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<bool, EditError> {
        if let Some(Value::Array(items)) = self.get(path)?
            && items.iter().any(ours)
        {
            return Ok(false);
        }
        self.append(path, value).map(|()| true)
    }

    /// Appends those of `values` that the array at `path` does not have yet, in one
    /// step. It is not recorded: for files that are never undone.
    pub fn append_missing(&mut self, path: &[Key], values: &[Value]) -> Result<(), EditError> {
        let existing = self.get(path)?;
        let existing = existing.as_ref().and_then(Value::as_array);
        let mut known: HashSet<String> = existing.into_iter().flatten().map(in_order).collect();
        let values = values.iter().filter(|value| known.insert(in_order(value)));
        let values: Vec<Value> = values.cloned().collect();
        self.document.append_all(path, &values, &self.options)
    }

    /// Adds a key that does not exist yet.
    pub fn set(&mut self, path: &[Key], value: &Value) -> Result<(), EditError> {
        self.edit(EditAction::Set, path, value)
    }

    /// The text, after it was parsed again and found to have the planned content.
    pub fn into_checked_text(self) -> Result<String, EditError> {
        self.document.into_checked_text()
    }

    fn edit(&mut self, action: EditAction, path: &[Key], value: &Value) -> Result<(), EditError> {
        let patch = self.document.edit(action, path, value, &self.options)?;
        self.patches.push(patch);
        Ok(())
    }
}

/// A value as text that is the same whatever the order of its keys.
fn in_order(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_order).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let mut members: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", in_order(value)))
                .collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// A file to edit, and the folder for its lock and its record.
#[derive(Debug, Clone)]
pub struct EditableFile {
    pub path: PathBuf,
    pub state: PathBuf,
    pub format: Format,
    pub options: EditOptions,
}

/// The text of a file before and after. `None`: the file does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentChange {
    pub before: Option<String>,
    pub after: Option<String>,
    /// How edits were undone; [`UndoMethod::Absent`] if none was.
    pub method: UndoMethod,
}

impl ContentChange {
    /// A change that undoes no recorded edit.
    pub fn written(before: Option<String>, after: Option<String>) -> Self {
        Self {
            before,
            after,
            method: UndoMethod::Absent,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// How many lines are added and removed.
    pub fn line_counts(&self) -> (usize, usize) {
        let diff = self.diff("file");
        let count = |mark: char| {
            let lines = diff.lines().skip(2);
            lines.filter(|line| line.starts_with(mark)).count()
        };
        (count('+'), count('-'))
    }

    /// A unified diff, empty if nothing changes.
    pub fn diff(&self, name: &str) -> String {
        let side = |text: &Option<String>| text.as_ref().map_or("/dev/null", |_| name);
        crate::diff::diff(
            self.before.as_deref().unwrap_or_default(),
            self.after.as_deref().unwrap_or_default(),
            side(&self.before),
            side(&self.after),
        )
    }
}

/// Makes the requested edits.
pub type EditFn<'f> = &'f mut dyn FnMut(&mut TextEditor) -> Result<(), EditError>;

/// Takes elements out of a text; it gets those that are out already.
pub type TakeOutFn<'f> = &'f dyn Fn(&str, &[Removal]) -> Result<(String, Vec<Removal>), EditError>;

/// How a file is edited again.
pub struct Reinstall<'f> {
    /// The arrays that may contain our elements, and how to recognize these.
    pub array_paths: &'f [Vec<Key>],
    pub ours: &'f dyn Fn(&Value) -> bool,
    pub take_out: TakeOutFn<'f>,
    pub edits: EditFn<'f>,
}

/// A file as it is without our edits, and what is taken out of it.
struct OriginalFile {
    text: Option<String>,
    removals: Vec<Removal>,
}

impl EditableFile {
    /// Makes the edits, and records how to undo them.
    pub fn install(&self, edits: EditFn<'_>) -> Result<ContentChange, FileError> {
        self.install_observed(edits, &mut |_, _| Ok(()))
    }

    /// As [`Self::install`], with an observer of every step of every write.
    pub fn install_observed(
        &self,
        edits: EditFn<'_>,
        observer: WriteObserver<'_>,
    ) -> Result<ContentChange, FileError> {
        let lock = FileLock::acquire(&self.state, &self.path, LOCK_TIMEOUT)?;
        let target = lock.target();
        let before = read_text(target)?;
        let (after, patches) = self.edited_text(before.as_deref(), edits)?;
        if patches.is_empty() || before == after {
            return Ok(ContentChange::written(before.clone(), before));
        }
        let text = after.as_deref().unwrap_or_default().as_bytes();
        let mut log = self.load_or_create_log(target, before.as_deref())?;
        log.patches.extend(patches);
        log.after = sha256(text);
        log.save(&self.state, observer)?;
        write_observed(target, text, observer)?;
        Ok(ContentChange::written(before, after))
    }

    /// What [`Self::reinstall`] would do. Writes nothing.
    pub fn preview_reinstall(&self, plan: &mut Reinstall<'_>) -> Result<ContentChange, FileError> {
        let log = InstallLog::load(&self.state, &self.path)?;
        let before = read_text(&self.path)?;
        let (_, after, _) = self.plan_reinstall(before.clone(), log.as_ref(), plan)?;
        Ok(ContentChange::written(before, after))
    }

    /// Undoes all edits, takes elements out, and makes the edits, in one write.
    pub fn reinstall(&self, plan: &mut Reinstall<'_>) -> Result<ContentChange, FileError> {
        let lock = FileLock::acquire(&self.state, &self.path, LOCK_TIMEOUT)?;
        let target = lock.target();
        let log = InstallLog::load(&self.state, target)?;
        let before = read_text(target)?;
        let (original, after, patches) = self.plan_reinstall(before.clone(), log.as_ref(), plan)?;
        if before == after {
            return Ok(ContentChange::written(before, after));
        }
        let text = after.as_deref().unwrap_or_default().as_bytes();
        let mut log = match log {
            Some(log) if before.is_some() => log,
            _ => self.load_or_create_log(target, before.as_deref())?,
        };
        log.before = original.text.map(|text| sha256(text.as_bytes()));
        log.removals = original.removals;
        log.patches = patches;
        log.after = sha256(text);
        log.save(&self.state, &mut |_, _| Ok(()))?;
        write_observed(target, text, &mut |_, _| Ok(()))?;
        Ok(ContentChange::written(before, after))
    }

    /// The file without our edits and what is taken out of it; the text with them.
    fn plan_reinstall(
        &self,
        before: Option<String>,
        log: Option<&InstallLog>,
        plan: &mut Reinstall<'_>,
    ) -> Result<(OriginalFile, Option<String>, Vec<Patch>), FileError> {
        let original = self.plan_uninstall(before, log, plan.array_paths, plan.ours)?;
        let known = log.map(|log| log.removals.as_slice()).unwrap_or_default();
        let original = original.after;
        let (rest, removals) = match &original {
            None => (None, Vec::new()),
            Some(text) => {
                let taken = (plan.take_out)(text, known).map_err(|error| self.edit_error(error))?;
                (Some(taken.0), taken.1)
            }
        };
        let (after, patches) = self.edited_text(rest.as_deref(), plan.edits)?;
        let original = OriginalFile {
            text: original,
            removals,
        };
        Ok((original, after, patches))
    }

    /// What [`Self::uninstall`] would do. Writes nothing.
    pub fn preview_uninstall(
        &self,
        array_paths: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<ContentChange, FileError> {
        let log = InstallLog::load(&self.state, &self.path)?;
        self.plan_uninstall(read_text(&self.path)?, log.as_ref(), array_paths, ours)
    }

    /// Undoes the recorded edits; then removes whatever else `ours` recognizes in
    /// the arrays at `array_paths`, in case the record was lost.
    pub fn uninstall(
        &self,
        array_paths: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<ContentChange, FileError> {
        self.uninstall_observed(array_paths, ours, &mut |_, _| Ok(()))
    }

    /// As [`Self::uninstall`], with an observer of every step of every write.
    pub fn uninstall_observed(
        &self,
        array_paths: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
        observer: WriteObserver<'_>,
    ) -> Result<ContentChange, FileError> {
        let lock = FileLock::acquire(&self.state, &self.path, LOCK_TIMEOUT)?;
        let target = lock.target();
        let log = InstallLog::load(&self.state, target)?;
        let change = self.plan_uninstall(read_text(target)?, log.as_ref(), array_paths, ours)?;
        let folders = log.map(|log| log.folders).unwrap_or_default();
        match &change.after {
            Some(text) if !change.is_empty() => {
                write_observed(target, text.as_bytes(), observer)?;
            }
            Some(_) => {}
            None => remove_created(target, &folders)?,
        }
        InstallLog::forget(&self.state, target)?;
        Ok(change)
    }

    /// A text after the edits, and their records; `before` itself if there are none.
    pub fn edited_text(
        &self,
        before: Option<&str>,
        edits: EditFn<'_>,
    ) -> Result<(Option<String>, Vec<Patch>), FileError> {
        let text = before.unwrap_or_default();
        let mut editor = TextEditor::new(text, self.format, self.options.clone());
        edits(&mut editor).map_err(|error| self.edit_error(error))?;
        let patches = std::mem::take(&mut editor.patches);
        if patches.is_empty() {
            return Ok((before.map(str::to_owned), patches));
        }
        let text = editor.into_checked_text();
        Ok((Some(text.map_err(|error| self.edit_error(error))?), patches))
    }

    /// The record to extend: a new one if the file is gone or has no recorded edits.
    fn load_or_create_log(
        &self,
        target: &Path,
        before: Option<&str>,
    ) -> Result<InstallLog, FileError> {
        let known = InstallLog::load(&self.state, target)?;
        let gone = before.is_none();
        if let Some(log) = known.filter(|log| !gone && log.has_edits()) {
            return Ok(log);
        }
        Ok(InstallLog {
            existed: !gone,
            mode: permission_bits(target),
            before: before.map(|text| sha256(text.as_bytes())),
            folders: missing_folders(target),
            ..InstallLog::new(target)
        })
    }

    fn plan_uninstall(
        &self,
        before: Option<String>,
        log: Option<&InstallLog>,
        array_paths: &[Vec<Key>],
        ours: &dyn Fn(&Value) -> bool,
    ) -> Result<ContentChange, FileError> {
        let Some(text) = before else {
            return Ok(ContentChange::written(None, None));
        };
        let patches = log.map(|log| log.patches.as_slice()).unwrap_or_default();
        let undone = undo_all(&text, patches, ours).map_err(|error| self.edit_error(error))?;
        let (mut rest, mut method) = (undone.text, undone.method);
        let swept = remove_matching_in(&rest, self.format, array_paths, ours)
            .map_err(|error| self.edit_error(error))?;
        if !swept.values.is_empty() {
            rest = swept.text;
            method = UndoMethod::Structural;
        }
        let removals = log.map(|log| log.removals.as_slice()).unwrap_or_default();
        let restored = put_back(&rest, removals, &self.options);
        let restored = restored.map_err(|error| self.edit_error(error))?;
        (rest, method) = (restored.text, method.max(restored.method));
        let created = log.is_some_and(|log| !log.existed);
        let blank = rest.trim_start_matches(BOM).trim().is_empty();
        Ok(ContentChange {
            before: Some(text),
            after: (!(created && blank)).then_some(rest),
            method,
        })
    }

    fn edit_error(&self, source: EditError) -> FileError {
        FileError::Edit {
            path: self.path.clone(),
            source,
        }
    }
}
