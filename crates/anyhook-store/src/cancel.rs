//! Cancels a query whose caller has gone.
//!
//! A query runs on the thread of its caller. [`QueryCancel::run`] names the cancellation of that
//! thread's queries, and each database asks [`QueryCancel::current`] how to end them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anyhook_util::sync::lock;

thread_local! {
    static CURRENT: RefCell<Option<QueryCancel>> = const { RefCell::new(None) };
}

type CancelFn = Box<dyn FnOnce() + Send>;

/// Shared by whoever asks and whoever ends the question.
#[derive(Clone, Default)]
pub struct QueryCancel(Arc<CancelState>);

#[derive(Default)]
struct CancelState {
    is_cancelled: AtomicBool,
    on_cancel: Mutex<Option<CancelFn>>,
}

impl QueryCancel {
    /// Runs `query`; a [`QueryCancel::cancel`] from another thread ends it with an error.
    pub fn run<T>(&self, query: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(self.clone()));
        let done = query();
        CURRENT.set(before);
        done
    }

    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        let on_cancel = lock(&self.0.on_cancel).take();
        if let Some(on_cancel) = on_cancel {
            on_cancel();
        }
    }

    pub(crate) fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Whether the queries of this thread should end.
    pub(crate) fn is_current_cancelled() -> bool {
        CURRENT.with_borrow(|current| {
            current
                .as_ref()
                .is_some_and(|cancel| cancel.0.is_cancelled.load(Ordering::Relaxed))
        })
    }

    /// Calls `on_cancel` when this is cancelled, or at once if it is already.
    pub(crate) fn set_action(&self, on_cancel: CancelFn) {
        *lock(&self.0.on_cancel) = Some(on_cancel);
        if self.0.is_cancelled.load(Ordering::SeqCst) {
            self.cancel();
        }
    }

    pub(crate) fn clear_action(&self) {
        *lock(&self.0.on_cancel) = None;
    }
}
