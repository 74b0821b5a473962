//! The part of a session that runs inside the isolation: the fake model, the client, the timeout.
//! `anyhook-e2e run-job JOB_FILE` runs it; the session that started it reads the files in the run folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
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
use crate::placeholder::Placeholders;
use crate::script::Script;

pub const JOB_FILE: &str = "job.json";
pub const RESULT_FILE: &str = "result.json";
pub const REQUESTS_FILE: &str = "requests.jsonl";
pub const STDOUT_FILE: &str = "stdout.txt";
pub const STDERR_FILE: &str = "stderr.txt";

#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub port: u16,
    pub script: Script,
    /// Set-up commands.
    pub before: Vec<Vec<String>>,
    /// The command lines of the client, one after the other.
    pub clients: Vec<Vec<String>>,
    /// How many of each run at the same time.
    pub at_once: usize,
    pub service: Option<Service>,
    pub during: Vec<During>,
    /// Files with the id of a process that has to end by itself, and how long that may take.
    pub ends: Vec<PathBuf>,
    pub ends_ms: u64,
    pub env: BTreeMap<String, String>,
    /// More variables of each client where several run at once; `@instance@` is its number.
    pub instance_env: BTreeMap<String, String>,
    /// Where the client is started.
    pub start: PathBuf,
    /// The folder of job, result, request log and output.
    pub run: PathBuf,
    pub namespace: bool,
    pub timeout_ms: u64,
    pub linger_ms: u64,
}

/// A server that runs beside the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Service {
    pub argv: Vec<String>,
    /// It is ready when something listens here.
    pub port: u16,
}

/// Something that happens while the client runs: when this file appears, the user presses Ctrl-C.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct During {
    pub interrupt_when: PathBuf,
}

/// How the client ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobResult {
    /// `None` when it was killed.
    pub exit: Option<i32>,
    pub timed_out: bool,
    pub seconds: f64,
    /// How often Ctrl-C was pressed.
    #[serde(default)]
    pub interrupts: usize,
    /// Processes of `ends` that did not end.
    #[serde(default)]
    pub left: Vec<PathBuf>,
}

/// The client is given this time to end after Ctrl-C, before it is pressed again.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(15);
const INTERRUPT_LIMIT: usize = 3;

/// The process id of the service.
pub const SERVICE_PID_FILE: &str = "service.pid";

