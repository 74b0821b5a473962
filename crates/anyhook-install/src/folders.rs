//! Folders created for generated files. Several files may share one: the record
//! of the first file names the folder, and removing the last one removes it.

use std::path::{Path, PathBuf};

use anyhook_edit::{InstallLog, read_text, write_atomic};

/// The folders that were created for a target's files.
pub(crate) fn created_folders(records: &Path, target: &Path) -> Vec<PathBuf> {
    let target = anyhook_edit::real_path(target).unwrap_or_else(|_| target.to_owned());
    let logs = InstallLog::list(records).unwrap_or_default();
    logs.into_iter()
        .filter(|log| log.path == target || log.path.parent() == Some(&target))
        .flat_map(|log| log.folders)
        .collect()
}

/// Removes those that are empty, and those left by earlier calls; remembers the
/// rest. A folder that cannot be removed is not an error.
pub(crate) fn remove_empty(records: &Path, created: Vec<PathBuf>) {
    let list = records.join("folders");
    let known = read_text(&list).ok().flatten().unwrap_or_default();
    let mut folders: Vec<PathBuf> = known.lines().map(PathBuf::from).chain(created).collect();
    folders.sort();
    folders.dedup();
    // The inner ones first.
    let mut left: Vec<PathBuf> = Vec::new();
    for folder in folders.into_iter().rev() {
        if std::fs::remove_dir(&folder).is_err() && folder.exists() {
            left.push(folder);
        }
    }
    if left.is_empty() {
        let _not_there = std::fs::remove_file(&list);
        return;
    }
    let text: Vec<String> = left
        .iter()
        .rev()
        .map(|folder| folder.to_string_lossy().into_owned())
        .collect();
    let _best_effort = write_atomic(&list, text.join("\n").as_bytes());
}
