//! One session of one client: what is put in place, what the model and the hooks shall do, and what came of it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::cache::Cache;
use crate::client::{Client, FileSpec};
use crate::error::{AtPath, Error, Result};
use crate::fake_model::Request;
use crate::hook::{HookCall, RECORD, RULES, Rule};
use crate::inside::{self, ENDING, Ending, JOB, Job, REQUESTS, STDERR, STDOUT};
use crate::isolation::{self, Isolation};
use crate::placeholder::Fill;
use crate::scenario::Scenario;
use crate::scratch::Scratch;
use crate::script::{Purpose, Script};

/// What all sessions of a run share.
#[derive(Clone, Debug)]
pub struct Lab {
    pub cache: Cache,
    pub isolation: Isolation,
    /// The runner's own program, started again inside the isolation.
    pub runner: PathBuf,
    /// The recorder hook.
    pub hook: PathBuf,
    /// Leave the folders of sessions in place, to look into them.
    pub keep: bool,
}

impl Lab {
    /// Finds the cache, and the programs beside the one that runs now.
    pub fn locate() -> Result<Self> {
        Ok(Lab {
            cache: Cache::locate()?,
            isolation: Isolation::detect(),
            runner: sibling("anyhook-e2e")?,
            hook: sibling("e2e-hook")?,
            keep: false,
        })
    }
}

/// A program of this build: beside the running one, or a folder above when that is a test.
fn sibling(name: &'static str) -> Result<PathBuf> {
    let own = env::current_exe().at("find", name)?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or(Error::NotBuilt(name))
}

type Prepare<'a> = Box<dyn FnOnce(&Scratch) -> Result<()> + 'a>;

/// A session to be run.
pub struct Session<'a> {
    lab: &'a Lab,
    client: &'a Client,
    scenario: Scenario,
    prompt: String,
    files: Vec<(String, String)>,
    env: BTreeMap<String, String>,
    path: Vec<PathBuf>,
    prepare_path: Option<PathBuf>,
    args: Vec<String>,
    without: Vec<String>,
    folder: Option<PathBuf>,
    native_hooks: bool,
    rules: Vec<Rule>,
    prepare: Option<Prepare<'a>>,
    timeout: Duration,
}

impl<'a> Session<'a> {
    pub fn new(lab: &'a Lab, client: &'a Client) -> Self {
        Session {
            lab,
            client,
            scenario: Scenario::new([]),
            prompt: "Do what there is to do.".to_owned(),
            files: Vec::new(),
            env: BTreeMap::new(),
            path: Vec::new(),
            prepare_path: None,
            args: Vec::new(),
            without: Vec::new(),
            folder: None,
            native_hooks: false,
            rules: Vec::new(),
            prepare: None,
            timeout: Duration::from_mins(3),
        }
    }

    pub fn scenario(mut self, scenario: Scenario) -> Self {
        self.scenario = scenario;
        self
    }

    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    pub fn project_file(mut self, path: &str, text: impl Into<String>) -> Self {
        self.files.push((format!("./{path}"), text.into()));
        self
    }

    pub fn home_file(mut self, path: &str, text: impl Into<String>) -> Self {
        self.files.push((format!("~/{path}"), text.into()));
        self
    }

    /// Copies a folder with all that is in it into the project.
    pub fn project(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// A variable; `@port@`, `@home@`, `@project@` and the like are filled in.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// A folder that comes first in the PATH of the client and of `prepare`.
    pub fn path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.path.push(folder.into());
        self
    }

    /// A folder that comes first of all in the PATH.
    pub fn path_first(mut self, folder: impl Into<PathBuf>) -> Self {
        self.path.insert(0, folder.into());
        self
    }