impl Job {
    pub fn load(path: &Path) -> Result<Job> {
        let text = fs::read(path).at("read", path)?;
        serde_json::from_slice(&text).map_err(|error| Error::Data {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// Runs the job to its end and writes the result.
    pub fn run(&self) -> Result<()> {
        if self.namespace {
            isolation::prepare_namespace(&self.run);
        }
        let log = self.run.join(REQUESTS_FILE);
        let model = FakeModel::start(self.port, self.script.clone(), Some(&log))
            .at("serve requests into", &log)?;
        let began = Instant::now();
        let deadline = began + Duration::from_millis(self.timeout_ms);
        let mut service = match &self.service {
            Some(service) => Some(self.start_service(service, deadline)?),
            None => None,
        };
        let mut result = JobResult {
            exit: None,
            timed_out: false,
            seconds: 0.0,
            interrupts: 0,
            left: Vec::new(),
        };
        let before = self.before.iter().map(|argv| (argv, 1));
        let clients = self.clients.iter().map(|argv| (argv, self.at_once));
        for (argv, count) in before.chain(clients) {
            self.run_command(argv, count, deadline, &mut result)?;
            if result.exit != Some(0) {
                break;
            }
        }
        result.seconds = began.elapsed().as_secs_f64();
        result.left = self.wait_for_ends();
        thread::sleep(Duration::from_millis(self.linger_ms));
        if let Some(service) = &mut service {
            kill_group(service);
        }
        drop(model);
        let path = self.run.join(RESULT_FILE);
        let text = serde_json::to_vec(&result).unwrap_or_default();
        fs::write(&path, text).at("write", path)
    }

    /// Runs a command, `count` times at once, until all of them have ended.
    fn run_command(
        &self,
        argv: &[String],
        count: usize,
        deadline: Instant,
        result: &mut JobResult,
    ) -> Result<()> {
        let mut children = Vec::new();
        for instance in 0..count {
            let mut command = self.command(argv)?;
            if count > 1 {
                let mut placeholders = Placeholders::default();
                placeholders.set("instance", instance.to_string());
                for (name, value) in &self.instance_env {
                    command.env(name, placeholders.fill_text(value));
                }
            }
            children.push(spawn_command(&mut command)?);
        }
        let mut interrupted: Option<Instant> = None;
        result.exit = Some(0);
        for child in &mut children {
            let status = loop {
                if let Some(status) = child.try_wait().at("wait for", &self.run)? {
                    break Some(status);
                }
                if Instant::now() >= deadline {
                    break None;
                }
                let due = interrupted.is_none_or(|last| last.elapsed() > INTERRUPT_PATIENCE);
                let wanted = self.during.iter().any(|act| act.interrupt_when.exists());
                if wanted && due && result.interrupts < INTERRUPT_LIMIT {
                    signal_group(child, Signal::INT);
                    result.interrupts += 1;
                    interrupted = Some(Instant::now());
                }
                thread::sleep(Duration::from_millis(10));
            };
            if status.is_none() {
                result.timed_out = true;
                kill_group(child);
            }
            let exit = status.and_then(|status| status.code());
            if exit != Some(0) {
                result.exit = exit;
            }
        }
        Ok(())
    }

    fn start_service(&self, service: &Service, deadline: Instant) -> Result<Child> {
        let mut child = spawn_command(&mut self.command(&service.argv)?)?;
        let pid = self.run.join(SERVICE_PID_FILE);
        fs::write(&pid, child.id().to_string()).at("write", pid)?;
        while TcpStream::connect(("127.0.0.1", service.port)).is_err() {
            let ended = child.try_wait().at("wait for", &self.run)?.is_some();
            if ended || Instant::now() >= deadline {
                return Err(Error::NoResult(format!(
                    "`{}` does not listen",
                    service.argv.join(" ")
                )));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(child)
    }

    /// Waits for the processes that should end by themselves; those that did not.
    fn wait_for_ends(&self) -> Vec<PathBuf> {
        let deadline = Instant::now() + Duration::from_millis(self.ends_ms);
        loop {
            let left: Vec<PathBuf> = self
                .ends
                .iter()
                .filter(|file| is_running(file))
                .cloned()
                .collect();
            if left.is_empty() || Instant::now() >= deadline {
                return left;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, argv: &[String]) -> Result<Command> {
        let mut command = if self.namespace {
            isolation::user_command(argv)
        } else {
            let mut command = Command::new(argv.first().map_or("", String::as_str));
            command.args(argv.iter().skip(1));
            command
        };
        command
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.start)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(self.open_output(STDOUT_FILE)?)
            .stderr(self.open_output(STDERR_FILE)?);
        Ok(command)
    }

    fn open_output(&self, name: &str) -> Result<File> {
        let path = self.run.join(name);
        let file = File::options().create(true).append(true).open(&path);
        file.at("open", path)
    }
}

/// Whether the process whose id a file holds exists and is not a zombie, which only waits to be collected.
fn is_running(file: &Path) -> bool {
    let Ok(pid) = fs::read_to_string(file) else {
        return false;
    };
    let Ok(pid) = pid.trim().parse::<u32>() else {
        return false;
    };
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(')').next().unwrap_or_default();
    !state.trim_start().starts_with(['Z', 'X'])
}

fn spawn_command(command: &mut Command) -> Result<Child> {
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

fn signal_group(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // All of them may have exited already.
        let _ = kill_process_group(group, signal);
    }
}

/// Kills a child and its process group.
fn kill_group(child: &mut Child) {
    signal_group(child, Signal::KILL);
    let _ = child.wait();
}
