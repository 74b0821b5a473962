//! Lists the running bridges: a small file for each.
//!
//! Next to the file `<pid>.json` is `<pid>.lock`, locked as long as its process
//! lives. So the files of a killed process are recognized even when its process id
//! is in use again, and the next listing removes them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhook_util::fs::{create_private_dir, private_file_options, replace};
use anyhook_util::time::rfc3339;
use serde::{Deserialize, Serialize};

/// Below the state folder.
const FOLDER_NAME: &str = "codex";

/// A bridge to an app-server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningBridge {
    pub pid: u32,
    /// `ws://…` or `unix://…`; `stdio:` and the program for a proxy.
    pub url: String,
    /// The server's own name; absent while there is no connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// RFC 3339: the time of the last change.
    pub since: String,
}

/// This process's entry, removed when dropped.
#[derive(Debug)]
pub struct BridgeEntry {
    file: PathBuf,
    url: String,
    /// Held open for its lock.
    _locked: File,
}

impl BridgeEntry {
    pub fn new(state: &Path, url: impl Into<String>) -> io::Result<Self> {
        let folder = state.join(FOLDER_NAME);
        create_private_dir(&folder)?;
        let file = folder.join(format!("{}.json", std::process::id()));
        let entry = Self {
            _locked: lock_file(&file.with_extension("lock"))?,
            file,
            url: url.into(),
        };
        entry.set_server(None)?;
        Ok(entry)
    }

    pub fn set_server(&self, server: Option<&str>) -> io::Result<()> {
        let running = RunningBridge {
            pid: std::process::id(),
            url: self.url.clone(),
            server: server.map(str::to_owned),
            since: rfc3339(jiff::Timestamp::now()),
        };
        replace(&self.file, &serde_json::to_vec(&running)?)
    }
}

impl Drop for BridgeEntry {
    fn drop(&mut self) {
        remove_entry(&self.file);
    }
}

fn remove_entry(file: &Path) {
    for path in [file, &file.with_extension("lock")] {
        let _ = fs::remove_file(path);
    }
}

/// The running bridges, in the order of their process ids.
pub fn running_bridges(state: &Path) -> Vec<RunningBridge> {
    let entries = fs::read_dir(state.join(FOLDER_NAME)).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<RunningBridge> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .filter_map(|path| live_entry(&path))
        .collect();
    found.sort_by_key(|running| running.pid);
    found
}

/// An entry whose process lives; removes any other.
fn live_entry(path: &Path) -> Option<RunningBridge> {
    if let Ok(free) = lock_file(&path.with_extension("lock")) {
        drop(free);
        remove_entry(path);
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Opens and locks a file; fails if another process has locked it.
fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = private_file_options();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    anyhook_util::fs::try_lock(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_processes_are_listed() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(running_bridges(state.path()), []);
        let entry = BridgeEntry::new(state.path(), "ws://127.0.0.1:1").unwrap();
        // Of a process that was killed.
        let left = state.path().join("codex/7.json");
        fs::write(
            &left,
            r#"{"pid":7,"url":"x","since":"2026-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        fs::write(left.with_extension("lock"), "").unwrap();

        let [found] = running_bridges(state.path()).try_into().unwrap();
        assert_eq!((found.pid, found.server), (std::process::id(), None));
        assert!(!left.exists() && !left.with_extension("lock").exists());

        entry.set_server(Some("codex/1")).unwrap();
        let [found] = running_bridges(state.path()).try_into().unwrap();
        assert_eq!(found.server.as_deref(), Some("codex/1"));
        drop(entry);
        assert_eq!(running_bridges(state.path()), []);
        assert_eq!(fs::read_dir(state.path().join("codex")).unwrap().count(), 0);
    }
}
