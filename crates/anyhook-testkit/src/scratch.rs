//! A project, a home and anyhook's directories below one temporary folder, and a
//! way to run a binary there with a clean environment: nothing of the user's own
//! leaks in, nothing is left behind.

use crate::reference_model::Answer;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Inherited variables, without which programs do not start or test coverage
/// cannot be measured. All others are withheld.
const INHERITED_VARIABLES: &[&str] = &[
    "PATH",
    "SystemRoot",
    "TEMP",
    "TMP",
    "TMPDIR",
    "LLVM_PROFILE_FILE",
];

/// A process that is forked while a script is being written inherits the open
/// file, and starting the script then fails with "text file busy": parallel tests
/// must not write and fork at the same time.
static FORK_OR_WRITE: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        // What runs here resolves symbolic links.
        let root = anyhook_util::paths::canonicalize(folder.path())?;
        let scratch = Self {
            root,
            _folder: folder,
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

    /// The folder that holds all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The working directory of what is run.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// `ANYHOOK_CONFIG_DIR`
    pub fn config(&self) -> PathBuf {
        self.root.join("config")
    }

    /// `ANYHOOK_STATE_DIR`
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// `ANYHOOK_MANAGED_DIR`
    pub fn managed(&self) -> PathBuf {
        self.root.join("managed")
    }

    /// Writes a file and creates its folders. A relative path starts at the
    /// project; an absolute one must be inside the scratch folder.
    pub fn file(&self, path: impl AsRef<Path>, text: &str) -> io::Result<PathBuf> {
        let path = self.project().join(path);
        let climbs = path.components().any(|part| part.as_os_str() == "..");
        if climbs || !path.starts_with(&self.root) {
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

    /// Writes an executable file.
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
        let bin = bin.as_ref();
        let mut command = Command::new(bin);
        command.current_dir(self.project()).env_clear();
        for name in INHERITED_VARIABLES {
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
            // Not a place that lasts: without this, each installation copies it.
            .env("ANYHOOK_PROGRAM", bin)
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

    /// Starts it with pipes for its standard streams.
    pub fn spawn<S: AsRef<OsStr>>(
        mut self,
        args: impl IntoIterator<Item = S>,
    ) -> io::Result<Child> {
        let _guard = FORK_OR_WRITE.lock().unwrap_or_else(PoisonError::into_inner);
        self.command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Runs it to its end. A process may exit without reading its input.
    pub fn run<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        stdin: &(impl AsRef<[u8]> + ?Sized),
    ) -> io::Result<ProcessOutput> {
        let mut child = self.spawn(args)?;
        let (pipe, stdin) = (child.stdin.take(), stdin.as_ref());
        // Written while the output is read: either pipe may fill up first.
        let (output, written) = std::thread::scope(|scope| {
            let writer = scope.spawn(move || pipe.map_or(Ok(()), |mut p| p.write_all(stdin)));
            (ProcessOutput::wait(child), writer.join())
        });
        match written {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            Ok(_) => {}
            Err(_) => return Err(io::Error::other("the thread that writes stdin panicked")),
        }
        output
    }
}

/// How a process ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutput {
    /// `None` if a signal ended it.
    pub exit: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl ProcessOutput {
    /// Waits for the end of a process and reads its output, which must be UTF-8.
    pub fn wait(child: Child) -> io::Result<Self> {
        let output = child.wait_with_output()?;
        Ok(Self {
            exit: output.status.code(),
            stdout: String::from_utf8(output.stdout).map_err(io::Error::other)?,
            stderr: String::from_utf8(output.stderr).map_err(io::Error::other)?,
        })
    }

    /// For [`crate::reference_model::react`].
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
