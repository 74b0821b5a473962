//! Processes on Unix: one group per program, one `poll` for all its ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};

use super::command::Launch;
use super::{Captured, DRAIN, End, Ended, GRACE, Job, Leftover};

/// After `SIGKILL` only the kernel can keep a process; it is not waited for
/// longer than this.
const REAP: Duration = Duration::from_secs(2);

/// How long the kernel may take to close the pipes of the killed.
const LAST: Duration = Duration::from_millis(100);

/// How much of a program's output is read at once. Most say a line or nothing,
/// and a larger buffer costs more to clear than it saves.
const READ_AT_ONCE: usize = 8 * 1024;

/// How long a supervisor may take to read its task.
const HAND_OVER: Duration = Duration::from_secs(5);

/// A file descriptor that becomes readable when the caller is told to stop.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<OwnedFd>);

impl Cancel {
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(Arc::new(fd))
    }

    /// Whether it has been told already.
    pub fn is_set(&self) -> bool {
        let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
        let now = Timespec::default();
        rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

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

pub fn run(job: &Job<'_>) -> Ended {
    let started = Instant::now();
    let not_started = |why: String| Ended {
        end: End::NotStarted(why),
        stdout: Captured::default(),
        stderr: Captured::default(),
        leftover: None,
        duration: started.elapsed(),
    };
    let child = match spawn(job) {
        Ok(child) => child,
        Err(why) => return not_started(why),
    };
    match Session::new(child) {
        Ok(session) => session.run(job, started),
        Err(error) => not_started(format!("its pipes could not be set up: {error}")),
    }
}

fn spawn(job: &Job<'_>) -> Result<Child, String> {
    let is_there = job.owns_process && std::env::set_current_dir(&job.cwd).is_ok();
    let prepare = |mut command: Command| {
        if !is_there {
            command.current_dir(&job.cwd);
        }
        command
            .envs(job.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    };
    let argv = match &job.launch {
        Launch::Shell(line) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(line);
            return prepare(shell).map_err(|error| why_not(job, "/bin/sh", &error));
        }
        Launch::Direct(argv) => argv,
    };
    let Some((program, arguments)) = argv.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let mut direct = Command::new(program);
    direct.args(arguments);
    let not_executable_format = rustix::io::Errno::NOEXEC.raw_os_error();
    prepare(direct)
        .or_else(|error| {
            // A script without `#!`: what a shell would have done.
            if error.raw_os_error() != Some(not_executable_format) {
                return Err(error);
            }
            let mut shell = Command::new("/bin/sh");
            shell.args(argv);
            prepare(shell)
        })
        .map_err(|error| why_not(job, program, &error))
}

/// The cause behind a bare "no such file" or "permission denied".
fn why_not(job: &Job<'_>, program: &str, error: &io::Error) -> String {
    if !job.cwd.is_dir() {
        return format!(
            "its working directory `{}` does not exist",
            job.cwd.display()
        );
    }
    let path = Path::new(program);
    match error.kind() {
        io::ErrorKind::NotFound if path.is_file() => match interpreter(path) {
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
    File::open(script)
        .ok()?
        .take(256)
        .read_to_end(&mut head)
        .ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    Some(text.trim().to_owned())
}

struct Session {
    child: Child,
    group: Pid,
    exit: OwnedFd,
    stdin: Option<File>,
    stdout: Stream,
    stderr: Stream,
}

type Ends = (Pid, OwnedFd, Option<File>, Option<File>, Option<File>);

struct Stream {
    pipe: Option<File>,
    captured: Captured,
}

impl Session {
    fn new(mut child: Child) -> io::Result<Self> {
        match Self::ends(&mut child) {
            Ok((group, exit, stdin, stdout, stderr)) => Ok(Self {
                child,
                group,
                exit,
                stdin,
                stdout: Stream::new(stdout),
                stderr: Stream::new(stderr),
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn ends(child: &mut Child) -> io::Result<Ends> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let group = pid.ok_or(io::ErrorKind::InvalidData)?;
        Ok((
            group,
            exit_watch(group)?,
            nonblocking(child.stdin.take().map(OwnedFd::from))?,
            nonblocking(child.stdout.take().map(OwnedFd::from))?,
            nonblocking(child.stderr.take().map(OwnedFd::from))?,
        ))
    }

    fn signal(&self, signal: Signal) {
        // Fails only when nobody is left, which is what is wanted.
        let _ = kill_process_group(self.group, signal);
    }

    fn run(mut self, job: &Job<'_>, started: Instant) -> Ended {
        let mut phase = Phase::Running;
        let mut deadline = started.checked_add(job.timeout);
        let mut forced: Option<End> = None;
        let mut leftover = false;
        let mut buffer = vec![0_u8; READ_AT_ONCE];
        let mut unsent = job.stdin;
        self.feed(&mut unsent);

        loop {
            let has_exited = matches!(phase, Phase::Draining | Phase::Evicting);
            if has_exited && self.stdout.is_done() && self.stderr.is_done() {
                break;
            }
            let ready = self.wait(has_exited, phase == Phase::Running, job.cancel, deadline);
            if ready.stdin {
                self.feed(&mut unsent);
            }
            if ready.stdout {
                self.stdout.read(&mut buffer);
            }
            if ready.stderr {
                self.stderr.read(&mut buffer);
            }
            let now = Instant::now();
            if ready.exit && !has_exited {
                self.stdin = None;
                if phase == Phase::Running {
                    phase = Phase::Draining;
                    deadline = now.checked_add(DRAIN);
                    continue;
                }
                break;
            }
            let is_late = deadline.is_some_and(|deadline| now >= deadline);
            match phase {
                Phase::Running if ready.cancel || is_late => {
                    forced = Some(if ready.cancel {
                        End::Cancelled
                    } else {
                        End::Timeout
                    });
                    self.stdin = None;
                    self.signal(Signal::TERM);
                    phase = Phase::Terminating;
                    deadline = now.checked_add(GRACE);
                }
                Phase::Draining if is_late => {
                    leftover = true;
                    self.signal(Signal::TERM);
                    phase = Phase::Evicting;
                    deadline = now.checked_add(GRACE);
                }
                Phase::Terminating if is_late => {
                    self.signal(Signal::KILL);
                    phase = Phase::Killed;
                    deadline = now.checked_add(REAP);
                }
                Phase::Evicting | Phase::Killed if is_late => break,
                _ => {}
            }
        }

        // The leader is not reaped yet, so its group's number is still its own.
        let mut is_held = false;
        if forced.is_some() || leftover {
            self.signal(Signal::KILL);
            is_held = !self.settle(&mut buffer);
        }
        let status = match phase {
            Phase::Killed => self.child.try_wait().ok().flatten(),
            _ => self.child.wait().ok(),
        };
        let end = forced.unwrap_or_else(|| match status {
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => End::Exit(code),
                (None, signal) => End::Signal(signal.unwrap_or_default()),
            },
            None => End::Signal(0),
        });
        Ended {
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

    /// Reads what is still in the pipes of a killed group; whether nobody holds
    /// them any more.
    fn settle(&mut self, buffer: &mut [u8]) -> bool {
        let deadline = Instant::now().checked_add(LAST);
        loop {
            self.stdout.read_rest(buffer);
            self.stderr.read_rest(buffer);
            if self.stdout.is_done() && self.stderr.is_done() {
                return true;
            }
            if deadline.is_none_or(|deadline| Instant::now() >= deadline) {
                return false;
            }
            self.wait(true, false, None, deadline);
        }
    }

    /// Writes what the pipe takes now. A program that closes its input has
    /// read enough.
    fn feed(&mut self, unsent: &mut &[u8]) {
        while let Some(pipe) = &mut self.stdin {
            if unsent.is_empty() {
                self.stdin = None;
                return;
            }
            match pipe.write(unsent) {
                Ok(written) => *unsent = unsent.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.stdin = None,
            }
        }
    }

    fn wait(
        &self,
        has_exited: bool,
        may_cancel: bool,
        cancel: Option<&Cancel>,
        deadline: Option<Instant>,
    ) -> Ready {
        let sources: [(Option<BorrowedFd<'_>>, PollFlags); 5] = [
            ((!has_exited).then(|| self.exit.as_fd()), PollFlags::IN),
            (self.stdin.as_ref().map(AsFd::as_fd), PollFlags::OUT),
            (self.stdout.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.stderr.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (
                cancel.filter(|_| may_cancel).map(|cancel| cancel.0.as_fd()),
                PollFlags::IN,
            ),
        ];
        let mut fds: Vec<PollFd<'_>> = sources
            .iter()
            .filter_map(|(fd, flags)| fd.map(|fd| PollFd::from_borrowed_fd(fd, *flags)))
            .collect();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let _ = rustix::event::poll(&mut fds, left.as_ref());
        let mut results = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut next = |source: usize| {
            let is_polled = sources.get(source).is_some_and(|(fd, _)| fd.is_some());
            is_polled && results.next().unwrap_or_default()
        };
        Ready {
            exit: next(0),
            stdin: next(1),
            stdout: next(2),
            stderr: next(3),
            cancel: next(4),
        }
    }
}

struct Ready {
    exit: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    cancel: bool,
}

impl Stream {
    fn new(pipe: Option<File>) -> Self {
        Self {
            pipe,
            captured: Captured::default(),
        }
    }

    fn is_done(&self) -> bool {
        self.pipe.is_none()
    }

    /// One read; whether there was something.
    fn read(&mut self, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.captured.keep(buffer.get(..count).unwrap_or_default());
                return true;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    /// What is in the pipe already; a pipe holds less than sixteen reads.
    fn read_rest(&mut self, buffer: &mut [u8]) {
        for _ in 0..16 {
            if !self.read(buffer) {
                break;
            }
        }
    }
}

fn nonblocking(pipe: Option<OwnedFd>) -> io::Result<Option<File>> {
    let Some(pipe) = pipe else {
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
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    std::thread::Builder::new().spawn(move || {
        let _ = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        );
        drop(writer);
    })?;
    Ok(reader)
}

/// Starts a program that shall outlive us, and hands it its task. Its output
/// goes nowhere: an agent waits until everybody has closed its pipes.
pub fn launch_detached(argv: &[std::ffi::OsString], task: &[u8]) -> io::Result<()> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut pipe = nonblocking(child.stdin.take().map(OwnedFd::from))?;
    let limit = Instant::now().checked_add(HAND_OVER);
    let mut unsent = task;
    while let Some(file) = &mut pipe {
        match file.write(unsent) {
            Ok(written) => {
                unsent = unsent.get(written..).unwrap_or_default();
                if unsent.is_empty() {
                    pipe = None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
                let left = left.and_then(|left| Timespec::try_from(left).ok());
                let mut fds = [PollFd::new(file, PollFlags::OUT)];
                if rustix::event::poll(&mut fds, left.as_ref())? == 0 {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => {
                let _ = child.wait();
                return Err(error);
            }
        }
    }
    // In a long-lived caller somebody has to reap it.
    std::thread::Builder::new().spawn(move || child.wait())?;
    Ok(())
}

/// Leaves the caller's session, so that what ends the agent does not end us.
pub fn detach_self() {
    let _ = rustix::process::setsid();
}

/// Waits for work on another thread, which cannot be ended, only left.
pub fn call<T: Send + 'static>(
    timeout: Duration,
    cancel: Option<&Cancel>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, End> {
    let failed = |error: io::Error| End::NotStarted(error.to_string());
    let (done, signal) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| failed(error.into()))?;
    let (sender, result) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .spawn(move || {
            let _ = sender.send(work());
            drop(signal);
        })
        .map_err(failed)?;
    let deadline = Instant::now().checked_add(timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = vec![PollFd::new(&done, PollFlags::IN)];
        fds.extend(cancel.map(|cancel| PollFd::new(&*cancel.0, PollFlags::IN)));
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(0) => return Err(End::Timeout),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(failed(error.into())),
        }
        if let Ok(value) = result.try_recv() {
            return Ok(value);
        }
        let is_done = fds.first().is_some_and(|fd| !fd.revents().is_empty());
        return Err(if is_done {
            End::NotStarted("it ended without a result".to_owned())
        } else {
            End::Cancelled
        });
    }
}
