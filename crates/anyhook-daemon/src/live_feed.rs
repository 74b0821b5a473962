//! The newest events, read from the store once for all streams.
//!
//! One task reads what was committed and keeps it in memory. A stream that has seen what
//! came before is served from there; one that resumes further back reads the store until
//! it gets there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhook_store::EventRow;
use anyhook_util::sync::lock;
use tokio::sync::watch;

use crate::app::App;

const BATCH_EVENTS: usize = 500;
const KEPT_EVENTS: usize = 4096;
const KEPT_BYTES: usize = 16 * 1024 * 1024;
/// Wait after a commit, so that a burst of commits is read once.
const COMMIT_BATCH_DELAY: Duration = Duration::from_millis(20);
/// Without a commit notification: another process may have written.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// An event, and its JSON, which is the same for every stream.
#[derive(Debug)]
pub(crate) struct LiveEvent {
    /// Without its record, which no stream sends.
    pub row: EventRow,
    pub json: String,
}

impl LiveEvent {
    pub(crate) fn new(mut row: EventRow) -> Arc<Self> {
        let json = serde_json::to_string(&row.summary).unwrap_or_default();
        row.body = String::new();
        Arc::new(Self { row, json })
    }

    pub(crate) fn seq(&self) -> i64 {
        self.row.summary.seq
    }

    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        self.row.text.len() + 2 * self.json.len()
    }
}

pub(crate) struct LiveFeed {
    window: Mutex<FeedWindow>,
    /// Changes with every new event; `None` until the task has begun.
    newest: watch::Sender<Option<i64>>,
    listeners: watch::Sender<usize>,
}

/// All events with `floor < seq <= newest`.
#[derive(Default)]
struct FeedWindow {
    floor: i64,
    newest: i64,
    events: VecDeque<Arc<LiveEvent>>,
    /// Of all events together.
    bytes: usize,
}

impl Default for LiveFeed {
    fn default() -> Self {
        Self {
            window: Mutex::default(),
            newest: watch::Sender::new(None),
            listeners: watch::Sender::new(0),
        }
    }
}

/// Keeps the feed running until it is dropped.
pub(crate) struct Listener {
    app: App,
    newest: watch::Receiver<Option<i64>>,
}

impl Listener {
    pub(crate) fn new(app: App) -> Self {
        let feed = &app.live_feed;
        let newest = feed.newest.subscribe();
        feed.listeners.send_modify(|count| *count += 1);
        Self { app, newest }
    }

    /// The events after `seq`, and the number up to which nothing is missing; `None` if the
    /// store has to be asked.
    pub(crate) fn after(&self, seq: i64) -> Option<(Vec<Arc<LiveEvent>>, i64)> {
        (*self.newest.borrow())?;
        let window = lock(&self.app.live_feed.window);
        if seq < window.floor {
            return None;
        }
        let start = window.events.partition_point(|event| event.seq() <= seq);
        let events = window.events.range(start..).cloned().collect();
        Some((events, window.newest.max(seq)))
    }

    /// What comes from now on is a change.
    pub(crate) fn mark_seen(&mut self) {
        self.newest.mark_unchanged();
    }

    pub(crate) async fn changed(&mut self) {
        let _ = self.newest.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let listeners = &self.app.live_feed.listeners;
        listeners.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Reads new events while there are listeners, until the daemon stops.
pub(crate) async fn run(app: App) {
    let mut stop = app.stop.subscribe();
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        () = follow(&app) => {}
    }
}

async fn follow(app: &App) {
    let mut commits = app.commits.subscribe();
    let mut listeners = app.live_feed.listeners.subscribe();
    loop {
        // Without listeners nothing is read; the next listener begins at the end.
        app.live_feed.newest.send_replace(None);
        if listeners.wait_for(|count| *count > 0).await.is_err() {
            return;
        }
        let last = loop {
            match app.query_store(|store| store.last_seq()).await {
                Ok(last) => break last,
                Err(_) => tokio::time::sleep(STORE_POLL_INTERVAL).await,
            }
        };
        *lock(&app.live_feed.window) = FeedWindow {
            floor: last,
            newest: last,
            ..FeedWindow::default()
        };
        app.live_feed.newest.send_replace(Some(last));
        let mut last = last;
        while *listeners.borrow() > 0 {
            commits.mark_unchanged();
            let query = app.query_store(move |store| store.after(last, BATCH_EVENTS));
            let batch = query.await.unwrap_or_default();
            let is_full = batch.len() == BATCH_EVENTS;
            if let Some(newest) = batch.last().map(|row| row.summary.seq) {
                last = newest;
                append(app, batch);
            }
            if is_full {
                continue;
            }
            tokio::select! {
                _ = commits.changed() => {}
                _ = listeners.wait_for(|count| *count == 0) => {}
                () = tokio::time::sleep(STORE_POLL_INTERVAL) => {}
            }
            tokio::time::sleep(COMMIT_BATCH_DELAY).await;
        }
    }
}

fn append(app: &App, batch: Vec<EventRow>) {
    let mut window = lock(&app.live_feed.window);
    for row in batch {
        let event = LiveEvent::new(row);
        window.newest = event.seq();
        window.bytes += event.bytes();
        window.events.push_back(event);
        while (window.events.len() > KEPT_EVENTS || window.bytes > KEPT_BYTES)
            && let Some(oldest) = window.events.pop_front()
        {
            window.floor = oldest.seq();
            window.bytes -= oldest.bytes();
        }
    }
    let newest = window.newest;
    drop(window);
    app.live_feed.newest.send_replace(Some(newest));
}
