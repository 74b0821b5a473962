//! The thread that ingests the journal into the store and applies the retention.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhook_store::journal::JournalImporter;
use anyhook_store::{Retention, StoreError};

use crate::app::App;
use crate::archiving::current_retention;

/// Other processes write the journal too, without a notification.
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Under load every call would cause a transaction of its own, and each waits for the disk.
const INGEST_BATCH_DELAY: Duration = Duration::from_millis(25);
const RETENTION_INTERVAL: Duration = Duration::from_secs(10 * 60);
const FAILURE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a stop waits for the thread.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Batches between two measurements of the lag, and two rests.
const BATCHES_PER_ROUND: usize = 4;
/// While there is much to catch up with, the thread rests as long as it works: half a core.
const REST_PER_WORK: u32 = 1;
/// About a tenth of a serving thread's share of a busy core.
#[cfg(target_os = "linux")]
const THREAD_NICENESS: i32 = 10;

/// What ends the thread's wait before its next poll.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WakeReason {
    NewLines,
    Stop,
}

/// Set once the thread runs; its first round needs no wakeup.
pub(crate) type JournalWakeup = OnceLock<SyncSender<WakeReason>>;

/// The running thread. Dropping it ingests what the journal contains now, then stops.
pub(crate) struct JournalIngester {
    wakeup: SyncSender<WakeReason>,
    thread: Option<JoinHandle<()>>,
}

impl JournalIngester {
    pub(crate) fn start(app: App) -> std::io::Result<Self> {
        // One pending wakeup is enough: a round ingests all new lines.
        let (wakeup, wakeups) = sync_channel(1);
        let _ = app.journal_wakeup.set(wakeup.clone());
        let thread = std::thread::Builder::new()
            .name("anyhook-journal".to_owned())
            .spawn(move || ingest_journal(&app, &wakeups))?;
        Ok(Self {
            wakeup,
            thread: Some(thread),
        })
    }
}

impl Drop for JournalIngester {
    fn drop(&mut self) {
        // A thread that hangs in the store reads no wakeup, and is not waited for: the next
        // start continues where it was.
        let begun = Instant::now();
        while self.wakeup.try_send(WakeReason::Stop).is_err() && begun.elapsed() < STOP_TIMEOUT {
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            std::thread::sleep(STOP_POLL_INTERVAL);
        }
        let is_running = || self.thread.as_ref().is_some_and(|it| !it.is_finished());
        while is_running() && begun.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(STOP_POLL_INTERVAL);
        }
    }
}

/// Agents are blocked by the serving threads and not by this one: what it has to store is
/// safe in the journal. Other systems than Linux have priorities of processes only.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::setpriority_process;
        // Without the permission to do so, the priority stays.
        let _ = setpriority_process(Some(rustix::thread::gettid()), THREAD_NICENESS);
    }
}

fn ingest_journal(app: &App, wakeups: &Receiver<WakeReason>) {
    lower_priority();
    let journal = app.config.journal.as_ref();
    let mut importer = journal.map(|it| JournalImporter::new(&it.dir, &it.source));
    let mut housekeeping = Housekeeping::default();
    loop {
        let started = Instant::now();
        let mut poll_delay = JOURNAL_POLL_INTERVAL;
        let mut batch_delay = INGEST_BATCH_DELAY;
        let mut has_more = false;
        let mut failure = None;
        if let Some(importer) = &mut importer {
            match importer.import_batches(&*app.store, BATCHES_PER_ROUND) {
                Ok((done, left)) => {
                    app.metrics.record_ingest(done);
                    app.metrics.record_lag(left);
                    has_more = left > 0;
                }
                Err(error) => failure = Some(error),
            }
        }
        match housekeeping.step(app) {
            Ok(more) => has_more |= more,
            Err(error) => failure = failure.or(Some(error)),
        }
        if failure.is_some() {
            has_more = false;
            poll_delay = FAILURE_RETRY_DELAY;
        }
        app.metrics
            .record_store_state(failure.map(|error| error.to_string()));
        if has_more {
            poll_delay = started.elapsed() * REST_PER_WORK;
            batch_delay = poll_delay;
        }
        // After a pause the first event is ingested at once, those that follow in batches.
        let waited = Instant::now();
        let woken_by = wakeups.recv_timeout(poll_delay);
        let early_by = batch_delay.saturating_sub(waited.elapsed());
        match woken_by {
            Ok(WakeReason::NewLines) => std::thread::sleep(early_by),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(WakeReason::Stop) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // What was answered just now; an older backlog is for the next start.
    let last_words = |mut importer: JournalImporter| {
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT / 2 {
            let (done, left) = importer
                .import_batches(&*app.store, BATCHES_PER_ROUND)
                .ok()?;
            app.metrics.record_ingest(done);
            if left == 0 {
                break;
            }
        }
        Some(())
    };
    importer.and_then(last_words);
}

/// Work that keeps the store small and in this version's layout, in steps of milliseconds
/// between which events are ingested.
#[derive(Default)]
struct Housekeeping {
    last_retention: Option<Instant>,
    /// The number of the last archived event at that time.
    exported_seq: Option<i64>,
    is_retaining: bool,
    is_upgraded: bool,
    is_maintained: bool,
}

impl Housekeeping {
    /// `true` if there is more to do at once.
    fn step(&mut self, app: &App) -> Result<bool, StoreError> {
        if !self.is_upgraded {
            let left = app.store.upgrade_step()?;
            app.metrics.record_upgrade(left);
            self.is_upgraded = left.is_none();
            return Ok(!self.is_upgraded);
        }
        let retention = current_retention(app);
        let last = self.last_retention;
        // What an export has just archived may be deleted now.
        let is_due = last.is_none_or(|last| last.elapsed() >= RETENTION_INTERVAL)
            || retention.exported_seq != self.exported_seq;
        if is_due {
            self.last_retention = Some(Instant::now());
            self.exported_seq = retention.exported_seq;
            self.is_retaining = app.config.retention != Retention::default();
            self.is_maintained = false;
        }
        if self.is_retaining {
            self.is_retaining = app.store.retain_step(&retention)? > 0;
            return Ok(true);
        }
        if !self.is_maintained {
            self.is_maintained = !app.store.maintain_step()?;
        }
        Ok(!self.is_maintained)
    }
}
