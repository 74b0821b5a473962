//! Processes on Unix: one group per program, one `poll` for all its pipes.

use std::fs::File;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};

use super::command::CommandLine;
use super::death_signal::DeathSignal;
use super::{
    CapturedOutput, Leftover, OUTPUT_DRAIN_TIMEOUT, ProcessEnd, ProcessRequest, ProcessResult,
    SpawnOptions, TERMINATION_GRACE_PERIOD, watchdog,
};

/// After `SIGKILL` only the kernel can keep a process; this is the longest wait.
const REAP_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the kernel may take to close the pipes of a killed group.
const PIPE_CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Most programs write a line or nothing, and clearing 64 KiB would take 0.8 µs per
/// stream.
const READ_BUFFER_BYTES: usize = 8 * 1024;

/// File descriptors of which one becomes readable when the caller must stop.
#[derive(Debug, Clone)]
pub struct Cancel(Vec<Arc<OwnedFd>>);

/// Sets its [`Cancel`] when it is dropped.
#[derive(Debug)]
pub struct CancelTrigger(#[expect(dead_code, reason = "its end is what counts")] io::PipeWriter);

impl Cancel {
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(vec![Arc::new(fd)])
    }

    /// One that is set by `other` too.
    pub fn with_trigger(other: Option<&Self>) -> io::Result<(CancelTrigger, Self)> {
        let (reader, writer) = io::pipe()?;
        let others = other.into_iter().flat_map(|other| other.0.iter().cloned());
        let own = Arc::new(OwnedFd::from(reader));
        Ok((CancelTrigger(writer), Self(others.chain([own]).collect())))
    }

    pub fn is_set(&self) -> bool {
        let mut fds: Vec<PollFd<'_>> = self.poll_fds().collect();
        let now = Timespec::default();
        rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.0.iter().map(|fd| PollFd::new(&**fd, PollFlags::IN))
    }
}

/// A process that takes longer is watched. Most hooks have ended by then, and until then
/// there is a [`DeathSignal`]. To start and end a watchdog takes 40 µs, and on a busy
/// machine 8 ms, because its end is waited for.
const WATCH_DELAY: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    /// It has ended; its output may still be on the way.
    Draining,
    /// It has ended, and something of its group still holds the output.
    Evicting,
    /// Asked to end.
    Terminating,
    /// Killed, not yet reaped.
    Killed,
}

pub(super) fn run(
    request: &ProcessRequest<'_>,
    options: SpawnOptions,
    when_slow: &dyn Fn(),
) -> ProcessResult {
    let started = Instant::now();
    let death_signal = DeathSignal::new().ok();
    let mut child = match spawn(request, options) {
        Ok(child) => child,
        Err(why) => return ProcessResult::not_started(why, started),
    };
    if let Some(signal) = &death_signal {
        signal.protect(Pid::from_child(&child));
    }
    match RunningProcess::new(&mut child, death_signal) {
        Ok(process) => process.run(request, started, when_slow),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            ProcessResult::not_started(format!("its pipes could not be set up: {error}"), started)
        }
    }
}

fn spawn(request: &ProcessRequest<'_>, options: SpawnOptions) -> Result<Child, String> {
    let mut cwd = request.cwd.as_path();
    let mut is_in_cwd = request.owns_process && std::env::set_current_dir(cwd).is_ok();
    if !is_in_cwd && options.may_run_above_cwd && !cwd.is_dir() {
        let mut existing = cwd.ancestors().filter(|folder| folder.is_dir());
        cwd = existing.next().unwrap_or(cwd);
        is_in_cwd = request.owns_process && std::env::set_current_dir(cwd).is_ok();
    }
    let start = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        if !is_in_cwd {
            command.current_dir(cwd);
        }
        options.base_env.apply(&mut command);
        command
            .args(arguments)
            .envs(request.passable_variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    };
    let argv: Vec<&str> = match &request.command_line {
        CommandLine::Shell(line) => vec!["/bin/sh", "-c", line],
        CommandLine::Direct(argv) => argv.iter().map(String::as_str).collect(),
    };
    let (program, arguments) = argv.split_first().ok_or("the command is empty")?;
    let not_executable_format = rustix::io::Errno::NOEXEC.raw_os_error();
    let child = start(program, arguments).or_else(|error| match error.raw_os_error() {
        // A script without `#!`: what a shell would have done.
        Some(code) if code == not_executable_format => start("/bin/sh", &argv),
        _ => Err(error),
    });
    child.map_err(|error| start_error(cwd, program, &error))
}

