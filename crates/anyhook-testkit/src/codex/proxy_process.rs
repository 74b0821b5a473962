//! A running proxy, seen from its client.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::TEST_TIMEOUT;

pub struct ProxyProcess {
    pub child: Child,
    pub input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
}

impl ProxyProcess {
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match out.read_until(b'\n', &mut line) {
                    Ok(read) if read > 0 => drop(sender.send(line)),
                    _ => return,
                }
            }
        });
        let (sender, stderr) = channel();
        let mut err = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            let _ = sender.send(text);
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
            .recv_timeout(TEST_TIMEOUT)
            .expect("a line from the proxy")
    }

    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.line()).unwrap()
    }

    /// All remaining output, until the proxy closes it.
    pub fn remaining_output(&self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TEST_TIMEOUT) {
            all.extend(line);
        }
        all
    }

    /// Closes the input of the proxy.
    pub fn close_input(&mut self) {
        self.input.take();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the end; the exit code and stderr.
    pub fn finish(mut self) -> (i32, String) {
        self.close_input();
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let stderr = self.stderr.recv_timeout(TEST_TIMEOUT).unwrap_or_default();
                return (status.code().unwrap_or(-1), stderr);
            }
            assert!(Instant::now() < deadline, "the proxy does not exit");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this process exists and is not a zombie.
pub fn is_running(pid: u32) -> bool {
    // A zombie has ended; its parent has not reaped it yet.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// A temporary folder, removed on drop.
pub struct TempFolder(tempfile::TempDir);

impl TempFolder {
    #[expect(clippy::new_without_default, reason = "creates a folder")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A path as a command-line argument.
pub fn path_str(path: &Path) -> &str {
    path.to_str().unwrap()
}
