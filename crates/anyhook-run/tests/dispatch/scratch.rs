//! A project, a home, and the dispatcher in them.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhook_model::Record;
use anyhook_testkit::whole_lines;
use serde_json::{Value, json};

pub struct Scratch {
    _dir: tempfile::TempDir,
    pub base: PathBuf,
    /// Further variables of the dispatcher.
    pub env: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Told {
    pub stdout: String,
    pub stderr: String,
    pub exit: Option<i32>,
}

impl Told {
    /// The answer; it must be one JSON object whatever happened.
    pub fn answer(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{self:?}"));
        assert!(value.is_object(), "{self:?}");
        value
    }

    pub fn message(&self) -> String {
        self.answer()["system_message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn is_deny(&self) -> bool {
        self.answer()["decision"] == "deny"
    }
}

impl Scratch {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in [
            "project/.git",
            "project/.anyhook",
            "config",
            "managed",
            "state",
        ] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        Self {
            _dir: dir,
            base,
            env: vec![("ANYHOOK_TRUST".to_owned(), "all".to_owned())],
        }
    }

    /// A project with one hook for every tool call, which runs `command`.
    pub fn with_hook(command: &str, more: &str) -> Self {
        let scratch = Self::new();
        scratch.manifest(&hook("guard", "before_tool_execute", command, more));
        scratch
    }

    pub fn project(&self) -> PathBuf {
        self.base.join("project")
    }

    pub fn manifest(&self, hooks: &str) {
        self.write("project/.anyhook/hooks.yaml", &manifest(hooks));
    }

    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.base.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn script(&self, path: &str, text: &str) {
        let path = self.write(path, text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub fn event(&self, name: &str) -> Value {
        json!({
            "event": name,
            "source": "canonical",
            "session_id": "session",
            "cwd": self.project(),
            "data": {"tool_name": "shell", "tool_input": {"command": "ls"}},
        })
    }

    pub fn start(&self) -> Child {
        self.start_with(&["--agent", "canonical"])
    }

    pub fn start_with(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anyhook-dispatch-test"));
        command
            .arg("run")
            .args(arguments)
            .current_dir(&self.base)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.base)
            .env("ANYHOOK_CONFIG_DIR", self.base.join("config"))
            .env("ANYHOOK_STATE_DIR", self.base.join("state"))
            .env("ANYHOOK_MANAGED_DIR", self.base.join("managed"))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub fn run_bytes(&self, payload: &[u8]) -> Told {
        let mut child = self.start();
        child.stdin.take().unwrap().write_all(payload).unwrap();
        told(child)
    }

    /// As an agent calls it.
    pub fn run_as(&self, arguments: &[&str], payload: &[u8]) -> Told {
        let mut child = self.start_with(arguments);
        child.stdin.take().unwrap().write_all(payload).unwrap();
        told(child)
    }

    pub fn run(&self, event: &Value) -> Told {
        self.run_bytes(event.to_string().as_bytes())
    }

    /// A tool call.
    pub fn call(&self) -> Told {
        self.run(&self.event("before_tool_execute"))
    }

    pub fn journal(&self) -> Vec<Record> {
        let journal = anyhook_run::journal::Journal::new(&self.base.join("state"));
        let mut files = journal.rotated();
        files.push(journal.folder().join("events.jsonl"));
        files
            .iter()
            .flat_map(|path| whole_lines(path).unwrap())
            .collect()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.base.join(path).exists()
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.base.join(path)).unwrap_or_default()
    }

    /// No process of this scratch is left: all of them have its folder in
    /// their environment.
    pub fn assert_nothing_left(&self) {
        let mark = format!("ANYHOOK_PROJECT_DIR={}", self.project().display());
        until("the end of all hooks", || {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let mut environments = processes.map(|entry| entry.path().join("environ"));
            !environments.any(|path| has_variable(&path, &mark))
        });
    }
}

/// Waits for something that another process does.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

fn has_variable(environ: &Path, mark: &str) -> bool {
    let bytes = std::fs::read(environ).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .any(|entry| entry == mark.as_bytes())
}

pub fn told(child: Child) -> Told {
    let output = child.wait_with_output().unwrap();
    Told {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        exit: output.status.code(),
    }
}

pub fn manifest(hooks: &str) -> String {
    format!("spec: hooks/1.0\nhooks:\n{hooks}")
}

/// A hook of a manifest; `more` are lines such as `blocking: true` and
/// `handler.timeout: 1`.
pub fn hook(name: &str, event: &str, command: &str, more: &str) -> String {
    let mut hook = format!("  - name: {name}\n    event: {event}\n");
    let mut handler = format!("      type: command\n      command: {}\n", json!(command));
    for line in more.lines() {
        match line.strip_prefix("handler.") {
            Some(line) => handler.extend(["      ", line, "\n"]),
            None => hook.extend(["    ", line, "\n"]),
        }
    }
    format!("{hook}    handler:\n{handler}")
}
