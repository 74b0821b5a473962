//! Folders that were made for our files, when several of them share one: the
//! record of the first knows the folder, and the last has to remove it.

use std::path::{Path, PathBuf};

use anyhook_edit::{InstallLog, read_text, write_atomic};

/// The folders that were made for a target's files.
pub fn made(records: &Path, target: &Path) -> Vec<PathBuf> {
    let target = anyhook_edit::real_path(target).unwrap_or_else(|_| target.to_owned());
    let logs = InstallLog::list(records).unwrap_or_default();
    logs.into_iter()
        .filter(|log| log.path == target || log.path.parent() == Some(&target))
        .flat_map(|log| log.folders)
        .collect()
}

/// Removes those that are empty, and those of earlier calls; remembers the rest.
/// Nothing depends on it: a folder that stays is no failure.
pub fn sweep(records: &Path, made: Vec<PathBuf>) {
    let list = records.join("folders");
    let known = read_text(&list).ok().flatten().unwrap_or_default();
    let mut folders: Vec<PathBuf> = known.lines().map(PathBuf::from).chain(made).collect();
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
