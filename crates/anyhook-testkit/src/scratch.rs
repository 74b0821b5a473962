//! A project, a home and anyhook's own directories, all below one temporary
//! folder, and a way to run a binary in there with an environment of its own:
//! nothing of the machine's user leaks in, nothing is left behind.

use crate::oracle::Answer;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Variables of the machine without which programs do not start, or tests
/// cannot be measured. All others are withheld.
const KEPT: &[&str] = &[
    "PATH",
    "SystemRoot",
    "TEMP",
    "TMP",
    "TMPDIR",
    "LLVM_PROFILE_FILE",
];

/// A process that is forked while a script is being written inherits the open
/// file, and starting the script then fails with "text file busy": so tests that
/// run side by side do not write and fork at the same time.
static FORK_OR_WRITE: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub struct Scratch {
    root: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> io::Result<Self> {
        let scratch = Self {
            root: tempfile::tempdir()?,
        };
        for folder in [
            scratch.project(),
            scratch.home(),
            scratch.config(),
            scratch.state(),
            scratch.managed(),
        ] {
            std::fs::create_dir_all(folder)?;
        }
        Ok(scratch)
    }

    /// The working directory of what is run.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// `ANYHOOK_CONFIG_DIR`
    pub fn config(&self) -> PathBuf {
        self.root.path().join("config")
    }

    /// `ANYHOOK_STATE_DIR`
    pub fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// `ANYHOOK_MANAGED_DIR`
    pub fn managed(&self) -> PathBuf {
        self.root.path().join("managed")
    }

    /// Writes a file, with its folders. A relative path is meant from the
    /// project; an absolute one must lie inside the scratch folder.
    pub fn file(&self, path: impl AsRef<Path>, text: &str) -> io::Result<PathBuf> {
        let path = self.project().join(path);
        let climbs = path.components().any(|part| part.as_os_str() == "..");
        if climbs || !path.starts_with(self.root.path()) {
            return Err(io::Error::other(format!(
                "{} is outside the scratch folder",
                path.display()
            )));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let guard = FORK_OR_WRITE.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::write(&path, text)?;
        drop(guard);
        Ok(path)
    }

    /// Writes a file that can be run.
    pub fn exec(&self, path: impl AsRef<Path>, text: &str) -> io::Result<PathBuf> {
        let path = self.file(path, text)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(path)
    }

    /// A call of this binary in the project, with the scratch environment.
    pub fn command(&self, bin: impl AsRef<OsStr>) -> Invocation {
        let mut command = Command::new(bin);
        command.current_dir(self.project()).env_clear();
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let home = self.home();
        command
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("USERPROFILE", &home)
            .env("HOME", home)
            .env("ANYHOOK_CONFIG_DIR", self.config())
            .env("ANYHOOK_STATE_DIR", self.state())
            .env("ANYHOOK_MANAGED_DIR", self.managed())
            .env("NO_COLOR", "1");
        Invocation { command }
    }
}

/// A process that has not been started.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
}

impl Invocation {
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn dir(mut self, path: impl AsRef<Path>) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Runs it to its end. A process that does not read its input is no error.
    pub fn run<S: AsRef<OsStr>>(
        mut self,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> io::Result<Ran> {
        let guard = FORK_OR_WRITE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = self
            .command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        drop(guard);
        let pipe = child.stdin.take();
        // Written beside the reading: either pipe may fill up first.
        let (output, written) = std::thread::scope(|scope| {
            let writer =
                scope.spawn(move || pipe.map_or(Ok(()), |mut p| p.write_all(stdin.as_bytes())));
            (child.wait_with_output(), writer.join())
        });
        match written {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            Ok(_) => {}
            Err(_) => return Err(io::Error::other("the writer of stdin died")),
        }
        let output = output?;
        Ok(Ran {
            exit: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// How a process ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// `None`: ended by a signal.
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// For [`crate::oracle::react`].
    pub fn answer(&self) -> Answer<'_> {
        Answer {
            exit: self.exit,
            stdout: &self.stdout,
            stderr: &self.stderr,
        }
    }

    /// Standard output as JSON.
    pub fn json(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.stdout)
    }
}
