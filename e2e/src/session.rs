//! One session of one client: its files, what the model and the hooks should do, and the outcome.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::cache::Cache;
use crate::client::{Client, FileSpec, Mode};
use crate::error::{AtPath, Error, Result};
use crate::fake_model::Request;
use crate::hook::{CALLS_FILE, HookCall, RULES_FILE, Rule};
use crate::isolation::{self, Isolation};
use crate::job::{
    self, During, JOB_FILE, Job, JobResult, REQUESTS_FILE, RESULT_FILE, STDERR_FILE, STDOUT_FILE,
    Service,
};
use crate::placeholder::Placeholders;
use crate::sandbox::Sandbox;
use crate::scenario::Scenario;
use crate::script::{Purpose, Script};

/// What all sessions of a run share.
#[derive(Clone, Debug)]
pub struct Harness {
    pub cache: Cache,
    pub isolation: Isolation,
    /// The runner's own program, started again inside the isolation.
    pub runner: PathBuf,
    /// The recorder hook.
    pub hook: PathBuf,
    /// The MCP server.
    pub mcp: PathBuf,
    /// Keep the session folders for inspection.
    pub keep: bool,
}

impl Harness {
    /// Finds the cache, and the programs next to the running one.
    pub fn locate() -> Result<Self> {
        Ok(Harness {
            cache: Cache::locate()?,
            isolation: Isolation::detect(),
            runner: find_sibling_program("anyhook-e2e")?,
            hook: find_sibling_program("e2e-hook")?,
            mcp: find_sibling_program("e2e-mcp")?,
            keep: false,
        })
    }
}

/// A program of this build: next to the running one, or a folder above if that is a test.
fn find_sibling_program(name: &'static str) -> Result<PathBuf> {
    let own = env::current_exe().at("find", name)?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or(Error::NotBuilt(name))
}

type Prepare<'a> = Box<dyn FnOnce(&Sandbox) -> Result<()> + 'a>;

/// A session that has not started.
pub struct Session<'a> {
    harness: &'a Harness,
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
    start: Option<String>,
    modes: Vec<String>,
    again: Vec<String>,
    at_once: usize,
    daemon: Option<PathBuf>,
    interrupt_when: Vec<String>,
    ends: Vec<String>,
    ends_within: Duration,
}

impl<'a> Session<'a> {
    pub fn new(harness: &'a Harness, client: &'a Client) -> Self {
        Session {
            harness,
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
            start: None,
            modes: Vec::new(),
            again: Vec::new(),
            at_once: 1,
            daemon: None,
            interrupt_when: Vec::new(),
            ends: Vec::new(),
            ends_within: Duration::from_mins(1),
        }
    }

    /// Where the client starts, instead of in the project; a relative path is below the project.
    pub fn start_in(mut self, folder: impl Into<String>) -> Self {
        self.start = Some(folder.into());
        self
    }

    /// Starts the client in one of its modes; several can be combined if none has a command line of its own.
    pub fn mode(mut self, mode: impl Into<String>) -> Self {
        self.modes.push(mode.into());
        self
    }

    /// Runs the client once more, in this mode.
    pub fn again(mut self, mode: impl Into<String>) -> Self {
        self.again.push(mode.into());
        self
    }

    /// Starts this number of clients at the same time.
    pub fn at_once(mut self, count: usize) -> Self {
        self.at_once = count;
        self
    }

    /// Runs `anyhook serve` of this program beside the client, on the port `@daemon@`.
    pub fn daemon(mut self, program: impl Into<PathBuf>) -> Self {
        self.daemon = Some(program.into());
        self
    }

    /// Presses Ctrl-C when this file appears.
    pub fn interrupt_when(mut self, file: impl Into<String>) -> Self {
        self.interrupt_when.push(file.into());
        self
    }

    /// A file with the id of a process that has to end by itself.
    pub fn ends(mut self, file: impl Into<String>) -> Self {
        self.ends.push(file.into());
        self
    }

