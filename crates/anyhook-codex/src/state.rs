//! Which bridges run now: a small file for each, so that others can see them.
//!
//! Beside the file `<pid>.json` lies `<pid>.lock`, locked as long as its process
//! lives. So what a killed one has left behind is told from what runs, even when
//! its process id is somebody else's by now, and the next look clears it away.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Below the state folder.
const FOLDER: &str = "codex";

/// A bridge to an app-server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub pid: u32,
    /// `ws://…` or `unix://…`; `stdio:` and the program for a proxy.
    pub url: String,
    /// What the server says of itself; absent as long as there is no connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// RFC 3339: since when it has been so.
    pub since: String,
}

/// This process's entry; it goes with the value.
#[derive(Debug)]
pub struct Entry {
    file: PathBuf,
    lock: PathBuf,
    url: String,
    /// Held open for its lock.
    _locked: File,
}

impl Entry {
    pub fn new(state: &Path, url: impl Into<String>) -> io::Result<Self> {
        let folder = state.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let pid = std::process::id();
        let lock = folder.join(format!("{pid}.lock"));
        let locked = locked(&lock)?;
        let entry = Self {
            file: folder.join(format!("{pid}.json")),
            lock,
            url: url.into(),
            _locked: locked,
        };
        entry.tell(None)?;
        Ok(entry)
    }

    /// Writes down how it is now.
    pub fn tell(&self, server: Option<&str>) -> io::Result<()> {
        let running = Running {
            pid: std::process::id(),
            url: self.url.clone(),
            server: server.map(str::to_owned),
            since: format!("{:.3}", jiff::Timestamp::now()),
        };
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, serde_json::to_vec(&running)?)?;
        fs::rename(fresh, &self.file)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        for path in [&self.file, &self.lock] {
            let _ = fs::remove_file(path);
        }
    }
}

/// The bridges that run now, in the order of their process ids.
pub fn running(state: &Path) -> Vec<Running> {
    let entries = fs::read_dir(state.join(FOLDER)).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<Running> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .filter_map(|path| alive(&path))
        .collect();
    found.sort_by_key(|running| running.pid);
    found
}

/// Reads an entry whose process lives; clears away any other.
fn alive(path: &Path) -> Option<Running> {
    let lock = path.with_extension("lock");
    if let Ok(free) = locked(&lock) {
        drop(free);
        for path in [path, &lock] {
            let _ = fs::remove_file(path);
        }
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Opens a file that only one process has at a time.
#[cfg(unix)]
fn locked(path: &Path) -> io::Result<File> {
    use rustix::fs::{FlockOperation, flock};
    let file = File::create(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

#[cfg(windows)]
fn locked(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    options.share_mode(0).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_living_are_listed() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(running(state.path()), []);
        let entry = Entry::new(state.path(), "ws://127.0.0.1:1").unwrap();
        // Of a process that was killed.
        let left = state.path().join("codex/7.json");
        fs::write(
            &left,
            r#"{"pid":7,"url":"x","since":"2026-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        fs::write(left.with_extension("lock"), "").unwrap();

        let [found] = running(state.path()).try_into().unwrap();
        assert_eq!((found.pid, found.server), (std::process::id(), None));
        assert!(!left.exists() && !left.with_extension("lock").exists());

        entry.tell(Some("codex/1")).unwrap();
        let [found] = running(state.path()).try_into().unwrap();
        assert_eq!(found.server.as_deref(), Some("codex/1"));
        drop(entry);
        assert_eq!(running(state.path()), []);
        assert_eq!(fs::read_dir(state.path().join("codex")).unwrap().count(), 0);
    }
}
