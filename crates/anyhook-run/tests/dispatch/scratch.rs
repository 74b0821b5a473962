//! The dispatcher in a scratch project, called as an agent calls it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhook_model::Record;
use anyhook_testkit::{Invocation, ProcessOutput, Scratch, wait_until, whole_lines};
use serde_json::{Value, json};

pub(crate) struct DispatchScratch {
    scratch: Scratch,
    pub base: PathBuf,
    /// Further variables of the dispatcher.
    pub env: Vec<(String, String)>,
}

/// The output of one dispatcher call.
#[derive(Debug)]
pub(crate) struct DispatchOutput(ProcessOutput);

impl Deref for DispatchOutput {
    type Target = ProcessOutput;

    fn deref(&self) -> &ProcessOutput {
        &self.0
    }
}

impl DispatchOutput {
    pub(crate) fn wait(child: Child) -> Self {
        Self(ProcessOutput::wait(child).unwrap())
    }

    /// The response; it must be one JSON object whatever happened.
    pub(crate) fn response(&self) -> Value {
        let value = self.json().unwrap_or_else(|_| panic!("{self:?}"));
        assert!(value.is_object(), "{self:?}");
        value
    }

    pub(crate) fn message(&self) -> String {
        self.response()["system_message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) fn is_deny(&self) -> bool {
        self.response()["decision"] == "deny"
    }
}

impl DispatchScratch {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new().unwrap();
        for folder in [".git", ".anyhook"] {
            std::fs::create_dir(scratch.project().join(folder)).unwrap();
        }
        Self {
            base: scratch.root().to_owned(),
            scratch,
            env: vec![("ANYHOOK_TRUST".to_owned(), "all".to_owned())],
        }
    }

    /// A project with one hook for every tool call, which runs `command`.
    pub(crate) fn with_hook(command: &str, more: &str) -> Self {
        let scratch = Self::new();
        scratch.manifest(&hook("guard", "before_tool_execute", command, more));
        scratch
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.scratch.project()
    }

    pub(crate) fn manifest(&self, hooks: &str) {
        self.manifest_with("", hooks);
    }

    /// A manifest with further fields beside its hooks.
    pub(crate) fn manifest_with(&self, fields: &str, hooks: &str) {
        let text = [fields, &manifest(hooks)].concat();
        self.write("project/.anyhook/hooks.yaml", &text);
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        self.scratch.file(self.base.join(path), text).unwrap()
    }

    pub(crate) fn script(&self, path: &str, text: &str) {
        self.scratch.exec(self.base.join(path), text).unwrap();
    }

    pub(crate) fn event(&self, name: &str) -> Value {
        json!({
            "event": name,
            "source": "canonical",
            "session_id": "session",
            "cwd": self.project(),
            "data": {"tool_name": "shell", "tool_input": {"command": "ls"}},
        })
    }

    fn dispatcher(&self) -> Invocation {
        let binary = env!("CARGO_BIN_EXE_anyhook-dispatch-test");
        let call = self.scratch.command(binary).dir(&self.base);
        self.env
            .iter()
            .fold(call.env("HOME", &self.base), |call, (name, value)| {
                call.env(name, value)
            })
    }

    pub(crate) fn start(&self) -> Child {
        let arguments = ["run", "--agent", "canonical"];
        self.dispatcher().spawn(arguments).unwrap()
    }

    pub(crate) fn run_bytes(&self, payload: &[u8]) -> DispatchOutput {
        self.run_as(&["--agent", "canonical"], payload)
    }

    /// Runs the dispatcher with the arguments that an agent is configured with.
    pub(crate) fn run_as(&self, arguments: &[&str], payload: &[u8]) -> DispatchOutput {
        let arguments = ["run"].iter().chain(arguments);
        DispatchOutput(self.dispatcher().run(arguments, payload).unwrap())
    }

    /// As [`Self::run_as`], started in another folder.
    pub(crate) fn run_in(
        &self,
        folder: &Path,
        arguments: &[&str],
        payload: &[u8],
    ) -> DispatchOutput {
        let arguments = ["run"].iter().chain(arguments);
        let dispatcher = self.dispatcher().dir(folder);
        DispatchOutput(dispatcher.run(arguments, payload).unwrap())
    }

    pub(crate) fn run(&self, event: &Value) -> DispatchOutput {
        self.run_bytes(event.to_string().as_bytes())
    }

    /// A tool call.
    pub(crate) fn call(&self) -> DispatchOutput {
        self.run(&self.event("before_tool_execute"))
    }

    pub(crate) fn journal(&self) -> Vec<Record> {
        let journal = anyhook_run::record::journal::Journal::new(&self.base.join("state"));
        let mut files = journal.rotated();
        files.push(journal.folder().join("events.jsonl"));
        files
            .iter()
            .flat_map(|path| whole_lines(path).unwrap())
            .collect()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.base.join(path).exists()
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.base.join(path)).unwrap_or_default()
    }

    /// No process of this scratch is left: all of them have its folder in
    /// their environment.
    pub(crate) fn assert_nothing_left(&self) {
        let mark = format!("ANYHOOK_PROJECT_DIR={}", self.project().display());
        wait_until("the end of all hooks", || {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let mut environments = processes.map(|entry| entry.path().join("environ"));
            !environments.any(|path| has_variable(&path, &mark))
        });
    }
}

fn has_variable(environ: &Path, mark: &str) -> bool {
    let bytes = std::fs::read(environ).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .any(|entry| entry == mark.as_bytes())
}

pub(crate) fn manifest(hooks: &str) -> String {
    format!("spec: hooks/1.0\nhooks:\n{hooks}")
}

/// A hook of a manifest; `more` are lines such as `blocking: true` and
/// `handler.timeout: 1`.
pub(crate) fn hook(name: &str, event: &str, command: &str, more: &str) -> String {
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