    /// How long that may take after the end of the client.
    pub fn ends_within(mut self, time: Duration) -> Self {
        self.ends_within = time;
        self
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

    /// Copies the contents of a folder into the project.
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

    /// Words to leave out of the client's command line.
    pub fn without(mut self, args: &[String]) -> Self {
        self.without.extend_from_slice(args);
        self
    }

    /// Installs the recorder hook for every event of the client, in the client's own configuration.
    pub fn native_hooks(mut self) -> Self {
        self.native_hooks = true;
        self
    }

    /// How the recorder hook answers.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Runs when HOME and project are ready, before the client starts; for commands such as `anyhook install`.
    pub fn prepare(mut self, prepare: impl FnOnce(&Sandbox) -> Result<()> + 'a) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Installs the client if needed, runs the session and cleans up.
    pub fn run(mut self) -> Result<Outcome> {
        let (harness, client) = (self.harness, self.client);
        harness.cache.install_client(client)?;
        let isolation = &harness.isolation;
        let mut first = std::mem::take(&mut self.path);
        first.extend(harness.cache.path_folders(client));
        let mut sandbox = Sandbox::new(&first, harness.keep)?;
        let port = free_port()?;
        let daemon_port = free_port()?;
        let mut placeholders = self.placeholders(&sandbox, port)?;
        placeholders.set("daemon", daemon_port.to_string());

        for (name, value) in isolation.env() {
            sandbox.env.insert(name.to_owned(), value.to_owned());
        }
        for (name, value) in client.setup.env.iter().chain(&self.env) {
            sandbox
                .env
                .insert(name.clone(), placeholders.fill_text(value));
        }
        self.write_files(&sandbox, &placeholders)?;
        let start = match &self.start {
            Some(folder) => sandbox.project.join(placeholders.fill_text(folder)),
            None => sandbox.project.clone(),
        };
        if let Some(prepare) = self.prepare.take() {
            let path = sandbox.env.get("PATH").cloned().unwrap_or_default();
            if let Some(folder) = &self.prepare_path {
                let longer = format!("{}:{path}", folder.display());
                sandbox.env.insert("PATH".to_owned(), longer);
            }
            prepare(&sandbox)?;
            sandbox.env.insert("PATH".to_owned(), path);
        }

        let start = start.canonicalize().at("resolve", start)?;
        sandbox
            .env
            .insert("PWD".to_owned(), start.to_string_lossy().into_owned());
        let fill = |argv: &Vec<String>| -> Vec<String> {
            argv.iter()
                .map(|word| placeholders.fill_text(word))
                .collect()
        };
        let fill_path = |path: &String| sandbox.project.join(placeholders.fill_text(path));
        let mut clients = vec![fill(&self.command_line(&self.modes)?)];
        for mode in &self.again {
            clients.push(fill(&self.command_line(std::slice::from_ref(mode))?));
        }
        if client.setup.tools.rows.contains_key("await_subagent") {
            self.scenario = self.scenario.awaiting_subagents();
        }
        let during = self.interrupt_when.iter().map(fill_path);
        let job = Job {
            port,
            script: Script {
                scenario: fill_scenario(&self.scenario, &placeholders)?,
                tools: client.setup.tools.clone(),
                project: start.clone(),
            },
            before: client.setup.before.iter().map(fill).collect(),
            clients,
            at_once: self.at_once,
            service: self.daemon.as_ref().map(|program| Service {
                argv: vec![
                    program.to_string_lossy().into_owned(),
                    "serve".to_owned(),
                    "--listen".to_owned(),
                    placeholders.fill_text("@daemon@"),
                ],
                port: daemon_port,
            }),
            during: during
                .map(|interrupt_when| During { interrupt_when })
                .collect(),
            ends: self.ends.iter().map(fill_path).collect(),
            ends_ms: u64::try_from(self.ends_within.as_millis()).unwrap_or(u64::MAX),
            env: sandbox.env.clone(),
            instance_env: client
                .setup
                .instance_env
                .iter()
                .map(|(name, value)| (name.clone(), placeholders.fill_text(value)))
                .collect(),
            start,
            run: sandbox.run.clone(),
            namespace: *isolation == Isolation::Namespace,
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            linger_ms: client.setup.linger_ms,
        };
        run_isolated(harness, &job, &sandbox, self.timeout)?;
        Outcome::load(sandbox)
    }

    /// The client's command line in these modes.
    fn command_line(&self, modes: &[String]) -> Result<Vec<String>> {
        let setup = &self.client.setup;
        let mut argv = setup.argv.clone();
        let mut more = self.args.clone();
        for mode in modes {
            let mode = self.client_mode(mode)?;
            if let Some(own) = &mode.argv {
                argv.clone_from(own);
            }
            more.extend(mode.args.iter().cloned());
        }
        argv.retain(|word| !self.without.contains(word));
        argv.extend(more);
        Ok(argv)
    }

    fn client_mode(&self, name: &str) -> Result<&'a Mode> {
        let modes = &self.client.setup.modes;
        modes.get(name).ok_or_else(|| Error::NoMode {
            client: self.client.name(),
            mode: name.to_owned(),
        })
    }

    fn placeholders(&self, sandbox: &Sandbox, port: u16) -> Result<Placeholders> {
        let mut placeholders = Placeholders::default();
        for (name, value) in &self.client.setup.vars {
            placeholders.set(name, value);
        }
        placeholders.set("mcp_program", self.harness.mcp.to_string_lossy());
        placeholders.set("port", port.to_string());
        placeholders.set("prompt", &self.prompt);
        placeholders.set("home", sandbox.home.to_string_lossy());
        placeholders.set("project", sandbox.project.to_string_lossy());
        placeholders.set("version", &self.client.pin.version);
        placeholders.set("hook_program", self.harness.hook.to_string_lossy());
        placeholders.set("run", sandbox.run.to_string_lossy());
        placeholders.set(
            "hook",
            format!(
                "'{}' '{}'",
                self.harness.hook.display(),
                sandbox.run.display()
            ),
        );
        let shared = self.harness.cache.shared_folder(self.client.slug())?;
        placeholders.set("shared", shared.to_string_lossy());
        Ok(placeholders)
    }

    fn write_files(&self, sandbox: &Sandbox, placeholders: &Placeholders) -> Result<()> {
        let setup = &self.client.setup;
        for file in &setup.file {
            self.write_file(sandbox, file, placeholders)?;
        }
        for mode in &self.modes {
            for file in &self.client_mode(mode)?.file {
                self.write_file(sandbox, file, placeholders)?;
            }
        }
        if self.native_hooks {
            for file in &setup.hooks.file {
                let per_event = [Some(&file.path), file.text.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|text| text.contains("@event@"));
                if per_event {
                    for event in &setup.hooks.events {
                        self.write_file(sandbox, file, &placeholders.with("event", event))?;
                    }
                } else {
                    self.write_file(sandbox, file, placeholders)?;
                }
            }
        }
        if let Some(folder) = &self.folder {
            sandbox.copy_into_project(folder)?;
        }
        for (path, text) in &self.files {
            sandbox.write_file(path, &placeholders.fill_text(text), false)?;
        }
        let rules = sandbox.run.join(RULES_FILE);
        let text = serde_json::to_vec_pretty(&self.rules).unwrap_or_default();
        fs::write(&rules, text).at("write", rules)
    }

    fn write_file(
        &self,
        sandbox: &Sandbox,
        file: &FileSpec,
        placeholders: &Placeholders,
    ) -> Result<()> {
        let text = match (&file.text, &file.from) {
            (Some(text), _) => text.clone(),
            (None, Some(name)) => {
                let path = self.client.folder.join(name);
                fs::read_to_string(&path).at("read", path)?
            }
            (None, None) => String::new(),
        };
        sandbox.write_file(
            &placeholders.fill_text(&file.path),
            &placeholders.fill_text(&text),
            file.executable,
        )
    }
}

/// Fills the placeholders in the steps.
fn fill_scenario(scenario: &Scenario, placeholders: &Placeholders) -> Result<Scenario> {
    serde_json::to_value(scenario)
        .and_then(|value| serde_json::from_value(placeholders.fill_value(&value)))
        .map_err(|error| Error::Data {
            path: "the steps of a session".into(),
            message: error.to_string(),
        })
}

/// A port that is free now; inside the namespace no other process can take it.
fn free_port() -> Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .at("find a free port on", "127.0.0.1")
}

