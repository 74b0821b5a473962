//! The thread that carries the journal into the store, and throws away what is too old.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhook_store::Retention;
use anyhook_store::journal::Tail;

use crate::app::App;
use crate::config::JournalSource;

/// Other processes write the journal too; nobody tells us when.
const LOOK: Duration = Duration::from_millis(200);
/// Under load every call would bring a transaction of its own, and each waits for the disk.
const GATHER: Duration = Duration::from_millis(25);
const RETAIN: Duration = Duration::from_secs(10 * 60);
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Between two looks at how much is left.
const BATCHES: usize = 16;
/// More than that the store does not fall behind while agents come first: the journal
/// throws its oldest files away, and what the store has not got by then it never gets.
const BEHIND: u64 = 128 << 20;
/// A tenth of what a thread gets that serves, where both want to run.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Call {
    #[default]
    None,
    Look,
    End,
}

/// Wakes the thread before its time.
#[derive(Debug, Default)]
pub(crate) struct Nudge {
    call: Mutex<Call>,
    changed: Condvar,
}

impl Nudge {
    /// Something was written.
    pub fn now(&self) {
        self.set(Call::Look);
    }

    fn set(&self, wanted: Call) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        if *call != Call::End && *call != wanted {
            *call = wanted;
            self.changed.notify_one();
        }
    }

    fn wait(&self, limit: Duration) -> Call {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut call, _) = self
            .changed
            .wait_timeout_while(call, limit, |call| *call == Call::None)
            .unwrap_or_else(PoisonError::into_inner);
        let was = *call;
        if was == Call::Look {
            *call = Call::None;
        }
        was
    }
}

pub(crate) struct Keeper {
    nudge: Arc<Nudge>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub fn start(
        app: App,
        journal: Option<JournalSource>,
        retention: Retention,
    ) -> std::io::Result<Self> {
        let nudge = app.nudge.clone();
        let thread = std::thread::Builder::new()
            .name("anyhook-journal".to_owned())
            .spawn(move || keep(&app, journal, retention))?;
        Ok(Self {
            nudge,
            thread: Some(thread),
        })
    }

    /// Takes what is in the journal now, then ends.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.nudge.set(Call::End);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say, and a panic of its own was counted as one lost round.
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

/// How long a call has to wait when the store lacks so many bytes of the journal.
pub(crate) fn pause(behind: u64) -> Option<Duration> {
    let over = behind.checked_sub(BEHIND).filter(|over| *over > 0)?;
    Some(Duration::from_millis((over >> 20).clamp(1, 250)))
}

/// Agents wait for those who serve, and nobody for the store: what has been
/// written is safe in the journal.
#[cfg(target_os = "linux")]
fn give_way() {
    use rustix::process::setpriority_process;
    // Where that is not allowed it works as the others do.
    let _ = setpriority_process(Some(rustix::thread::gettid()), NICE);
}

/// Elsewhere a priority is the whole process's.
#[cfg(not(target_os = "linux"))]
fn give_way() {}

fn keep(app: &App, journal: Option<JournalSource>, retention: Retention) {
    give_way();
    let mut tail = journal.map(|journal| Tail::new(journal.dir, journal.source));
    let mut retained: Option<Instant> = None;
    loop {
        let begun = Instant::now();
        let mut rest = LOOK;
        let mut gather = GATHER;
        if let Some(tail) = &mut tail {
            if let Ok((done, left)) = tail.pump_some(&*app.store, BATCHES) {
                app.metrics.ingested(done);
                app.metrics.behind.store(left, Ordering::Relaxed);
                if left > 0 {
                    (rest, gather) = (Duration::ZERO, Duration::ZERO);
                }
            } else {
                app.metrics.store_failed();
                // Agents do not wait for a store that is away.
                app.metrics.behind.store(0, Ordering::Relaxed);
                rest = AFTER_FAILURE;
            }
        }
        let due = retained.is_none_or(|last| last.elapsed() >= RETAIN);
        if due && retention != Retention::default() {
            retained = Some(Instant::now());
            if app.store.retain(&retention).is_err() {
                app.metrics.store_failed();
            }
        }
        // The first event of a quiet time is taken at once, those that follow it together.
        let call = app.nudge.wait(rest);
        let early = gather.saturating_sub(begun.elapsed());
        if call == Call::Look && !early.is_zero() {
            std::thread::sleep(early);
        }
        if call == Call::End {
            if let Some(tail) = &mut tail
                && let Ok(done) = tail.pump(&*app.store)
            {
                app.metrics.ingested(done);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_wait_only_for_a_store_that_is_far_behind() {
        let ms = |behind: u64| pause(behind).map(|pause| pause.as_millis());
        assert_eq!(ms(0), None);
        assert_eq!(ms(BEHIND), None);
        assert_eq!(ms(BEHIND + 1), Some(1));
        assert_eq!(ms(BEHIND + (20 << 20)), Some(20));
        assert_eq!(ms(u64::MAX), Some(250));
    }
}
