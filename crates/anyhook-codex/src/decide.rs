//! The seam to the hooks, and the threads on which they run.
//!
//! Hooks block, for seconds or until their own timeout. So each question runs on
//! a thread of its own, a few dozen at most, and the messages never wait for it.
//! Notices go through one queue, in order, beside the questions.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhook_model::{HookEvent, HookResponse};

use crate::map::rfc3339;
use crate::wire::{Answer, write};

/// Questions that are with the hooks at one time; more of them wait.
const AT_ONCE: usize = 32;
/// Notices that may wait; what comes on top is dropped and counted.
const QUEUE: usize = 4096;
/// How long hooks that are told to end are waited for.
const END: Duration = Duration::from_secs(4);

/// Whoever runs the hooks.
pub trait Decide: Send + Sync + 'static {
    /// Runs the hooks of an event. A `decision` of `allow` is taken as an
    /// explicit yes and answers the agent in the user's place: hooks that merely
    /// had nothing against it must give no decision.
    fn decide(&self, event: HookEvent) -> Ruling;

    /// Whether there is anything that could decide about this event. If not, a
    /// request for approval goes on at once and `decide` only hears of it.
    /// Asked on the thread that carries the messages: it must be quick.
    fn could_decide(&self, _event: &HookEvent) -> bool {
        true
    }

    /// The bridge ends: hooks that still run should be ended, and what is asked
    /// from now on answered at once.
    fn abandon(&self) {}
}

/// What the hooks say, and who wants to know what became of it.
#[derive(Default)]
pub struct Ruling {
    pub response: HookResponse,
    told: Option<Told>,
}

type Told = Box<dyn FnOnce(Option<String>) + Send>;

impl Ruling {
    /// `told` hears once what the server was answered: the result as JSON, or
    /// nothing when the answer was left to somebody else.
    pub fn new(response: HookResponse, told: impl FnOnce(Option<String>) + Send + 'static) -> Self {
        Self {
            response,
            told: Some(Box::new(told)),
        }
    }

    pub(crate) fn answered(mut self, answer: &Answer) {
        if let Some(told) = self.told.take() {
            told(Some(write(answer)));
        }
    }
}

impl From<HookResponse> for Ruling {
    fn from(response: HookResponse) -> Self {
        Self {
            response,
            told: None,
        }
    }
}

impl Drop for Ruling {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            told(None);
        }
    }
}

struct Job {
    event: HookEvent,
    then: Box<dyn FnOnce(Ruling) + Send>,
}

pub(crate) struct Hooks {
    decide: Arc<dyn Decide>,
    pool: Arc<(Mutex<Pool>, Condvar)>,
    notices: SyncSender<HookEvent>,
    notices_done: Mutex<Receiver<()>>,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Pool {
    running: usize,
    waiting: VecDeque<Job>,
}

impl Hooks {
    pub(crate) fn new(decide: Arc<dyn Decide>) -> Self {
        let (notices, queue) = sync_channel::<HookEvent>(QUEUE);
        let (done, notices_done) = sync_channel(1);
        let observer = decide.clone();
        // Without the thread the queue has no reader, and `observe` counts.
        let _ = thread::Builder::new()
            .name("codex-notices".into())
            .spawn(move || {
                let _done = done;
                while let Ok(event) = queue.recv() {
                    let _ = catch_unwind(AssertUnwindSafe(|| observer.decide(event)));
                }
            });
        Self {
            decide,
            pool: Arc::default(),
            notices,
            notices_done: Mutex::new(notices_done),
            dropped: AtomicU64::new(0),
        }
    }

    pub(crate) fn could_decide(&self, event: &HookEvent) -> bool {
        self.decide.could_decide(event)
    }

    /// Puts a question. `then` gets the ruling on another thread; an empty one
    /// when the hooks fell over or there could be no thread.
    pub(crate) fn ask(&self, event: HookEvent, then: impl FnOnce(Ruling) + Send + 'static) {
        let job = Job {
            event: timed(event),
            then: Box::new(then),
        };
        let mut pool = lock(&self.pool.0);
        pool.waiting.push_back(job);
        if pool.running >= AT_ONCE {
            return;
        }
        pool.running += 1;
        drop(pool);
        let (decide, shared) = (self.decide.clone(), self.pool.clone());
        let worker = thread::Builder::new().name("codex-approval".into());
        if worker.spawn(move || work(&*decide, &shared)).is_err() {
            let mut pool = lock(&self.pool.0);
            pool.running -= 1;
            let unheard = pool.waiting.pop_back();
            drop(pool);
            if let Some(job) = unheard {
                (job.then)(Ruling::default());
            }
        }
    }

    pub(crate) fn observe(&self, event: HookEvent) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.notices.try_send(timed(event))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets waiting notices be heard for at most `grace`, then ends what still
    /// runs and waits until it has ended. Returns how many notices nobody heard
    /// for want of room.
    pub(crate) fn finish(self, grace: Duration) -> u64 {
        drop(self.notices);
        // The other end only closes: any answer but a timeout means done.
        let heard = |limit| {
            let done = lock(&self.notices_done).recv_timeout(limit);
            !matches!(done, Err(RecvTimeoutError::Timeout))
        };
        let in_time = heard(grace);
        let mut pool = lock(&self.pool.0);
        pool.waiting.clear();
        if !in_time || pool.running > 0 {
            drop(pool);
            self.decide.abandon();
            if !in_time {
                heard(END);
            }
            pool = lock(&self.pool.0);
        }
        // What has been decided may still have to be written down.
        let ended = self
            .pool
            .1
            .wait_timeout_while(pool, END, |pool| pool.running > 0);
        drop(ended);
        self.dropped.load(Ordering::Relaxed)
    }
}

fn work(decide: &dyn Decide, (pool, ended): &(Mutex<Pool>, Condvar)) {
    loop {
        let mut state = lock(pool);
        let Some(job) = state.waiting.pop_front() else {
            state.running -= 1;
            ended.notify_all();
            return;
        };
        drop(state);
        let ruling = catch_unwind(AssertUnwindSafe(|| decide.decide(job.event)));
        (job.then)(ruling.unwrap_or_default());
    }
}

fn timed(mut event: HookEvent) -> HookEvent {
    if event.timestamp.is_none() {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        event.timestamp = i64::try_from(now.as_millis()).ok().and_then(rfc3339);
    }
    event
}

/// A panic elsewhere leaves the data as whole as it was between two statements,
/// which is enough for the plain tables that are locked here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