/// Starts the runner inside the isolation and waits for it, a little longer than its own timeout.
fn run_isolated(harness: &Harness, job: &Job, sandbox: &Sandbox, timeout: Duration) -> Result<()> {
    let path = sandbox.run.join(JOB_FILE);
    let text = serde_json::to_vec_pretty(job).unwrap_or_default();
    fs::write(&path, text).at("write", &path)?;
    let mut command = harness.isolation.command(&harness.runner);
    let log = sandbox.run.join("job.txt");
    let errors = fs::File::create(&log).at("create", &log)?;
    command
        .arg("run-job")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    let mut child = command.spawn().map_err(|source| Error::Start {
        program: harness.runner.to_string_lossy().into_owned(),
        source,
    })?;
    let patience =
        timeout + Duration::from_millis(job.linger_ms + job.ends_ms) + Duration::from_secs(10);
    let ended = job::wait_until(&mut child, Instant::now() + patience);
    if !matches!(ended, Ok(Some(_))) {
        // Killing the outermost process kills its pid namespace; other leftovers are killed below.
        let _ = child.kill();
        let _ = child.wait();
    }
    isolation::kill_leftover_processes(&sandbox.home);
    if sandbox.run.join(RESULT_FILE).is_file() {
        return Ok(());
    }
    let errors = fs::read_to_string(&log).unwrap_or_default();
    Err(Error::NoResult(errors.trim().to_owned()))
}

