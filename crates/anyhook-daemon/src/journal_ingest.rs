//! The thread that ingests the journal into the store and applies the retention.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhook_store::Retention;
use anyhook_store::journal::JournalImporter;

use crate::app::App;

/// Other processes write the journal too, without a notification.
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Under load every call would cause a transaction of its own, and each waits for the disk.
const INGEST_BATCH_DELAY: Duration = Duration::from_millis(25);
const RETENTION_INTERVAL: Duration = Duration::from_secs(10 * 60);
const FAILURE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a stop waits for the thread.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Batches between two measurements of the lag.
const BATCHES_PER_ROUND: usize = 16;
/// Beyond this lag calls are delayed until the store catches up: the journal deletes its
/// oldest files, and what the store has not ingested by then is lost to it.
const MAX_STORE_LAG_BYTES: u64 = 128 << 20;
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

/// The part of the lag that grew while the daemon ran. What was written while it was away
/// is not the fault of the calls that come now.
#[derive(Debug, Default)]
struct GrownLag {
    /// The smallest lag since the store began to answer.
    smallest: Option<u64>,
}

impl GrownLag {
    fn update(&mut self, lag_bytes: u64) -> u64 {
        let smallest = self.smallest.map_or(lag_bytes, |it| it.min(lag_bytes));
        self.smallest = Some(smallest);
        lag_bytes - smallest
    }
}

/// How long a call waits when the store has fallen behind the journal by this many bytes.
pub(crate) fn call_delay(lag_bytes: u64) -> Option<Duration> {
    let over = lag_bytes
        .checked_sub(MAX_STORE_LAG_BYTES)
        .filter(|over| *over > 0)?;
    Some(Duration::from_millis((over >> 20).clamp(1, 250)))
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
    let retention = app.config.retention;
    let journal = app.config.journal.as_ref();
    let mut importer = journal.map(|it| JournalImporter::new(&it.dir, &it.source));
    let mut last_retention: Option<Instant> = None;
    let mut grown_lag = GrownLag::default();
    loop {
        let started = Instant::now();
        let mut poll_delay = JOURNAL_POLL_INTERVAL;
        let mut batch_delay = INGEST_BATCH_DELAY;
        if let Some(importer) = &mut importer {
            if let Ok((done, left)) = importer.import_batches(&*app.store, BATCHES_PER_ROUND) {
                app.metrics.record_ingest(done);
                app.metrics.store_lag_bytes.store(left, Ordering::Relaxed);
                let grown = grown_lag.update(left);
                app.metrics.grown_lag_bytes.store(grown, Ordering::Relaxed);
                if left > 0 {
                    (poll_delay, batch_delay) = (Duration::ZERO, Duration::ZERO);
                }
            } else {
                app.metrics.record_store_failure();
                // Agents do not wait for a store that is unavailable.
                app.metrics.store_lag_bytes.store(0, Ordering::Relaxed);
                app.metrics.grown_lag_bytes.store(0, Ordering::Relaxed);
                grown_lag = GrownLag::default();
                poll_delay = FAILURE_RETRY_DELAY;
            }
        }
        let is_due = last_retention.is_none_or(|last| last.elapsed() >= RETENTION_INTERVAL);
        if is_due && retention != Retention::default() {
            last_retention = Some(Instant::now());
            if app.store.retain(&retention).is_err() {
                app.metrics.record_store_failure();
            }
        }
        // After a pause the first event is ingested at once, those that follow in batches.
        let woken_by = wakeups.recv_timeout(poll_delay);
        let early_by = batch_delay.saturating_sub(started.elapsed());
        match woken_by {
            Ok(WakeReason::NewLines) => std::thread::sleep(early_by),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(WakeReason::Stop) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Some(Ok(done)) = importer.map(|mut importer| importer.import_all(&*app.store)) {
        app.metrics.record_ingest(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_store_falls_behind_counts() {
        let mut lag = GrownLag::default();
        let grown = [900, 905, 600, 650, 0, 700].map(|bytes| lag.update(bytes));
        assert_eq!(grown, [0, 5, 0, 50, 0, 700]);
    }

    #[test]
    fn calls_wait_only_for_a_store_that_is_far_behind() {
        let ms = |lag: u64| call_delay(lag).map(|delay| delay.as_millis());
        assert_eq!(ms(0), None);
        assert_eq!(ms(MAX_STORE_LAG_BYTES), None);
        assert_eq!(ms(MAX_STORE_LAG_BYTES + 1), Some(1));
        assert_eq!(ms(MAX_STORE_LAG_BYTES + (20 << 20)), Some(20));
        assert_eq!(ms(u64::MAX), Some(250));
    }
}
