//! Deletes state files that are no longer used, in steps of a limited size.
//!
//! Never before an answer: a folder of 100,000 files would take 250 times as
//! long to read as a whole run.

use std::path::Path;
use std::time::Duration;

use crate::config::MANIFEST_CACHE_FOLDER;

/// Cached manifests are deleted after this time.
const CACHED_MANIFEST_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Folders of versions up to 0.1, with one file per event or notice.
const FORMER_FOLDERS: [&str; 2] = ["claims", "told"];

/// Looks at no more than `limit` files in each folder.
pub fn delete_old_files(state: &Path, limit: usize) {
    for name in FORMER_FOLDERS {
        let folder = state.join(name);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.take(limit) {
            let _ = std::fs::remove_file(entry.path());
        }
        // Fails, as it should, if there are more.
        let _ = std::fs::remove_dir(folder);
    }
    let cached = std::fs::read_dir(state.join(MANIFEST_CACHE_FOLDER));
    for entry in cached.into_iter().flatten().flatten().take(limit) {
        let modified = entry.metadata().and_then(|data| data.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > CACHED_MANIFEST_RETENTION) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
