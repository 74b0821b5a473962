//! Running one program, whatever it does.
//!
//! Owns processes: starting, feeding, listening, and ending them. It knows
//! nothing of hooks and decisions. The two platforms offer the same functions.

pub mod command;
pub mod named;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
mod words;

use std::path::PathBuf;
use std::time::Duration;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use platform::{Cancel, call, detach_self, launch_detached};

use command::Launch;

/// How much of each output stream is kept; the rest is read and dropped.
pub const OUTPUT_LIMIT: usize = 1024 * 1024;

/// From the polite signal to the kill.
pub const GRACE: Duration = Duration::from_millis(500);

/// How long output is awaited from others after the program itself has ended.
pub const DRAIN: Duration = Duration::from_millis(500);

/// One program to run.
#[derive(Debug)]
pub struct Job<'a> {
    pub launch: Launch,
    pub cwd: PathBuf,
    /// Nobody else works in this process, so that it may itself go to `cwd`:
    /// a child that need not is started several times faster.
    pub owns_process: bool,
    pub env: Vec<(String, String)>,
    pub stdin: &'a [u8],
    pub timeout: Duration,
    /// Ends the program early, as a timeout would.
    pub cancel: Option<&'a Cancel>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
    Timeout,
    Cancelled,
    /// It could not be started; the text says why and what to do.
    NotStarted(String),
}

#[derive(Debug)]
pub struct Ended {
    pub end: End,
    pub stdout: Captured,
    pub stderr: Captured,
    /// A process that it had left behind held the output open.
    pub leftover: Option<Leftover>,
    pub duration: Duration,
}

/// What became of a process that was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    Ended,
    /// It had left the group of its program, and cannot be reached.
    Running,
}

/// The first [`OUTPUT_LIMIT`] bytes of a stream.
#[derive(Debug, Default)]
pub struct Captured {
    pub bytes: Vec<u8>,
    /// How many bytes were written in all.
    pub total: u64,
}

impl Captured {
    pub fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    fn keep(&mut self, chunk: &[u8]) {
        self.total = self.total.saturating_add(chunk.len() as u64);
        let room = OUTPUT_LIMIT.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }
}

/// Runs a program to its end. It never outlives this call, nor does anything
/// in its process group that holds its output open.
pub fn run(job: &Job<'_>) -> Ended {
    platform::run(job)
}
