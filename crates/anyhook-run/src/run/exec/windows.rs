//! Processes on Windows: a thread per pipe, one channel for all of them.

use std::io::{Read, Write};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::command::CommandLine;
use super::{
    CapturedOutput, Leftover, OUTPUT_DRAIN_TIMEOUT, ProcessEnd, ProcessRequest, ProcessResult,
    SpawnOptions,
};

/// Set when the caller must stop.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

enum ProcessEvent {
    Stdout(CapturedOutput),
    Stderr(CapturedOutput),
    Exit(Option<i32>),
}

pub(super) fn run(request: &ProcessRequest<'_>, options: SpawnOptions) -> ProcessResult {
    let started = Instant::now();
    let mut command = match &request.command_line {
        CommandLine::Shell(line) => {
            let mut shell = Command::new("cmd.exe");
            shell.raw_arg(format!("/D /S /C \"{line}\""));
            shell
        }
        CommandLine::Direct(argv) => {
            let mut direct = Command::new(argv.first().map_or("", String::as_str));
            direct.args(argv.iter().skip(1));
            direct
        }
    };
    let mut cwd = request.cwd.as_path();
    if options.may_run_above_cwd && !cwd.is_dir() {
        let mut existing = cwd.ancestors().filter(|folder| folder.is_dir());
        cwd = existing.next().unwrap_or(cwd);
    }
    options.base_env.apply(&mut command);
    let spawned = command
        .current_dir(cwd)
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match spawned {
        Ok(child) => listen(child, request, started),
        Err(error) => {
            ProcessResult::not_started(format!("it could not be started: {error}"), started)
        }
    }
}

fn listen(mut child: Child, request: &ProcessRequest<'_>, started: Instant) -> ProcessResult {
    let (sender, events) = channel();
    let pid = child.id();
    if let Some(mut stdin) = child.stdin.take() {
        let payload = request.stdin.to_vec();
        std::thread::spawn(move || stdin.write_all(&payload));
    }
    read_to(child.stdout.take(), &sender, ProcessEvent::Stdout);
    read_to(child.stderr.take(), &sender, ProcessEvent::Stderr);
    std::thread::spawn(move || {
        let code = child.wait().ok().and_then(|status| status.code());
        let _ = sender.send(ProcessEvent::Exit(code));
    });

    let mut result = ProcessResult {
        end: ProcessEnd::Timeout,
        stdout: CapturedOutput::default(),
        stderr: CapturedOutput::default(),
        leftover: None,
        duration: Duration::ZERO,
    };
    let mut open = 2;
    let mut has_exited = false;
    let mut deadline = started + request.timeout;
    while open > 0 || !has_exited {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(ProcessEvent::Stdout(captured)) => {
                result.stdout = captured;
                open -= 1;
            }
            Ok(ProcessEvent::Stderr(captured)) => {
                result.stderr = captured;
                open -= 1;
            }
            Ok(ProcessEvent::Exit(code)) => {
                result.end = ProcessEnd::Exit(code.unwrap_or(1));
                has_exited = true;
                deadline = Instant::now() + OUTPUT_DRAIN_TIMEOUT;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                result.leftover = has_exited.then_some(Leftover::Ended);
                kill(pid);
                break;
            }
        }
    }
    result.duration = started.elapsed();
    result
}

fn read_to<R: Read + Send + 'static>(
    pipe: Option<R>,
    sender: &Sender<ProcessEvent>,
    wrap: fn(CapturedOutput) -> ProcessEvent,
) {
    let sender = sender.clone();
    std::thread::spawn(move || {
        let mut captured = CapturedOutput::default();
        let mut buffer = vec![0_u8; 64 * 1024];
        if let Some(mut pipe) = pipe {
            while let Ok(count) = pipe.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                captured.append(buffer.get(..count).unwrap_or_default());
            }
        }
        let _ = sender.send(wrap(captured));
    });
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

/// A detached program outlives the console of this one.
pub(super) fn detach(command: &mut Command) {
    const DETACHED_PROCESS: u32 = 0x0000_0008;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
}

/// A detached process has left the console already.
pub fn detach_self() {}

/// Runs `work` on another thread, which is abandoned on a timeout.
pub fn call_with_timeout<T: Send + 'static>(
    timeout: Duration,
    _cancel: Option<&Cancel>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessEnd> {
    let (sender, result) = channel();
    std::thread::spawn(move || sender.send(work()));
    match result.recv_timeout(timeout) {
        Ok(value) => Ok(value),
        Err(RecvTimeoutError::Timeout) => Err(ProcessEnd::Timeout),
        Err(RecvTimeoutError::Disconnected) => Err(ProcessEnd::NotStarted(
            "it ended without a result".to_owned(),
        )),
    }
}
