//! A machine with an administrator's folder, and calls that must not hang.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhook_testkit::{Invocation, ProcessOutput, Scratch};

use crate::support::{GUARD, MANIFEST, payload};

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_anyhook");
pub(crate) const RUN: [&str; 3] = ["run", "--agent", "claude-code"];

/// Far above what a call takes, and far below what an agent waits.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Runs to the end, or kills it: a hang is the failure that is looked for.
pub(crate) fn run_at_once(invocation: Invocation, args: &[&str], stdin: &str) -> ProcessOutput {
    let mut child = invocation.spawn(args).unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > AT_ONCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    ProcessOutput::wait(child).unwrap()
}

pub(crate) fn dangerous(scratch: &Scratch) -> String {
    payload(scratch, "rm -rf /").to_string()
}

/// A guard of the user or of the administrator, with its script beside it.
pub(crate) fn add_guard(scratch: &Scratch, folder: &Path) {
    scratch.file(folder.join("hooks.yaml"), MANIFEST).unwrap();
    scratch.exec(folder.join("guard.sh"), GUARD).unwrap();
}

/// A machine with an administrator's folder: `/etc` is the scratch folder's `etc`
/// in a mount namespace of its own. `None`, with a word, where that is not allowed.
pub(crate) struct LockedMachine {
    pub(crate) scratch: Scratch,
}

impl LockedMachine {
    pub(crate) fn new(policy: &str) -> Option<Self> {
        let mount = ["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"];
        let is_allowed = Command::new("unshare").args(mount).output();
        if !is_allowed.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: no mount namespace can be made here");
            return None;
        }
        let scratch = Scratch::new().unwrap();
        let root = scratch.root().to_owned();
        fs::set_permissions(&root, PermissionsExt::from_mode(0o755)).unwrap();
        let home = scratch.home().display().to_string();
        let passwd = format!("root:x:0:0::{home}:/bin/sh\nguest:x:12345:12345::{home}:/bin/sh\n");
        scratch.file(root.join("etc/passwd"), &passwd).unwrap();
        scratch
            .file(root.join("etc/anyhook/policy.json"), policy)
            .unwrap();
        Some(Self { scratch })
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.scratch.root().join("etc/anyhook/policy.json")
    }

    /// Runs anyhook with only these variables, as this user.
    pub(crate) fn run(&self, user: u32, setup: &str, variables: &[String]) -> ProcessOutput {
        self.run_with(user, setup, variables, &dangerous(&self.scratch))
    }

    pub(crate) fn run_with(
        &self,
        user: u32,
        setup: &str,
        variables: &[String],
        payload: &str,
    ) -> ProcessOutput {
        self.run_agent("claude-code", user, setup, variables, payload)
    }

    pub(crate) fn run_agent(
        &self,
        agent: &str,
        user: u32,
        setup: &str,
        variables: &[String],
        payload: &str,
    ) -> ProcessOutput {
        let etc = self.scratch.root().join("etc");
        let line = format!(
            "mount --bind {} /etc && {setup} cd {} && exec \"$@\"",
            etc.display(),
            self.scratch.project().display()
        );
        let mut args: Vec<&str> = vec!["-m", "sh", "-c", &line, "sh"];
        let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
        if user != 0 {
            args.extend(["setpriv", &uid, &gid, "--clear-groups"]);
        }
        args.extend(["env", "-i", "PATH=/usr/bin:/bin"]);
        args.extend(variables.iter().map(String::as_str));
        args.push(BIN);
        args.extend(["run", "--agent", agent]);
        let invocation = self.scratch.command("unshare");
        run_at_once(invocation, &args, payload)
    }
}