/// The outcome of a session. The sandbox folder lives as long as this does.
pub struct Outcome {
    pub result: JobResult,
    pub stdout: String,
    pub stderr: String,
    /// Every request to the model, in order.
    pub requests: Vec<Request>,
    /// Every call of the recorder hook, in order.
    pub hooks: Vec<HookCall>,
    pub sandbox: Sandbox,
}

impl Outcome {
    fn load(sandbox: Sandbox) -> Result<Self> {
        let text = |name: &str| {
            let bytes = fs::read(sandbox.run.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let path = sandbox.run.join(RESULT_FILE);
        let result = serde_json::from_str(&text(RESULT_FILE)).map_err(|error| Error::Data {
            path,
            message: error.to_string(),
        })?;
        Ok(Outcome {
            result,
            stdout: text(STDOUT_FILE),
            stderr: text(STDERR_FILE),
            requests: parse_json_lines(&sandbox.run.join(REQUESTS_FILE), &text(REQUESTS_FILE))?,
            hooks: parse_json_lines(&sandbox.run.join(CALLS_FILE), &text(CALLS_FILE))?,
            sandbox,
        })
    }

    /// The text of a file of the project.
    pub fn file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.sandbox.project.join(path)).ok()
    }

    /// The text of a file of HOME.
    pub fn home_file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.sandbox.home.join(path)).ok()
    }

    /// The requests that were turns of a conversation.
    pub fn turns(&self) -> impl Iterator<Item = &Request> {
        self.requests
            .iter()
            .filter(|request| matches!(request.purpose, Purpose::Turn | Purpose::Unoffered))
    }

    /// The first turn, counted from 0, whose request contained this text.
    pub fn reached_model(&self, text: &str) -> Option<usize> {
        self.turns().position(|request| request.contains_text(text))
    }

    /// The calls of the recorder hook for an event.
    pub fn hook_calls(&self, event: &str) -> impl Iterator<Item = &HookCall> {
        self.hooks.iter().filter(move |call| call.event == event)
    }
}

fn parse_json_lines<T: DeserializeOwned>(path: &Path, text: &str) -> Result<Vec<T>> {
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
