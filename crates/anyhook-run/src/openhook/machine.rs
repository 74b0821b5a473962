//! What the mapping needs from the machine: the time, files, and the memory of
//! earlier events of the session.

use super::session_memory::SessionMemory;

/// A session of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey<'a> {
    pub source: &'a str,
    pub id: &'a str,
}

/// The end of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTail {
    pub bytes: Vec<u8>,
    /// The bytes are the whole file.
    pub whole: bool,
}

/// The machine, as far as envelopes need it. Every answer may be missing;
/// envelopes then contain less.
pub trait Machine {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Whether a path exists; `None` if that is unknown.
    fn exists(&self, path: &str) -> Option<bool>;

    /// The last bytes of a regular file, at most `limit`.
    fn read_tail(&self, path: &str, limit: usize) -> Option<FileTail>;

    /// Calls `change` once with the memory of the session, exclusively. Without a
    /// stored memory it gets an empty one.
    fn remember(&self, session: SessionKey<'_>, change: &mut dyn FnMut(&mut SessionMemory));
}