    /// A folder that comes first in the PATH of `prepare`, and is not in that of the client.
    pub fn prepare_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.prepare_path = Some(folder.into());
        self
    }

    /// More arguments at the end of the client's command line.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Words that are left out of the client's command line.
    pub fn without(mut self, args: &[String]) -> Self {
        self.without.extend_from_slice(args);
        self
    }

    /// Puts the recorder hook on every event of the client, in the client's own configuration.
    pub fn native_hooks(mut self) -> Self {
        self.native_hooks = true;
        self
    }

    /// How the recorder hook answers.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Runs before the client starts, when HOME and project are ready; for commands such as `anyhook install`.
    pub fn prepare(mut self, prepare: impl FnOnce(&Scratch) -> Result<()> + 'a) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Installs the client if need be, runs the session to its end and clears up after it.
    pub fn run(mut self) -> Result<Outcome> {
        let (lab, client) = (self.lab, self.client);
        lab.cache.install_client(client)?;
        let isolation = &lab.isolation;
        let mut first = std::mem::take(&mut self.path);
        first.extend(lab.cache.programs(client));
        let mut scratch = Scratch::new(&first, lab.keep)?;
        let port = free_port()?;
        let fill = self.fill(&scratch, port)?;

        for (name, value) in isolation.env() {
            scratch.env.insert(name.to_owned(), value.to_owned());
        }
        for (name, value) in client.drive.env.iter().chain(&self.env) {
            scratch.env.insert(name.clone(), fill.text(value));
        }
        self.put_files(&scratch, &fill)?;
        if let Some(prepare) = self.prepare.take() {
            let path = scratch.env.get("PATH").cloned().unwrap_or_default();
            if let Some(folder) = &self.prepare_path {
                let longer = format!("{}:{path}", folder.display());
                scratch.env.insert("PATH".to_owned(), longer);
            }
            prepare(&scratch)?;
            scratch.env.insert("PATH".to_owned(), path);
        }

        let mut argv = client.drive.argv.clone();
        argv.retain(|word| !self.without.contains(word));
        argv.append(&mut self.args);
        let job = Job {
            port,
            script: Script {
                scenario: self.scenario,
                tools: client.drive.tools.clone(),
                project: scratch.project.clone(),
            },
            commands: client
                .drive
                .before
                .iter()
                .chain([&argv])
                .map(|argv| argv.iter().map(|word| fill.text(word)).collect())
                .collect(),
            env: scratch.env.clone(),
            project: scratch.project.clone(),
            run: scratch.run.clone(),
            namespace: *isolation == Isolation::Namespace,
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            linger_ms: client.drive.linger_ms,
        };
        perform(lab, &job, &scratch, self.timeout)?;
        Outcome::read(scratch)
    }

    fn fill(&self, scratch: &Scratch, port: u16) -> Result<Fill> {
        let mut fill = Fill::default();
        fill.set("port", port.to_string());
        fill.set("prompt", &self.prompt);
        fill.set("home", scratch.home.to_string_lossy());
        fill.set("project", scratch.project.to_string_lossy());
        fill.set("version", &self.client.pin.version);
        fill.set("hook_program", self.lab.hook.to_string_lossy());
        fill.set("run", scratch.run.to_string_lossy());
        fill.set(
            "hook",
            format!("'{}' '{}'", self.lab.hook.display(), scratch.run.display()),
        );
        let shared = self.lab.cache.shared(self.client.slug())?;
        fill.set("shared", shared.to_string_lossy());
        Ok(fill)
    }

    fn put_files(&self, scratch: &Scratch, fill: &Fill) -> Result<()> {
        let drive = &self.client.drive;
        for file in &drive.file {
            self.put(scratch, file, fill)?;
        }
        if self.native_hooks {
            for file in &drive.hooks.file {
                let per_event = [Some(&file.path), file.text.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|text| text.contains("@event@"));
                if per_event {
                    for event in &drive.hooks.events {
                        self.put(scratch, file, &fill.with("event", event))?;
                    }
                } else {
                    self.put(scratch, file, fill)?;
                }
            }
        }
        if let Some(folder) = &self.folder {
            scratch.copy(folder)?;
        }
        for (path, text) in &self.files {
            scratch.put(path, text, false)?;
        }
        let rules = scratch.run.join(RULES);
        let text = serde_json::to_vec_pretty(&self.rules).unwrap_or_default();
        fs::write(&rules, text).at("write", rules)
    }

    fn put(&self, scratch: &Scratch, file: &FileSpec, fill: &Fill) -> Result<()> {
        let text = match (&file.text, &file.from) {
            (Some(text), _) => text.clone(),
            (None, Some(name)) => {
                let path = self.client.folder.join(name);
                fs::read_to_string(&path).at("read", path)?
            }
            (None, None) => String::new(),
        };
        scratch.put(&fill.text(&file.path), &fill.text(&text), file.executable)
    }
}