/// Explains a bare "no such file" or "permission denied".
fn start_error(cwd: &Path, program: &str, error: &io::Error) -> String {
    if !cwd.is_dir() {
        return format!("its working directory `{}` does not exist", cwd.display());
    }
    let path = Path::new(program);
    match error.kind() {
        io::ErrorKind::NotFound if path.is_file() => match interpreter(path) {
            Some(interpreter) if interpreter.ends_with('\r') => format!(
                "`{program}` has Windows line endings (CRLF), so the system looks for an interpreter with a carriage return in its name; convert it: `sed -i 's/\\r$//' {program}`"
            ),
            Some(interpreter) => format!(
                "the interpreter `{interpreter}` of `{program}` was not found; install it, or correct the first line of the script"
            ),
            None => format!("`{program}` cannot be loaded: {error}"),
        },
        io::ErrorKind::NotFound => format!("`{program}` was not found"),
        io::ErrorKind::PermissionDenied if path.is_file() => {
            format!("`{program}` is not executable; run `chmod +x {program}`")
        }
        _ => format!("`{program}` could not be started: {error}"),
    }
}

fn interpreter(script: &Path) -> Option<String> {
    let mut head = Vec::new();
    let (file, _) = anyhook_util::fs::open_regular(script).ok()?;
    file.take(256).read_to_end(&mut head).ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    Some(text.trim_matches([' ', '\t']).to_owned())
}

struct RunningProcess<'a> {
    child: &'a mut Child,
    group: Pid,
    /// Until it is watched.
    death_signal: Option<DeathSignal>,
    exit: OwnedFd,
    stdin: Option<File>,
    stdout: OutputPipe,
    stderr: OutputPipe,
}

struct OutputPipe {
    pipe: Option<File>,
    captured: CapturedOutput,
}

impl<'a> RunningProcess<'a> {
    fn new(child: &'a mut Child, death_signal: Option<DeathSignal>) -> io::Result<Self> {
        let group = Pid::from_child(child);
        Ok(Self {
            group,
            death_signal,
            exit: exit_watch(group)?,
            stdin: nonblocking(child.stdin.take())?,
            stdout: OutputPipe::new(child.stdout.take())?,
            stderr: OutputPipe::new(child.stderr.take())?,
            child,
        })
    }

    fn signal(&self, signal: Signal) {
        // Fails only if no process is left, which is the goal.
        let _ = kill_process_group(self.group, signal);
    }

