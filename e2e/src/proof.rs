//! The checks of anyhook in a real client. Most share one session, one tool call each; what ends a run early, or
//! concerns its beginning, has a separate session.

mod events;
mod main_session;
mod separate_sessions;
mod tokens;
mod tool_call_cost;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhook_model::Record;

use self::separate_sessions::{CONVERTED_GUARDS, ConvertedGuard};
use crate::bridge::{self, Program};
use crate::client::Client;
use crate::error::Result;
use crate::expect::{CheckResult, Replace, Sabotage, TokenReport};
use crate::pool::map_parallel;
use crate::report::{Check, Verdict};
use crate::scenario::Step;
use crate::script::Purpose;
use crate::session::{Harness, Outcome, Session};
use crate::situation::{Situation, run_situation};

pub use self::tool_call_cost::ToolCallCost;

/// The names of the checks, in the order of the page.
pub const CHECK_NAMES: [&str; 26] = [
    "events",
    "tools",
    "session id",
    "deny",
    "deny reason",
    "rewrite",
    "context: session start",
    "context: prompt",
    "context: before tool",
    "context: after tool",
    "prompt block",
    "prompt block reason",
    "stop retry",
    "Claude script",
    "Claude script's reason",
    "hook hangs",
    "hook crashes",
    "hook prints garbage",
    "OpenHook stream",
    "tokens",
    "native deny",
    "native deny reason",
    "converted Claude guard",
    "converted Claude guard's reason",
    "uninstall: files",
    "uninstall: session",
];

/// A client, and the anyhook to check in it.
pub struct Proof<'a> {
    pub harness: &'a Harness,
    pub client: &'a Client,
    pub program: &'a Program,
}

/// The line about a session folder that is kept: the session's name, and the folder.
pub type Kept<'a> = &'a (dyn Fn(&str, &Path) + Sync);

