//! A proxy process and its client's end. Also used by the tests of the command
//! line.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything here takes; only a failing test waits for it.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Proxied {
    pub child: Child,
    pub input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
}

impl Proxied {
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (say, lines) = channel();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match out.read_until(b'\n', &mut line) {
                    Ok(read) if read > 0 => drop(say.send(line)),
                    _ => return,
                }
            }
        });
        let (say, stderr) = channel();
        let mut err = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            let _ = say.send(text);
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            stderr,
        }
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn line(&self) -> Vec<u8> {
        self.lines
            .recv_timeout(LONG)
            .expect("a line from the proxy")
    }

    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.line()).unwrap()
    }

    /// Everything that still comes, until the proxy closes its output.
    pub fn rest(&self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(LONG) {
            all.extend(line);
        }
        all
    }

    pub fn leave(&mut self) {
        self.input.take();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// The exit code and what was said on stderr.
    pub fn end(mut self) -> (i32, String) {
        self.leave();
        let by = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let stderr = self.stderr.recv_timeout(LONG).unwrap_or_default();
                return (status.code().unwrap_or(-1), stderr);
            }
            assert!(Instant::now() < by, "the proxy does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn read_lines(path: &Path) -> Vec<Value> {
    anyhook_testkit::whole_lines(path).unwrap()
}

/// Waits until `found` gives something.
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let by = Instant::now() + LONG;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < by, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn is_running(pid: u32) -> bool {
    // A zombie has ended; only its parent has not noticed.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The path as an argument of an actor.
pub fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}
