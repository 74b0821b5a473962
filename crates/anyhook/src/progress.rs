//! A line on stderr that says what a slow command is doing; only on a terminal, and only
//! once the work has taken a while.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhook_util::env;

use crate::render::counted;

/// Faster work shows nothing.
const FIRST_SHOWN_AFTER: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

/// Whether the line is on the terminal; there is at most one.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Moves to the start of the line and erases it.
const ERASE_LINE: &str = "\r\u{1b}[K";

/// Shown from [`Progress::start`] until it is dropped.
pub(crate) struct Progress {
    shared: Arc<SharedProgress>,
    thread: Option<JoinHandle<()>>,
}

struct SharedProgress {
    label: &'static str,
    unit: &'static str,
    done: AtomicU64,
    is_finished: AtomicBool,
}

impl Progress {
    /// `label` says what is done ("Replaying"), `unit` what is counted ("event"); an
    /// empty unit counts nothing.
    pub(crate) fn start(label: &'static str, unit: &'static str) -> Self {
        let shared = Arc::new(SharedProgress {
            label,
            unit,
            done: AtomicU64::new(0),
            is_finished: AtomicBool::new(false),
        });
        let is_shown = io::stderr().is_terminal() && !env::TERM.is("dumb");
        let thread = is_shown.then(|| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.draw_until_finished())
        });
        Self { shared, thread }
    }

    pub(crate) fn advance(&self) {
        self.shared.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.is_finished.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl SharedProgress {
    fn draw_until_finished(&self) {
        let start = Instant::now();
        let mut pause = FIRST_SHOWN_AFTER;
        loop {
            let until = Instant::now() + pause;
            // A thread may wake up early.
            while !self.is_finished.load(Ordering::Relaxed) && Instant::now() < until {
                thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
            if self.is_finished.load(Ordering::Relaxed) {
                break;
            }
            write_error(&format!("{ERASE_LINE}{}", self.text(start.elapsed())));
            IS_DRAWN.store(true, Ordering::Relaxed);
            pause = REDRAW_INTERVAL;
        }
        erase();
    }

    fn text(&self, elapsed: Duration) -> String {
        let (label, unit, seconds) = (self.label, self.unit, elapsed.as_secs());
        match self.done.load(Ordering::Relaxed) {
            0 => format!("{label}… {seconds} s"),
            done => format!("{label}… {}, {seconds} s", counted(done, unit)),
        }
    }
}

/// Removes the line, before something else is written to the terminal.
pub(crate) fn erase() {
    if IS_DRAWN.swap(false, Ordering::Relaxed) {
        write_error(ERASE_LINE);
    }
}

fn write_error(text: &str) {
    // Without a terminal there is no one to show progress to.
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