/// Sessions that need nothing of each other.
enum Task<'a> {
    MainSession,
    DenyAlone,
    ClaudeScriptAlone,
    PromptBlock,
    Converted(&'static ConvertedGuard),
    Uninstall,
    Tokens(&'a TokenReport),
    Situation(&'a Situation),
}

impl Proof<'_> {
    /// Runs every check, `jobs` sessions at a time.
    /// With `only_these`, nothing but the situations.
    pub fn run(
        &self,
        situations: &[Situation],
        only_these: bool,
        jobs: usize,
        kept: Kept<'_>,
    ) -> Result<Vec<Check>> {
        let mut tasks = Vec::new();
        let only = self.client.only_situations();
        if only.is_none() && !only_these {
            tasks.push(Task::MainSession);
            if self.client.expect.deny_ends_run {
                tasks.extend([Task::DenyAlone, Task::ClaudeScriptAlone]);
            }
            tasks.extend([Task::PromptBlock, Task::Uninstall]);
            tasks.extend(self.client.expect.tokens.iter().map(Task::Tokens));
            tasks.extend(CONVERTED_GUARDS.iter().map(Task::Converted));
        }
        let situations = situations
            .iter()
            .filter(|situation| only.is_none_or(|only| only.contains(&situation.name)))
            .filter(|situation| {
                let slug = self.client.slug();
                situation.clients.is_empty() || situation.clients.iter().any(|one| one == slug)
            });
        tasks.extend(situations.map(Task::Situation));
        let results = map_parallel(&tasks, jobs, |task| match task {
            Task::MainSession => self.main_session(None, kept),
            Task::DenyAlone => self.deny_alone(kept),
            Task::ClaudeScriptAlone => self.claude_script_alone(kept),
            Task::PromptBlock => self.prompt_block(kept),
            Task::Converted(guard) => self.converted(guard, kept),
            Task::Uninstall => self.uninstall(kept),
            Task::Tokens(report) => self.tokens(report, kept),
            Task::Situation(situation) => run_situation(self, situation, kept),
        });
        let mut checks = Vec::new();
        for result in results {
            checks.extend(result?);
        }
        // The order of the page; situations come after it, in their own.
        checks.sort_by_key(|check| {
            let known = CHECK_NAMES.iter().position(|name| *name == check.name);
            known.unwrap_or(CHECK_NAMES.len())
        });
        Ok(checks)
    }

    /// Runs the main session with a rendering broken on purpose; the checks that should have failed and did not.
    pub fn run_sabotaged(&self, sabotage: &Sabotage) -> Result<Vec<String>> {
        let checks = self.main_session(Some(sabotage), &|_, _| {})?;
        let red = sabotage
            .red
            .iter()
            .filter(|name| !has_failed(&checks, name));
        Ok(red.cloned().collect())
    }

    /// Runs the main session through the sabotage mechanism without changing anything; the checks that failed
    /// anyway, of those that a sabotage should fail.
    pub fn run_control(&self) -> Result<Vec<String>> {
        let harmless = Sabotage {
            name: String::new(),
            answer: Some(Replace {
                from: "text that never occurs".to_owned(),
                to: String::new(),
            }),
            installed: None,
            red: Vec::new(),
        };
        let checks = self.main_session(Some(&harmless), &|_, _| {})?;
        let named = self.client.expect.sabotage.iter();
        let named: BTreeSet<&String> = named.flat_map(|sabotage| &sabotage.red).collect();
        let red = named.into_iter().filter(|name| has_failed(&checks, name));
        Ok(red.cloned().collect())
    }

    /// A session in a copy of one of `projects/`, with anyhook on its PATH.
    fn session(&self, project: &str) -> Session<'_> {
        self.session_without_anyhook(project)
            .path(self.program.folder())
    }

    /// The same without anyhook on the client's PATH.
    pub(crate) fn session_without_anyhook(&self, project: &str) -> Session<'_> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("projects")
            .join(project);
        let session = Session::new(self.harness, self.client).project(&folder);
        bridge::session_env()
            .into_iter()
            .fold(session, |session, (name, value)| session.env(name, value))
    }

    fn session_with_bridge(&self, project: &str, scope: &'static str) -> Session<'_> {
        let expect = &self.client.expect;
        let slug = self.client.slug();
        self.session(project)
            .without(&expect.install.instead_of)
            .prepare(move |sandbox| bridge::install(sandbox, slug, scope, &expect.install.args))
    }

    /// Judges results; if the session itself went wrong, all of its checks failed.
    fn judge<const N: usize>(
        &self,
        outcome: &Outcome,
        records: &[Record],
        findings: [(&'static str, CheckResult); N],
    ) -> Vec<Check> {
        let error = session_error(outcome);
        findings
            .into_iter()
            .map(|(name, finding)| match &error {
                Some(error) => Check::new(name, Verdict::failed(error)),
                None => self.client.expect.judge(name, finding, records),
            })
            .collect()
    }
}

fn has_failed(checks: &[Check], name: &str) -> bool {
    checks
        .iter()
        .any(|check| check.name == name && matches!(check.verdict, Verdict::Failed(_)))
}

/// What invalidates a session, if anything.
pub(crate) fn session_error(outcome: &Outcome) -> Option<String> {
    let unoffered = outcome
        .requests
        .iter()
        .find(|request| request.purpose == Purpose::Unoffered);
    if let Some(request) = unoffered {
        return request.reply.clone();
    }
    outcome
        .result
        .timed_out
        .then(|| "the session did not end in time".to_owned())
}

pub(crate) fn report_kept(outcome: &Outcome, name: &str, kept: Kept<'_>) {
    if let Some(folder) = outcome.sandbox.kept_folder() {
        kept(name, folder);
    }
}

/// A command that creates a file of this name.
fn create_file(file: &str) -> Step {
    Step::Shell {
        command: format!("echo done > {file}"),
    }
}

fn say_done() -> Step {
    Step::Say("Done.".to_owned())
}

fn file_exists(outcome: &Outcome, file: &str) -> CheckResult {
    match outcome.file(file) {
        Some(_) => Ok(()),
        None => Err(format!("`{file}` does not exist: its command did not run")),
    }
}

fn file_missing(outcome: &Outcome, file: &str) -> CheckResult {
    match outcome.file(file) {
        None => Ok(()),
        Some(_) => Err(format!("`{file}` exists: its command ran")),
    }
}

/// A request to the model contained the text.
fn text_reached_model(outcome: &Outcome, text: &str) -> CheckResult {
    match outcome.reached_model(text) {
        Some(_) => Ok(()),
        None => Err(format!("no request to the model contained `{text}`")),
    }
}

/// No `anyhook` is in the PATH of the client.
fn anyhook_unreachable(outcome: &Outcome) -> CheckResult {
    let path = outcome.sandbox.env.get("PATH");
    let found = std::env::split_paths(path.map_or("", String::as_str))
        .map(|folder| folder.join("anyhook"))
        .find(|program| program.is_file());
    match found {
        None => Ok(()),
        Some(program) => Err(format!("`{}` is on the PATH", program.display())),
    }
}

/// The newest build of anyhook in the target folder of the running program.
pub fn find_newest_build() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let target = own.ancestors().nth(2)?;
    ["release", "debug"]
        .into_iter()
        .map(|profile| target.join(profile).join("anyhook"))
        .filter_map(|path| {
            let time = path.metadata().and_then(|data| data.modified()).ok()?;
            Some((time, path))
        })
        .max()
        .map(|(_, path)| path)
}
