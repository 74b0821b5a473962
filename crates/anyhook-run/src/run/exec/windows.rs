//! Processes on Windows: a job object per program, a thread per pipe.
//!
//! The job holds the program and everything that it starts, and ends with its
//! last handle: so a timeout ends the whole tree, and so does the end of this
//! process, however it comes about.

pub(super) mod installed;
mod system;

use std::io::{Read, Write};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhook_util::env;
use anyhook_util::sync::lock;

use super::command::CommandLine;
use super::interpreters::{startable, startable_line};
use super::{
    CapturedOutput, Leftover, OUTPUT_DRAIN_TIMEOUT, ProcessEnd, ProcessRequest, ProcessResult,
    SpawnOptions,
};
use installed::Installed;
use system::Job;

/// How often a run looks whether it was cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How long the system may take to close the pipes of an ended job.
const PIPE_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

const CREATE_NO_WINDOW: u32 = 0x0800_0000;
const CREATE_SUSPENDED: u32 = 0x0000_0004;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
const DETACHED_PROCESS: u32 = 0x0000_0008;
const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;

/// Flags of which one is set when the caller must stop.
#[derive(Debug, Clone)]
pub struct Cancel(Vec<Arc<AtomicBool>>);

/// Sets its [`Cancel`] when it is dropped.
#[derive(Debug)]
pub struct CancelTrigger(Arc<AtomicBool>);

impl Cancel {
    /// One that is set by `other` too.
    pub fn with_trigger(other: Option<&Self>) -> std::io::Result<(CancelTrigger, Self)> {
        let own = Arc::new(AtomicBool::default());
        let others = other.into_iter().flat_map(|other| other.0.iter().cloned());
        let flags = others.chain([own.clone()]).collect();
        Ok((CancelTrigger(own), Self(flags)))
    }

    pub fn is_set(&self) -> bool {
        self.0.iter().any(|flag| flag.load(Ordering::Acquire))
    }
}

impl Drop for CancelTrigger {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

enum ProcessEvent {
    /// Everything that had the pipe has closed it.
    PipeClosed,
    Exit(Option<i32>),
}

/// Nothing is to be done for a program that takes long.
pub(super) fn run(
    request: &ProcessRequest<'_>,
    options: SpawnOptions,
    _when_slow: &dyn Fn(),
) -> ProcessResult {
    let started = Instant::now();
    match spawn(request, options) {
        Ok((child, job)) => RunningProcess::new(child, job, request).run(request, started),
        Err(why) => ProcessResult::not_started(why, started),
    }
}

fn spawn(request: &ProcessRequest<'_>, options: SpawnOptions) -> Result<(Child, Job), String> {
    let mut cwd = request.cwd.as_path();
    if options.may_run_above_cwd && !cwd.is_dir() {
        let mut existing = cwd.ancestors().filter(|folder| folder.is_dir());
        cwd = existing.next().unwrap_or(cwd);
    }
    let installed = Installed::for_command(cwd);
    let (mut command, shown) = match &request.command_line {
        CommandLine::Shell(line) => {
            let line = startable_line(line, &installed)?;
            let mut shell = Command::new(installed::command_shell());
            // `/S` keeps the quotes inside the line as they are.
            shell.raw_arg(format!("/D /S /C \"{line}\""));
            (shell, "cmd.exe".to_owned())
        }
        CommandLine::Direct(argv) => {
            let argv = startable(argv, &installed)?;
            let program = argv.first().map_or("", String::as_str);
            let mut direct = Command::new(program);
            direct.args(argv.iter().skip(1));
            (direct, program.to_owned())
        }
    };
    options.base_env.apply(&mut command);
    // `cmd.exe` would prefer a program of the project to the one on PATH.
    command.env(env::NO_CURRENT_DIRECTORY.name, "1");
    let job = Job::new().map_err(|error| format!("its job could not be created: {error}"))?;
    let mut child = command
        .current_dir(cwd)
        .envs(request.passable_variables())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Without a window of its own, and not before it is in its job.
        .creation_flags(CREATE_NO_WINDOW | CREATE_SUSPENDED)
        .spawn()
        .map_err(|error| match error.kind() {
            _ if !cwd.is_dir() => {
                format!("its working directory `{}` does not exist", cwd.display())
            }
            std::io::ErrorKind::NotFound => format!("`{shown}` was not found"),
            _ => format!("`{shown}` could not be started: {error}"),
        })?;
    let resumed = job.assign(&child).and_then(|()| system::resume(child.id()));
    if let Err(error) = resumed {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("`{shown}` could not be started in a job: {error}"));
    }
    Ok((child, job))
}

struct RunningProcess {
    job: Job,
    events: Receiver<ProcessEvent>,
    stdout: Arc<Mutex<CapturedOutput>>,
    stderr: Arc<Mutex<CapturedOutput>>,
    open_pipes: usize,
}

impl RunningProcess {
    fn new(mut child: Child, job: Job, request: &ProcessRequest<'_>) -> Self {
        let (sender, events) = channel();
        if let Some(mut stdin) = child.stdin.take() {
            let payload = request.stdin.to_vec();
            std::thread::spawn(move || stdin.write_all(&payload));
        }
        let stdout = read_to_end(child.stdout.take(), sender.clone());
        let stderr = read_to_end(child.stderr.take(), sender.clone());
        std::thread::spawn(move || {
            let code = child.wait().ok().and_then(|status| status.code());
            let _ = sender.send(ProcessEvent::Exit(code));
        });
        Self {
            job,
            events,
            stdout,
            stderr,
            open_pipes: 2,
        }
    }

