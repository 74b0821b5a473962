//! The part of a session that runs inside the isolation: the fake model, the client, the clock.
//! `anyhook-e2e inside JOB` runs it; the session that started it reads what it leaves in the run folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::error::{AtPath, Error, Result};
use crate::fake_model::FakeModel;
use crate::isolation;
use crate::script::Script;

pub const JOB: &str = "job.json";
pub const ENDING: &str = "ending.json";
pub const REQUESTS: &str = "requests.jsonl";
pub const STDOUT: &str = "stdout.txt";
pub const STDERR: &str = "stderr.txt";

#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub port: u16,
    pub script: Script,
    /// Set-up commands, then the client.
    pub commands: Vec<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub project: PathBuf,
    /// Where job, ending, record and output are.
    pub run: PathBuf,
    pub namespace: bool,
    pub timeout_ms: u64,
    pub linger_ms: u64,
}

/// How the client ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// `None` when it was killed.
    pub exit: Option<i32>,
    pub timed_out: bool,
    pub seconds: f64,
}

impl Job {
    pub fn read(path: &Path) -> Result<Job> {
        let text = fs::read(path).at("read", path)?;
        serde_json::from_slice(&text).map_err(|error| Error::Data {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// Runs the job to its end and writes the ending.
    pub fn perform(&self) -> Result<()> {
        if self.namespace {
            isolation::furnish(&self.run);
        }
        let log = self.run.join(REQUESTS);
        let model = FakeModel::start(self.port, self.script.clone(), Some(&log))
            .at("serve requests into", &log)?;
        let began = Instant::now();
        let deadline = began + Duration::from_millis(self.timeout_ms);
        let (mut exit, mut timed_out) = (None, false);
        for argv in &self.commands {
            let mut child = self.spawn(argv)?;
            let status = wait_until(&mut child, deadline).at("wait for", &self.run)?;
            timed_out = status.is_none();
            exit = status.and_then(|status| status.code());
            if exit != Some(0) {
                end_group(&mut child);
                break;
            }
        }
        let ending = Ending {
            exit,
            timed_out,
            seconds: began.elapsed().as_secs_f64(),
        };
        thread::sleep(Duration::from_millis(self.linger_ms));
        drop(model);
        let path = self.run.join(ENDING);
        let text = serde_json::to_vec(&ending).unwrap_or_default();
        fs::write(&path, text).at("write", path)
    }

    fn spawn(&self, argv: &[String]) -> Result<Child> {
        let mut command = if self.namespace {
            isolation::as_user(argv)
        } else {
            let mut command = Command::new(argv.first().map_or("", String::as_str));
            command.args(argv.iter().skip(1));
            command
        };
        command
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.project)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(self.append(STDOUT)?)
            .stderr(self.append(STDERR)?);
        start(&mut command)
    }

    fn append(&self, name: &str) -> Result<File> {
        let path = self.run.join(name);
        let file = File::options().create(true).append(true).open(&path);
        file.at("open", path)
    }
}

fn start(command: &mut Command) -> Result<Child> {
    command.spawn().map_err(|source| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

/// Waits for a child; `None` when the deadline passed first.
pub(crate) fn wait_until(
    child: &mut Child,
    deadline: Instant,
) -> io::Result<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a child and all that it started in its process group.
fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Nothing is left to kill when all of them ended by themselves.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}
