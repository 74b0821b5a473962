//! A project with hooks, and anyhook's folders beside it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhook_testkit::codex::{ProxyProcess, TempFolder};
use anyhook_testkit::wait_for;
use serde_json::Value;

pub(crate) struct Project {
    scratch: TempFolder,
}

/// A hook at what Codex asks about, by the shell line that it is.
pub(crate) struct Hook<'a> {
    pub name: &'a str,
    pub blocking: bool,
    pub line: &'a str,
}

impl Project {
    /// Without any hooks.
    pub(crate) fn new() -> Self {
        let scratch = TempFolder::new();
        for folder in ["project/.git", "home", "config", "state", "managed"] {
            std::fs::create_dir_all(scratch.path(folder)).unwrap();
        }
        Self { scratch }
    }

    /// With hooks that are not trusted yet.
    pub(crate) fn untrusted(hooks: &[Hook<'_>]) -> Self {
        let project = Self::new();
        let mut manifest = "spec: hooks/1.0\nhooks:\n".to_owned();
        for event in ["before_tool_execute", "permission_request"] {
            for Hook {
                name,
                blocking,
                line,
            } in hooks
            {
                let line = Value::from(*line);
                writeln!(
                    manifest,
                    "  - name: {name}-{event}\n    event: {event}\n    blocking: {blocking}\n    handler: {{ type: command, command: {line} }}"
                )
                .unwrap();
            }
        }
        std::fs::create_dir(project.folder().join(".anyhook")).unwrap();
        std::fs::write(project.folder().join(".anyhook/hooks.yaml"), manifest).unwrap();
        project
    }

    pub(crate) fn with(hooks: &[Hook<'_>]) -> Self {
        let project = Self::untrusted(hooks);
        let trusted = project.anyhook(&["trust", "--yes"]).output().unwrap();
        assert!(trusted.status.success(), "{trusted:?}");
        project
    }

    /// With one guard that always says this.
    pub(crate) fn saying(stdout: &str) -> Self {
        Self::with(&[Hook {
            name: "guard",
            blocking: true,
            line: &format!("cat > /dev/null; printf '%s' '{stdout}'"),
        }])
    }

    pub(crate) fn folder(&self) -> PathBuf {
        // As the client names it; the binary may know it by its real name.
        self.scratch.path("project")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    pub(crate) fn anyhook(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anyhook"));
        command
            .args(args)
            .current_dir(self.folder())
            .env_remove("ANYHOOK")
            .env_remove("ANYHOOK_TRUST")
            .env_remove("CODEX_HOME")
            .env("HOME", self.path("home"))
            .env("ANYHOOK_CONFIG_DIR", self.path("config"))
            .env("ANYHOOK_STATE_DIR", self.path("state"))
            .env("ANYHOOK_MANAGED_DIR", self.path("managed"));
        command
    }

    /// The proxy before a server that this binary plays.
    pub(crate) fn proxy_command(&self, server: &[&str]) -> Command {
        let mut command = self.anyhook(&["codex", "proxy", "--"]);
        command.arg(std::env::current_exe().unwrap());
        command.arg("play").args(server);
        command
    }

    pub(crate) fn proxy(&self, server: &[&str]) -> ProxyProcess {
        ProxyProcess::spawn(&mut self.proxy_command(server))
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn journal(&self) -> Vec<Value> {
        anyhook_testkit::codex::read_json_lines(&self.state().join("journal/events.jsonl"))
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    let kill = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// A shell line that says who it is and then hangs, with a child.
pub(crate) const HANGS: &str = "cd \"$ANYHOOK_PROJECT_DIR/..\"; sleep 1000 & echo $! > hook.new; echo $$ >> hook.new; mv hook.new hook; wait";

/// Process ids, one per line, as [`HANGS`] writes them to `hook`.
pub(crate) fn pids(path: &Path) -> Vec<u32> {
    wait_for("the process ids", || {
        let text = std::fs::read_to_string(path).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    })
}
