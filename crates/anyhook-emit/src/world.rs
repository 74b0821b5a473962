//! What the mapping asks of the machine: the time, files, and what earlier
//! events of the session left behind.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::memory::Memory;

/// A session of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    pub source: &'a str,
    pub id: &'a str,
}

/// The end of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    pub bytes: Vec<u8>,
    /// Nothing of the file is left out.
    pub whole: bool,
}

impl Tail {
    /// The last `limit` bytes of some content.
    pub fn of(content: &[u8], limit: usize) -> Self {
        let from = content.len().saturating_sub(limit);
        Self {
            bytes: content.get(from..).unwrap_or_default().to_vec(),
            whole: from == 0,
        }
    }
}

/// The machine, as far as envelopes need it. Every answer may be missing;
/// envelopes then say less.
pub trait World {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Whether there is something at a path. None when that cannot be known.
    fn exists(&self, path: &str) -> Option<bool>;

    /// The last bytes of a regular file, at most `limit`.
    fn read_tail(&self, path: &str, limit: usize) -> Option<Tail>;

    /// Calls `change` once, with what is remembered of the session; nobody else
    /// has the same memory meanwhile. Without a memory it is an empty one.
    fn remember(&self, session: Session<'_>, change: &mut dyn FnMut(&mut Memory));
}

/// A world of values: for tests, and for replaying recorded events elsewhere.
///
/// Its clock advances by a millisecond at each look, and it knows nothing of
/// files that it was not told of.
#[derive(Debug, Default)]
pub struct PureWorld {
    now: Cell<i64>,
    files: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
    sessions: RefCell<BTreeMap<(String, String), Memory>>,
}

impl PureWorld {
    pub fn at(now_ms: i64) -> Self {
        Self {
            now: Cell::new(now_ms),
            ..Self::default()
        }
    }

    pub fn set_now(&self, now_ms: i64) {
        self.now.set(now_ms);
    }

    pub fn write(&self, path: &str, content: &str) {
        let content = Some(content.as_bytes().to_vec());
        self.files.borrow_mut().insert(path.to_owned(), content);
    }

    /// From now on it is known that there is no such file.
    pub fn remove(&self, path: &str) {
        self.files.borrow_mut().insert(path.to_owned(), None);
    }
}

impl World for PureWorld {
    fn now_ms(&self) -> i64 {
        let now = self.now.get();
        self.now.set(now.saturating_add(1));
        now
    }

    fn exists(&self, path: &str) -> Option<bool> {
        self.files.borrow().get(path).map(Option::is_some)
    }

    fn read_tail(&self, path: &str, limit: usize) -> Option<Tail> {
        let files = self.files.borrow();
        Some(Tail::of(files.get(path)?.as_ref()?, limit))
    }

    fn remember(&self, session: Session<'_>, change: &mut dyn FnMut(&mut Memory)) {
        let key = (session.source.to_owned(), session.id.to_owned());
        change(self.sessions.borrow_mut().entry(key).or_default());
    }
}