    fn run(
        mut self,
        request: &ProcessRequest<'_>,
        started: Instant,
        when_slow: &dyn Fn(),
    ) -> ProcessResult {
        let mut phase = Phase::Running;
        let mut deadline = started.checked_add(request.timeout);
        let mut forced: Option<ProcessEnd> = None;
        let mut leftover = false;
        let mut buffer = vec![0_u8; READ_BUFFER_BYTES];
        let mut unsent = request.stdin;
        self.write_input(&mut unsent);
        let mut watched;
        let mut watch_at = started.checked_add(WATCH_DELAY);

        loop {
            let has_exited = matches!(phase, Phase::Draining | Phase::Evicting);
            if has_exited && self.stdout.is_done() && self.stderr.is_done() {
                break;
            }
            let cancel = request.cancel.filter(|_| phase == Phase::Running);
            let wake_at = [deadline, watch_at].into_iter().flatten().min();
            let [exit, stdin, stdout, stderr, cancel] = self.wait(has_exited, cancel, wake_at);
            if stdin {
                self.write_input(&mut unsent);
            }
            if stdout {
                self.stdout.capture_available(&mut buffer);
            }
            if stderr {
                self.stderr.capture_available(&mut buffer);
            }
            let now = Instant::now();
            if watch_at.take_if(|at| now >= *at).is_some() {
                watched = watchdog::watch(self.child);
                if watched.is_some() {
                    self.death_signal = None;
                }
                when_slow();
            }
            if exit && !has_exited {
                self.stdin = None;
                if phase == Phase::Running {
                    phase = Phase::Draining;
                    deadline = now.checked_add(OUTPUT_DRAIN_TIMEOUT);
                    continue;
                }
                break;
            }
            let is_late = deadline.is_some_and(|deadline| now >= deadline);
            let (signal, next, timeout) = match phase {
                Phase::Running if cancel || is_late => {
                    forced = Some(if cancel {
                        ProcessEnd::Cancelled
                    } else {
                        ProcessEnd::Timeout
                    });
                    self.stdin = None;
                    (Signal::TERM, Phase::Terminating, TERMINATION_GRACE_PERIOD)
                }
                Phase::Draining if is_late => {
                    leftover = true;
                    self.stdout.captured.is_unfinished = !self.stdout.is_done();
                    (Signal::TERM, Phase::Evicting, TERMINATION_GRACE_PERIOD)
                }
                Phase::Terminating if is_late => (Signal::KILL, Phase::Killed, REAP_TIMEOUT),
                Phase::Evicting | Phase::Killed if is_late => break,
                _ => continue,
            };
            self.signal(signal);
            phase = next;
            deadline = now.checked_add(timeout);
        }

        // The leader is not reaped yet, so its group's id is not reused.
        let mut is_held = false;
        if forced.is_some() || leftover {
            self.signal(Signal::KILL);
            is_held = !self.drain(&mut buffer);
        }
        let status = match phase {
            Phase::Killed => self.child.try_wait().ok().flatten(),
            _ => self.child.wait().ok(),
        };
        let signal = status.and_then(|status| status.signal());
        let end = forced.unwrap_or_else(|| match status.and_then(|status| status.code()) {
            Some(code) => ProcessEnd::Exit(code),
            None => ProcessEnd::Signal(signal.unwrap_or_default()),
        });
        ProcessResult {
            end,
            stdout: self.stdout.captured,
            stderr: self.stderr.captured,
            leftover: match (leftover, is_held) {
                (_, true) => Some(Leftover::Running),
                (true, false) => Some(Leftover::Ended),
                (false, false) => None,
            },
            duration: started.elapsed(),
        }
    }

    /// Reads what is still in the pipes of a killed group; whether every process
    /// has closed them.
    fn drain(&mut self, buffer: &mut [u8]) -> bool {
        let deadline = Instant::now().checked_add(PIPE_CLOSE_TIMEOUT);
        loop {
            self.stdout.read_rest(buffer);
            self.stderr.read_rest(buffer);
            if self.stdout.is_done() && self.stderr.is_done() {
                return true;
            }
            if deadline.is_none_or(|deadline| Instant::now() >= deadline) {
                return false;
            }
            self.wait(true, None, deadline);
        }
    }

    /// Writes what the pipe takes now. A program that closes its input has
    /// read enough.
    fn write_input(&mut self, unsent: &mut &[u8]) {
        while let Some(pipe) = &mut self.stdin {
            if unsent.is_empty() {
                self.stdin = None;
                return;
            }
            match pipe.write(unsent) {
                Ok(written) => *unsent = unsent.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == WouldBlock => return,
                Err(error) if error.kind() == Interrupted => {}
                Err(_) => self.stdin = None,
            }
        }
    }

