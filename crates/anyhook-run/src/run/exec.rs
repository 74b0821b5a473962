//! Runs one program, whatever it does.
//!
//! Owns processes: starts them, writes their input, reads their output and ends
//! them. It knows nothing of hooks and decisions. The two platforms offer the
//! same functions.

pub mod command;
pub mod command_files;
#[cfg(unix)]
mod death_signal;
mod environment;
pub(crate) mod executed_files;
mod interpreters;
mod loaders;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod watchdog;
#[cfg(windows)]
mod windows;
pub(crate) mod words;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use environment::BaseEnvironment;
pub use platform::{Cancel, CancelTrigger, call_with_timeout, detach_self, has_posix_shell};
#[cfg(unix)]
pub use {
    signals::reset_inherited_signals,
    watchdog::{start as start_watchdog, stop as stop_watchdog},
};

use command::CommandLine;

/// How much of each output stream is kept; the rest is read and dropped.
pub const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// From the polite signal to the kill.
#[cfg(unix)]
const TERMINATION_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// How long to wait for the output of others after the program itself has ended.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a detached program may take to read its task.
const TASK_HANDOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// One program to run.
#[derive(Debug)]
pub struct ProcessRequest<'a> {
    pub command_line: CommandLine,
    pub cwd: PathBuf,
    /// No other thread works in this process, so it may itself change to `cwd`: a child
    /// that need not do so starts in 70 µs instead of 200.
    pub owns_process: bool,
    pub env: Vec<(String, String)>,
    pub stdin: &'a [u8],
    pub timeout: Duration,
    /// Ends the program early, as a timeout would.
    pub cancel: Option<&'a Cancel>,
}

impl ProcessRequest<'_> {
    /// Without variables that no program can get: they come from the agent's payload,
    /// and a program with one would not start.
    fn passable_variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.env.iter().map(|(name, value)| (&**name, &**value));
        all.filter(|(_, value)| !value.contains('\0'))
    }
}

/// What surrounds a program. By default it inherits the environment, and its
/// working directory must exist.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpawnOptions {
    pub base_env: BaseEnvironment,
    /// Where the working directory does not exist, the program runs in the
    /// nearest folder above it.
    pub may_run_above_cwd: bool,
}

/// Runs a program to its end. It never outlives this call, nor does anything
/// in its process group that holds its output open.
pub fn run(request: &ProcessRequest<'_>) -> ProcessResult {
    platform::run(request, SpawnOptions::default(), &|| {})
}

/// The same with other surroundings. `when_slow` is called once, if the program takes
/// longer than most.
pub fn run_with(
    request: &ProcessRequest<'_>,
    options: SpawnOptions,
    when_slow: &dyn Fn(),
) -> ProcessResult {
    platform::run(request, options, when_slow)
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    Exit(i32),
    Signal(i32),
    Timeout,
    Cancelled,
    /// It could not be started; the text explains why and what to do.
    NotStarted(String),
}

#[derive(Debug)]
pub struct ProcessResult {
    pub end: ProcessEnd,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    /// A process that the program left behind held the output open.
    pub leftover: Option<Leftover>,
    pub duration: Duration,
}

impl ProcessResult {
    /// Whether a program that failed has written something that may be a deny.
    pub(crate) fn may_refuse(&self) -> bool {
        let was_started = !matches!(self.end, ProcessEnd::NotStarted(_));
        was_started && !self.stdout.bytes.is_empty()
    }

    fn not_started(why: String, started: Instant) -> Self {
        Self {
            end: ProcessEnd::NotStarted(why),
            stdout: CapturedOutput::default(),
            stderr: CapturedOutput::default(),
            leftover: None,
            duration: started.elapsed(),
        }
    }
}

/// What happened to a process that was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    Ended,
    /// It had left the group of its program and cannot be reached.
    Running,
}

/// The first [`MAX_OUTPUT_BYTES`] of a stream.
#[derive(Debug, Default)]
pub struct CapturedOutput {
    pub bytes: Vec<u8>,
    /// How many bytes were written in all.
    pub total: u64,
    /// Something else held it open after the program's end, so more may have
    /// been on the way.
    pub is_unfinished: bool,
}

impl CapturedOutput {
    pub fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    fn append(&mut self, chunk: &[u8]) {
        self.total = self.total.saturating_add(chunk.len() as u64);
        let room = MAX_OUTPUT_BYTES.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }
}

/// Starts a program that outlives this process, and writes its task to its
/// stdin. Its output is discarded: an agent waits until every process has closed
/// its pipes.
pub(crate) fn spawn_detached(argv: &[OsString], task: &[u8]) -> io::Result<()> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    platform::detach(&mut command);
    let mut child = command.spawn()?;
    let pid = child.id();
    let task = task.to_vec();
    let (sender, written) = channel();
    std::thread::Builder::new().spawn(move || {
        let stdin = child.stdin.take();
        let _ = sender.send(stdin.map_or(Ok(()), |mut stdin| stdin.write_all(&task)));
        // A caller that lives on must reap it.
        child.wait()
    })?;
    written
        .recv_timeout(TASK_HANDOVER_TIMEOUT)
        .unwrap_or_else(|_| {
            platform::kill(pid);
            Err(io::ErrorKind::TimedOut.into())
        })
}
