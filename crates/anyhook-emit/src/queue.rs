//! What waits for a consumer that nobody waits for.
//!
//! Each event is a process of its own, and detached deliveries of two events
//! would race. So they are queued on disk in the order of the events, and at
//! most one process serves a queue at a time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use openhook::stable_id;

use crate::state::{FOLDER, is_current, locked, open, try_lock};

/// A queue that has grown beyond this takes nothing more: its consumer hangs.
const LIMIT: u64 = 16 * 1024 * 1024;

/// A queue of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    items: PathBuf,
}

impl Queue {
    /// The queue of that name under the program's state folder. Both files of
    /// it are removed with the memories of old sessions.
    pub fn new(state: &Path, name: &[&str]) -> Self {
        let name = stable_id(name);
        Self::at(state.join(FOLDER).join(format!("{name}.queue")))
    }

    pub fn at(path: PathBuf) -> Self {
        Self { items: path }
    }

    pub fn path(&self) -> &Path {
        &self.items
    }

    /// Puts a line at the end.
    pub fn push(&self, line: &str) -> io::Result<()> {
        let mut file = self.lock()?;
        if file.seek(SeekFrom::End(0))? > LIMIT {
            return Err(io::Error::other("too much waits for it already"));
        }
        let mut bytes = line.replace('\n', " ").into_bytes();
        bytes.push(b'\n');
        file.write_all(&bytes)
    }

    /// Whether somebody is at work who will see what has been pushed by now.
    pub fn is_served(&self) -> bool {
        matches!(self.turn(), Ok(None))
    }

    /// Hands every line to `each`, until there is none left; leaves that to
    /// whoever is at work already.
    pub fn serve(&self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
        loop {
            let Some(turn) = self.turn()? else {
                return Ok(());
            };
            loop {
                let lines = self.take()?;
                if lines.is_empty() {
                    break;
                }
                lines.lines().for_each(&mut *each);
            }
            drop(turn);
            // Whoever has pushed since our last look saw us at work.
            if std::fs::metadata(&self.items)?.len() == 0 {
                return Ok(());
            }
        }
    }

    fn take(&self) -> io::Result<String> {
        let mut file = self.lock()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        file.set_len(0)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn lock(&self) -> io::Result<File> {
        locked(&self.items)?.ok_or_else(|| io::Error::other("its queue is not to be had"))
    }

    /// The right to serve; none when another has it.
    fn turn(&self) -> io::Result<Option<File>> {
        let path = self.items.with_extension("turn");
        loop {
            let file = open(&path)?;
            if !try_lock(&file) {
                return Ok(None);
            }
            if is_current(&file, &path) {
                return Ok(Some(file));
            }
        }
    }
}
