//! Queue of deliveries to asynchronous consumers.
//!
//! Each event is a separate process, and detached deliveries of two events would
//! race. So they are queued on disk in the order of the events, and at most one
//! process serves a queue at a time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhook_util::fs::{is_current, try_lock};
use openhook::stable_id;

use super::local_machine::{FOLDER_NAME, open, open_shared};

/// A larger queue accepts nothing more: its consumer hangs.
const MAX_QUEUE_BYTES: u64 = 16 * 1024 * 1024;

/// A queue of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    items: PathBuf,
}

impl Queue {
    /// The queue of that name in the state folder. Its two files are removed with
    /// the state of old sessions.
    pub fn new(state: &Path, name: &[&str]) -> Self {
        let name = stable_id(name);
        Self::at(state.join(FOLDER_NAME).join(format!("{name}.queue")))
    }

    pub fn at(path: PathBuf) -> Self {
        Self { items: path }
    }

    pub fn path(&self) -> &Path {
        &self.items
    }

    /// Appends a line.
    pub fn push(&self, line: &str) -> io::Result<()> {
        let mut file = self.lock()?;
        if file.seek(SeekFrom::End(0))? > MAX_QUEUE_BYTES {
            return Err(io::Error::other("its queue is full"));
        }
        let mut bytes = line.replace('\n', " ").into_bytes();
        bytes.push(b'\n');
        file.write_all(&bytes)
    }

    /// Whether another process serves the queue and will see what was pushed.
    pub fn is_served(&self) -> bool {
        matches!(self.serving_lock(), Ok(None))
    }

    /// Hands every line to `each` until the queue is empty, unless another process
    /// serves it already.
    pub fn serve(&self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
        loop {
            let Some(serving) = self.serving_lock()? else {
                return Ok(());
            };
            loop {
                let lines = self.take_all()?;
                if lines.is_empty() {
                    break;
                }
                lines.lines().for_each(&mut *each);
            }
            drop(serving);
            // A process that has pushed since the last check saw the queue served.
            if std::fs::metadata(&self.items)?.len() == 0 {
                return Ok(());
            }
        }
    }

    fn take_all(&self) -> io::Result<String> {
        let mut file = self.lock()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        file.set_len(0)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn lock(&self) -> io::Result<File> {
        open_shared(&self.items)?.ok_or_else(|| io::Error::other("its queue is locked"))
    }

    /// The lock for serving; `None` if another process has it.
    fn serving_lock(&self) -> io::Result<Option<File>> {
        let path = self.items.with_extension("turn");
        loop {
            let file = open(&path)?;
            if try_lock(&file).is_err() {
                return Ok(None);
            }
            if is_current(&file, &path) {
                return Ok(Some(file));
            }
        }
    }
}