    /// Waits until something is ready or the deadline has passed: exit, stdin,
    /// stdout, stderr, cancel.
    fn wait(
        &self,
        has_exited: bool,
        cancel: Option<&Cancel>,
        deadline: Option<Instant>,
    ) -> [bool; 5] {
        let sources: [(Option<BorrowedFd<'_>>, PollFlags); 4] = [
            ((!has_exited).then(|| self.exit.as_fd()), PollFlags::IN),
            (self.stdin.as_ref().map(AsFd::as_fd), PollFlags::OUT),
            (self.stdout.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.stderr.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
        ];
        let mut fds: Vec<PollFd<'_>> = sources
            .iter()
            .filter_map(|(fd, flags)| fd.map(|fd| PollFd::from_borrowed_fd(fd, *flags)))
            .collect();
        fds.extend(cancel.into_iter().flat_map(Cancel::poll_fds));
        let _ = poll_until(&mut fds, deadline);
        let mut polled = fds.iter().map(|fd| !fd.revents().is_empty());
        let [exit, stdin, stdout, stderr] =
            sources.map(|(fd, _)| fd.is_some() && polled.next().unwrap_or_default());
        [exit, stdin, stdout, stderr, polled.any(|is_ready| is_ready)]
    }
}

fn poll_until(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> rustix::io::Result<usize> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    rustix::event::poll(fds, left.as_ref())
}

impl OutputPipe {
    fn new(pipe: Option<impl Into<OwnedFd>>) -> io::Result<Self> {
        Ok(Self {
            pipe: nonblocking(pipe)?,
            captured: CapturedOutput::default(),
        })
    }

    fn is_done(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads once. Whether anything was read.
    fn capture_available(&mut self, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.captured
                    .append(buffer.get(..count).unwrap_or_default());
                return true;
            }
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    /// Reads what is in the pipe already; a pipe holds less than sixteen reads.
    fn read_rest(&mut self, buffer: &mut [u8]) {
        for _ in 0..16 {
            if !self.capture_available(buffer) {
                break;
            }
        }
    }
}

fn nonblocking(pipe: Option<impl Into<OwnedFd>>) -> io::Result<Option<File>> {
    let Some(pipe) = pipe.map(Into::into) else {
        return Ok(None);
    };
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
    Ok(Some(File::from(pipe)))
}

/// Becomes readable when the process has ended, without reaping it.
fn exit_watch(pid: Pid) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) {
        return Ok(fd);
    }
    let (reader, writer) = io::pipe()?;
    std::thread::Builder::new().spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = waitid(WaitId::Pid(pid), options);
        drop(writer);
    })?;
    Ok(reader.into())
}

/// Whether lines for a POSIX shell can run.
pub fn has_posix_shell() -> bool {
    Path::new("/bin/sh").exists()
}

/// A detached program leaves the session by itself: see [`detach_self`].
pub(super) fn detach(_command: &mut Command) {}

/// Leaves the caller's session, so that the end of the agent does not end this
/// process.
pub fn detach_self() {
    let _ = rustix::process::setsid();
}

pub(super) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Runs `work` on another thread, which is abandoned on a timeout.
pub fn call_with_timeout<T: Send + 'static>(
    timeout: Duration,
    cancel: Option<&Cancel>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessEnd> {
    let failed = |error: io::Error| ProcessEnd::NotStarted(error.to_string());
    let (done, signal) = io::pipe().map_err(failed)?;
    let (sender, result) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .spawn(move || {
            let _ = sender.send(work());
            drop(signal);
        })
        .map_err(failed)?;
    let deadline = Instant::now().checked_add(timeout);
    loop {
        let mut fds = vec![PollFd::new(&done, PollFlags::IN)];
        fds.extend(cancel.into_iter().flat_map(Cancel::poll_fds));
        match poll_until(&mut fds, deadline) {
            Ok(0) => return Err(ProcessEnd::Timeout),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(failed(error.into())),
        }
        if let Ok(value) = result.try_recv() {
            return Ok(value);
        }
        let is_done = fds.first().is_some_and(|fd| !fd.revents().is_empty());
        return Err(if is_done {
            ProcessEnd::NotStarted("it ended without a result".to_owned())
        } else {
            ProcessEnd::Cancelled
        });
    }
}
