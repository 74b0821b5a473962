//! The open connections of one listener, and which of them gives way when there are too many.
//!
//! A connection waits while it has not sent a whole request. Waiting costs its other end
//! nothing, so at the limit the one that has waited longest is closed for a new one.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use anyhook_util::sync::lock;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::Notify;

/// A request is handled, or a response is streamed.
const BUSY_TICK: u64 = 0;

pub(crate) struct Connections {
    limit: usize,
    open: Mutex<HashMap<u64, Arc<ConnectionState>>>,
}

/// Orders the beginnings of waits, and numbers the connections.
static NEXT_TICK: AtomicU64 = AtomicU64::new(BUSY_TICK + 1);

fn tick() -> u64 {
    NEXT_TICK.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug)]
struct ConnectionState {
    /// [`BUSY_TICK`], or the tick at which the wait began.
    waiting_since: AtomicU64,
    closed: Notify,
}

/// An open connection, counted until it is dropped.
pub(crate) struct OpenConnection {
    number: u64,
    state: Arc<ConnectionState>,
    all: Arc<Connections>,
}

impl Connections {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            open: Mutex::default(),
        })
    }

    /// Counts a new connection; `None` if there are too many and none of them waits.
    pub(crate) fn open(self: &Arc<Self>) -> Option<OpenConnection> {
        let number = tick();
        let state = Arc::new(ConnectionState {
            waiting_since: AtomicU64::new(number),
            closed: Notify::new(),
        });
        let mut open = lock(&self.open);
        if open.len() >= self.limit && !close_oldest(&mut open) {
            return None;
        }
        open.insert(number, state.clone());
        Some(OpenConnection {
            number,
            state,
            all: self.clone(),
        })
    }

    /// Closes the connection that has waited longest, for example to free its descriptor.
    pub(crate) fn close_oldest(&self) -> bool {
        close_oldest(&mut lock(&self.open))
    }
}

fn close_oldest(open: &mut HashMap<u64, Arc<ConnectionState>>) -> bool {
    let waiting = open.iter().filter_map(|(number, state)| {
        let since = state.waiting_since.load(Ordering::Relaxed);
        (since != BUSY_TICK).then_some((since, *number))
    });
    let oldest = waiting.min().and_then(|(_, number)| open.remove(&number));
    if let Some(state) = &oldest {
        state.closed.notify_one();
    }
    oldest.is_some()
}

impl OpenConnection {
    /// Until the connection must give way to another one.
    pub(crate) async fn closed(&self) {
        self.state.closed.notified().await;
    }

    pub(crate) fn tracker(&self) -> RequestTracker {
        RequestTracker(self.state.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        lock(&self.all.open).remove(&self.number);
    }
}

/// Notices the beginning and the end of a connection's requests.
#[derive(Clone)]
pub(crate) struct RequestTracker(Arc<ConnectionState>);

impl RequestTracker {
    /// The request is here as a whole, or its sender may take its time.
    pub(crate) fn begin(&self) {
        self.0.waiting_since.store(BUSY_TICK, Ordering::Relaxed);
    }

    /// The response is here as a whole.
    pub(crate) fn end(&self) {
        self.0.waiting_since.store(tick(), Ordering::Relaxed);
    }
}

/// A request's body. The request begins when the body has been read to its end.
pub(crate) struct RequestBody {
    incoming: Incoming,
    tracker: RequestTracker,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, tracker: RequestTracker) -> Self {
        if incoming.is_end_stream() {
            tracker.begin();
        }
        Self { incoming, tracker }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        if self.incoming.is_end_stream() || matches!(polled, Poll::Ready(None)) {
            self.tracker.begin();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waiting_gives_way_and_a_busy_one_never() {
        let all = Connections::new(2);
        let busy = all.open().unwrap();
        busy.tracker().begin();
        let waiting = all.open().unwrap();
        let third = all.open().unwrap();
        assert!(!lock(&all.open).contains_key(&waiting.number));
        third.tracker().begin();
        assert!(all.open().is_none(), "both are busy");
        third.tracker().end();
        assert!(all.open().is_some());
        drop(waiting);
        assert_eq!(lock(&all.open).len(), 1);
    }
}
