//! The interface to the hooks, and the threads on which they run.
//!
//! Hooks block, for seconds or until their own timeout. So each decision runs on
//! its own thread, and messages never wait for it. Notices go through one queue, in
//! order, independent of the decisions.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use anyhook_model::{HookEvent, HookResponse};
use anyhook_util::sync::lock;
use anyhook_util::time::rfc3339;
use jiff::Timestamp;
use serde_json::Value;

/// Decisions that run at the same time; more of them wait.
const MAX_PARALLEL_DECISIONS: usize = 32;
/// Notices that may wait; further ones are dropped and counted.
const MAX_QUEUED_NOTICES: usize = 4096;
/// How long to wait for hooks that were asked to end.
const HOOK_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

/// Runs the hooks.
pub trait Decide: Send + Sync + 'static {
    /// Runs the hooks of an event. A `decision` of `allow` answers the agent in the
    /// user's place, so hooks without an objection must give no decision.
    fn decide(&self, event: HookEvent) -> Ruling;

    /// Whether any hook could decide about this event. If not, a request for approval
    /// passes at once and `decide` is only notified. Called on the thread that carries
    /// the messages: it must be quick.
    fn could_decide(&self, _event: &HookEvent) -> bool {
        true
    }

    /// The bridge ends: running hooks should be ended, and further calls of `decide`
    /// return at once.
    fn abandon(&self) {}
}

/// What the hooks decided.
#[derive(Default)]
pub struct Ruling {
    pub response: HookResponse,
    on_answer: Option<AnswerCallback>,
}

type AnswerCallback = Box<dyn FnOnce(Option<String>) + Send>;

impl Ruling {
    /// `on_answer` is called once with the result that the server got, as JSON, or with
    /// `None` when the answer was left to another client.
    pub fn new(
        response: HookResponse,
        on_answer: impl FnOnce(Option<String>) + Send + 'static,
    ) -> Self {
        Self {
            response,
            on_answer: Some(Box::new(on_answer)),
        }
    }

    pub(crate) fn set_answer(mut self, answer: &Value) {
        if let Some(on_answer) = self.on_answer.take() {
            on_answer(Some(answer.to_string()));
        }
    }
}

impl From<HookResponse> for Ruling {
    fn from(response: HookResponse) -> Self {
        Self {
            response,
            on_answer: None,
        }
    }
}

impl Drop for Ruling {
    fn drop(&mut self) {
        if let Some(on_answer) = self.on_answer.take() {
            on_answer(None);
        }
    }
}

/// An event, and what is done with the ruling about it.
type PendingDecision = (HookEvent, Box<dyn FnOnce(Ruling) + Send>);

pub(crate) struct HookWorkers {
    decide: Arc<dyn Decide>,
    pool: Arc<(Mutex<WorkerPool>, Condvar)>,
    notices: SyncSender<HookEvent>,
    notices_done: Mutex<Receiver<()>>,
    dropped: AtomicU64,
}

#[derive(Default)]
struct WorkerPool {
    running: usize,
    waiting: VecDeque<PendingDecision>,
}

impl HookWorkers {
    pub(crate) fn new(decide: Arc<dyn Decide>) -> Self {
        let (notices, queue) = sync_channel::<HookEvent>(MAX_QUEUED_NOTICES);
        let (done, notices_done) = sync_channel(1);
        let observer = decide.clone();
        // Without the thread the queue has no reader, and `observe` counts every notice.
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

    /// Has the hooks decide. `then` gets the ruling on another thread; an empty one if
    /// the hooks panicked or no thread could be started.
    pub(crate) fn start_decision(
        &self,
        event: HookEvent,
        then: impl FnOnce(Ruling) + Send + 'static,
    ) {
        let event = with_timestamp(event);
        let mut pool = lock(&self.pool.0);
        pool.waiting.push_back((event, Box::new(then)));
        if pool.running >= MAX_PARALLEL_DECISIONS {
            return;
        }
        pool.running += 1;
        drop(pool);
        let (decide, shared) = (self.decide.clone(), self.pool.clone());
        let worker = thread::Builder::new().name("codex-approval".into());
        if worker
            .spawn(move || run_decisions(&*decide, &shared))
            .is_err()
        {
            let mut pool = lock(&self.pool.0);
            pool.running -= 1;
            let job = pool.waiting.pop_back();
            drop(pool);
            if let Some((_, then)) = job {
                then(Ruling::default());
            }
        }
    }

    pub(crate) fn observe(&self, event: HookEvent) {
        if self.notices.try_send(with_timestamp(event)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Delivers waiting notices for at most `grace`, then ends running hooks and waits
    /// for them. Returns the number of notices that were dropped.
    pub(crate) fn finish(self, grace: Duration) -> u64 {
        drop(self.notices);
        // The other end only closes: everything but a timeout means done.
        let is_drained = |limit| {
            let done = lock(&self.notices_done).recv_timeout(limit);
            !matches!(done, Err(RecvTimeoutError::Timeout))
        };
        let in_time = is_drained(grace);
        let mut pool = lock(&self.pool.0);
        pool.waiting.clear();
        if !in_time || pool.running > 0 {
            drop(pool);
            self.decide.abandon();
            if !in_time {
                is_drained(HOOK_SHUTDOWN_TIMEOUT);
            }
            pool = lock(&self.pool.0);
        }
        // Decisions may still have to be recorded.
        let ended = self
            .pool
            .1
            .wait_timeout_while(pool, HOOK_SHUTDOWN_TIMEOUT, |pool| pool.running > 0);
        drop(ended);
        self.dropped.load(Ordering::Relaxed)
    }
}

fn run_decisions(decide: &dyn Decide, (pool, ended): &(Mutex<WorkerPool>, Condvar)) {
    loop {
        let mut state = lock(pool);
        let Some((event, then)) = state.waiting.pop_front() else {
            state.running -= 1;
            ended.notify_all();
            return;
        };
        drop(state);
        let ruling = catch_unwind(AssertUnwindSafe(|| decide.decide(event)));
        then(ruling.unwrap_or_default());
    }
}

fn with_timestamp(mut event: HookEvent) -> HookEvent {
    if event.timestamp.is_none() {
        event.timestamp = Some(rfc3339(Timestamp::now()));
    }
    event
}