    fn run(mut self, request: &ProcessRequest<'_>, started: Instant) -> ProcessResult {
        let mut exit = None;
        let mut deadline = started.checked_add(request.timeout);
        let mut forced = None;
        while self.open_pipes > 0 || exit.is_none() {
            let is_running = exit.is_none();
            match self.next_event(deadline, request.cancel.filter(|_| is_running)) {
                Some(ProcessEvent::PipeClosed) => self.open_pipes -= 1,
                Some(ProcessEvent::Exit(code)) => {
                    exit = Some(code.unwrap_or(1));
                    deadline = Instant::now().checked_add(OUTPUT_DRAIN_TIMEOUT);
                }
                None => {
                    if is_running {
                        let is_cancelled = request.cancel.is_some_and(Cancel::is_set);
                        forced = Some(if is_cancelled {
                            ProcessEnd::Cancelled
                        } else {
                            ProcessEnd::Timeout
                        });
                    }
                    break;
                }
            }
        }
        let mut leftover = None;
        if forced.is_some() || self.open_pipes > 0 {
            lock(&self.stdout).is_unfinished = forced.is_none();
            self.job.terminate();
            let is_held = !self.drain();
            leftover = match (is_held, forced.is_some()) {
                (true, _) => Some(Leftover::Running),
                (false, true) => None,
                (false, false) => Some(Leftover::Ended),
            };
        } else {
            // What it has started and what does not write to it may live on.
            self.job.release();
        }
        let end = forced.unwrap_or(ProcessEnd::Exit(exit.unwrap_or(1)));
        ProcessResult {
            end,
            stdout: take_output(&self.stdout),
            stderr: take_output(&self.stderr),
            leftover,
            duration: started.elapsed(),
        }
    }

    /// `None` at the deadline, or when the run is cancelled.
    fn next_event(
        &self,
        deadline: Option<Instant>,
        cancel: Option<&Cancel>,
    ) -> Option<ProcessEvent> {
        loop {
            if cancel.is_some_and(Cancel::is_set) {
                return None;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let check = cancel.map(|_| CANCEL_CHECK_INTERVAL);
            let wait = [left, check].into_iter().flatten().min();
            match self.events.recv_timeout(wait.unwrap_or(Duration::MAX)) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Reads what is still in the pipes of an ended job; whether every process
    /// has closed them.
    fn drain(&mut self) -> bool {
        let deadline = Instant::now().checked_add(PIPE_CLOSE_TIMEOUT);
        while self.open_pipes > 0 {
            match self.next_event(deadline, None) {
                Some(ProcessEvent::PipeClosed) => self.open_pipes -= 1,
                Some(ProcessEvent::Exit(_)) => {}
                None => return false,
            }
        }
        true
    }
}

fn read_to_end<R: Read + Send + 'static>(
    pipe: Option<R>,
    sender: Sender<ProcessEvent>,
) -> Arc<Mutex<CapturedOutput>> {
    let captured = Arc::new(Mutex::new(CapturedOutput::default()));
    let shared = captured.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0_u8; 64 * 1024];
        if let Some(mut pipe) = pipe {
            while let Ok(count) = pipe.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                lock(&shared).append(buffer.get(..count).unwrap_or_default());
            }
        }
        let _ = sender.send(ProcessEvent::PipeClosed);
    });
    captured
}

/// Programs of the console write in its code page, most others in UTF-8.
fn take_output(captured: &Mutex<CapturedOutput>) -> CapturedOutput {
    let mut captured = std::mem::take(&mut *lock(captured));
    let is_broken = match std::str::from_utf8(&captured.bytes) {
        Ok(_) => false,
        // The end of what was kept may cut a character.
        Err(error) => !(captured.is_cut() && error.error_len().is_none()),
    };
    if is_broken && let Some(text) = system::decode_console_text(&captured.bytes) {
        let lost = captured.total.saturating_sub(captured.bytes.len() as u64);
        captured.bytes = text.into_bytes();
        captured.total = (captured.bytes.len() as u64).saturating_add(lost);
    }
    captured
}

/// Ends a process and its children.
pub(super) fn kill(pid: u32) {
    let _ = Command::new("taskkill")
        .args(["/T", "/F", "/PID", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Whether lines for a POSIX shell can run.
pub fn has_posix_shell() -> bool {
    let installed = Installed::for_command(std::path::Path::new(""));
    super::interpreters::InstalledPrograms::posix_shell(&installed).is_some()
}

/// A detached program outlives the console and, where that is allowed, the job
/// of this one.
pub(super) fn detach(command: &mut Command) {
    let mut flags = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP;
    if system::may_leave_job() {
        flags |= CREATE_BREAKAWAY_FROM_JOB;
    }
    command.creation_flags(flags);
}

/// A detached process has left the console already.
pub fn detach_self() {}

/// Runs `work` on another thread, which is abandoned on a timeout.
pub fn call_with_timeout<T: Send + 'static>(
    timeout: Duration,
    cancel: Option<&Cancel>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessEnd> {
    let (sender, result) = channel();
    std::thread::spawn(move || sender.send(work()));
    let deadline = Instant::now().checked_add(timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let check = cancel.map(|_| CANCEL_CHECK_INTERVAL);
        let wait = [left, check].into_iter().flatten().min();
        match result.recv_timeout(wait.unwrap_or(Duration::MAX)) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) if cancel.is_some_and(Cancel::is_set) => {
                return Err(ProcessEnd::Cancelled);
            }
            Err(RecvTimeoutError::Timeout) if left.is_none_or(|left| !left.is_zero()) => {}
            Err(RecvTimeoutError::Timeout) => return Err(ProcessEnd::Timeout),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ProcessEnd::NotStarted(
                    "it ended without a result".to_owned(),
                ));
            }
        }
    }
}