/// A port that nobody has now; inside the namespace nobody can take it either.
fn free_port() -> Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .at("find a free port on", "127.0.0.1")
}

/// Starts the runner inside the isolation and waits for it, with a little more patience than it has itself.
fn perform(lab: &Lab, job: &Job, scratch: &Scratch, timeout: Duration) -> Result<()> {
    let path = scratch.run.join(JOB);
    let text = serde_json::to_vec_pretty(job).unwrap_or_default();
    fs::write(&path, text).at("write", &path)?;
    let mut command = lab.isolation.enter(&lab.runner);
    let log = scratch.run.join("inside.txt");
    let errors = fs::File::create(&log).at("create", &log)?;
    command
        .arg("inside")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    let mut child = command.spawn().map_err(|source| Error::Start {
        program: lab.runner.to_string_lossy().into_owned(),
        source,
    })?;
    let patience = timeout + Duration::from_millis(job.linger_ms) + Duration::from_secs(10);
    let ended = inside::wait_until(&mut child, Instant::now() + patience);
    if !matches!(ended, Ok(Some(_))) {
        // Taking the outermost process takes the whole pid namespace; the sweep takes the rest.
        let _ = child.kill();
        let _ = child.wait();
    }
    isolation::sweep(&scratch.home);
    if scratch.run.join(ENDING).is_file() {
        return Ok(());
    }
    let told = fs::read_to_string(&log).unwrap_or_default();
    Err(Error::NoResult(told.trim().to_owned()))
}

/// What came of a session. The scratch folder lives as long as this does.
pub struct Outcome {
    pub ending: Ending,
    pub stdout: String,
    pub stderr: String,
    /// Every request to the model, in order.
    pub requests: Vec<Request>,
    /// Every call of the recorder hook, in order.
    pub hooks: Vec<HookCall>,
    pub scratch: Scratch,
}

impl Outcome {
    fn read(scratch: Scratch) -> Result<Self> {
        let text = |name: &str| {
            let bytes = fs::read(scratch.run.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let path = scratch.run.join(ENDING);
        let ending = serde_json::from_str(&text(ENDING)).map_err(|error| Error::Data {
            path,
            message: error.to_string(),
        })?;
        Ok(Outcome {
            ending,
            stdout: text(STDOUT),
            stderr: text(STDERR),
            requests: lines(&scratch.run.join(REQUESTS), &text(REQUESTS))?,
            hooks: lines(&scratch.run.join(RECORD), &text(RECORD))?,
            scratch,
        })
    }

    /// The text of a file of the project.
    pub fn file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.scratch.project.join(path)).ok()
    }

    /// The text of a file of HOME.
    pub fn home_file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.scratch.home.join(path)).ok()
    }

    /// The requests that were turns of a conversation.
    pub fn turns(&self) -> impl Iterator<Item = &Request> {
        self.requests
            .iter()
            .filter(|request| matches!(request.purpose, Purpose::Turn | Purpose::Unoffered))
    }

    /// The first turn, counted from 0, whose request held this text.
    pub fn reached_model(&self, text: &str) -> Option<usize> {
        self.turns().position(|request| request.holds(text))
    }

    /// The calls of the recorder hook for an event.
    pub fn hook_calls(&self, event: &str) -> impl Iterator<Item = &HookCall> {
        self.hooks.iter().filter(move |call| call.event == event)
    }
}

fn lines<T: DeserializeOwned>(path: &Path, text: &str) -> Result<Vec<T>> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            serde_json::from_str(line).map_err(|error| Error::Data {
                path: path.to_owned(),
                message: error.to_string(),
            })
        })
        .collect()
}
