//! A machine of values: a clock, files and session memories that a test sets.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use anyhook_run::openhook::{FileTail, Machine, SessionKey, SessionMemory};

/// Its clock advances by a millisecond at each call, and it knows only the files
/// that a test has written or removed.
#[derive(Debug, Default)]
pub(crate) struct FakeMachine {
    now: Cell<i64>,
    files: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
    sessions: RefCell<BTreeMap<(String, String), SessionMemory>>,
}

impl FakeMachine {
    pub(crate) fn starting_at(now_ms: i64) -> Self {
        Self {
            now: Cell::new(now_ms),
            ..Self::default()
        }
    }

    pub(crate) fn set_now(&self, now_ms: i64) {
        self.now.set(now_ms);
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let content = Some(content.as_bytes().to_vec());
        self.files.borrow_mut().insert(path.to_owned(), content);
    }

    /// From now on the file is known to be absent.
    pub(crate) fn remove(&self, path: &str) {
        self.files.borrow_mut().insert(path.to_owned(), None);
    }
}

impl Machine for FakeMachine {
    fn now_ms(&self) -> i64 {
        let now = self.now.get();
        self.now.set(now.saturating_add(1));
        now
    }

    fn exists(&self, path: &str) -> Option<bool> {
        self.files.borrow().get(path).map(Option::is_some)
    }

    fn read_tail(&self, path: &str, limit: usize) -> Option<FileTail> {
        let files = self.files.borrow();
        let content = files.get(path)?.as_ref()?;
        let from = content.len().saturating_sub(limit);
        Some(FileTail {
            bytes: content.get(from..).unwrap_or_default().to_vec(),
            whole: from == 0,
        })
    }

    fn remember(&self, session: SessionKey<'_>, change: &mut dyn FnMut(&mut SessionMemory)) {
        let key = (session.source.to_owned(), session.id.to_owned());
        change(self.sessions.borrow_mut().entry(key).or_default());
    }
}
