//! Processes on Windows: a thread per stream, one channel for all its ends.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::command::Launch;
use super::{Captured, DRAIN, End, Ended, Job, Leftover};

/// Set when the caller is told to stop.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<(Mutex<bool>, Condvar)>);

impl Cancel {
    pub fn set(&self) {
        if let Ok(mut is_set) = self.0.0.lock() {
            *is_set = true;
            self.0.1.notify_all();
        }
    }

    /// Whether it has been told already.
    pub fn is_set(&self) -> bool {
        self.0.0.lock().is_ok_and(|is_set| *is_set)
    }
}

enum News {
    Stdout(Captured),
    Stderr(Captured),
    Exit(Option<i32>),
}

pub fn run(job: &Job<'_>) -> Ended {
    let started = Instant::now();
    let mut command = match &job.launch {
        Launch::Shell(line) => {
            let mut shell = Command::new("cmd.exe");
            std::os::windows::process::CommandExt::raw_arg(
                &mut shell,
                format!("/D /S /C \"{line}\""),
            );
            shell
        }
        Launch::Direct(argv) => {
            let mut direct = Command::new(argv.first().map_or("", String::as_str));
            direct.args(argv.iter().skip(1));
            direct
        }
    };
    let spawned = command
        .current_dir(&job.cwd)
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match spawned {
        Ok(child) => listen(child, job, started),
        Err(error) => Ended {
            end: End::NotStarted(format!("it could not be started: {error}")),
            stdout: Captured::default(),
            stderr: Captured::default(),
            leftover: None,
            duration: started.elapsed(),
        },
    }
}

fn listen(mut child: Child, job: &Job<'_>, started: Instant) -> Ended {
    let (sender, news) = channel();
    let pid = child.id();
    if let Some(mut stdin) = child.stdin.take() {
        let payload = job.stdin.to_vec();
        std::thread::spawn(move || stdin.write_all(&payload));
    }
    read_to(child.stdout.take(), &sender, News::Stdout);
    read_to(child.stderr.take(), &sender, News::Stderr);
    std::thread::spawn(move || {
        let code = child.wait().ok().and_then(|status| status.code());
        let _ = sender.send(News::Exit(code));
    });

    let mut ended = Ended {
        end: End::Timeout,
        stdout: Captured::default(),
        stderr: Captured::default(),
        leftover: None,
        duration: Duration::ZERO,
    };
    let mut open = 2;
    let mut has_exited = false;
    let mut deadline = started + job.timeout;
    while open > 0 || !has_exited {
        match next(&news, deadline) {
            Some(News::Stdout(captured)) => {
                ended.stdout = captured;
                open -= 1;
            }
            Some(News::Stderr(captured)) => {
                ended.stderr = captured;
                open -= 1;
            }
            Some(News::Exit(code)) => {
                ended.end = End::Exit(code.unwrap_or(1));
                has_exited = true;
                deadline = Instant::now() + DRAIN;
            }
            None => {
                ended.leftover = has_exited.then_some(Leftover::Ended);
                kill_tree(pid);
                break;
            }
        }
    }
    ended.duration = started.elapsed();
    ended
}

fn next(news: &Receiver<News>, deadline: Instant) -> Option<News> {
    match news.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(news) => Some(news),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    }
}

fn read_to<R: Read + Send + 'static>(
    pipe: Option<R>,
    sender: &Sender<News>,
    wrap: fn(Captured) -> News,
) {
    let sender = sender.clone();
    std::thread::spawn(move || {
        let mut captured = Captured::default();
        let mut buffer = vec![0_u8; 64 * 1024];
        if let Some(mut pipe) = pipe {
            while let Ok(count) = pipe.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                captured.keep(buffer.get(..count).unwrap_or_default());
            }
        }
        let _ = sender.send(wrap(captured));
    });
}

fn kill_tree(pid: u32) {
    let _ = Command::new("taskkill")
        .args(["/T", "/F", "/PID", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Starts a program that shall outlive us, and hands it its task.
pub fn launch_detached(argv: &[std::ffi::OsString], task: &[u8]) -> io::Result<()> {
    use std::os::windows::process::CommandExt;
    const DETACHED_PROCESS: u32 = 0x0000_0008;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(task)?;
    }
    Ok(())
}

/// A detached process has left the console already.
pub fn detach_self() {}

/// Waits for work on another thread, which cannot be ended, only left.
pub fn call<T: Send + 'static>(
    timeout: Duration,
    _cancel: Option<&Cancel>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, End> {
    let (sender, result) = channel();
    std::thread::spawn(move || sender.send(work()));
    match result.recv_timeout(timeout) {
        Ok(value) => Ok(value),
        Err(RecvTimeoutError::Timeout) => Err(End::Timeout),
        Err(RecvTimeoutError::Disconnected) => {
            Err(End::NotStarted("it ended without a result".to_owned()))
        }
    }
}
