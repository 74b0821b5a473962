//! The proof: anyhook in a real client. Whatever can share a session does, one tool call for each check; what ends
//! a run early, or is about its beginning, has a session of its own.

mod events;
mod main_session;
mod others;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhook_model::Record;

use crate::bridge::{self, Program};
use crate::client::Client;
use crate::error::Result;
use crate::expect::{Finding, Replace, Sabotage};
use crate::report::{Check, Verdict};
use crate::scenario::Step;
use crate::script::Purpose;
use crate::session::{Lab, Outcome, Session};

/// The names of the checks, in the order of the page. Letters are those of the scenarios that they belong to.
pub const CHECKS: [&str; 22] = [
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
    "stop retry",
    "Claude script",
    "Claude script's reason",
    "hook hangs",
    "hook crashes",
    "hook prints garbage",
    "OpenHook stream",
    "native deny",
    "native deny reason",
    "uninstall: files",
    "uninstall: session",
];

/// A client with anyhook at hand.
pub struct Proof<'a> {
    pub lab: &'a Lab,
    pub client: &'a Client,
    pub program: &'a Program,
}

impl Proof<'_> {
    /// Every check, in all the sessions that they need. `kept` is told the folder of each session that stays.
    pub fn run(&self, kept: &mut dyn FnMut(&str, &Path)) -> Result<Vec<Check>> {
        let mut checks = self.main_session(None, kept)?;
        if self.client.expect.deny_ends_run {
            checks.extend(self.deny_alone(kept)?);
            checks.extend(self.claude_script_alone(kept)?);
        }
        checks.push(self.prompt_block(kept)?);
        checks.extend(self.native(kept)?);
        checks.extend(self.uninstall(kept)?);
        checks.sort_by_key(|check| CHECKS.iter().position(|name| *name == check.name));
        Ok(checks)
    }

    /// The main session with a rendering broken on purpose: the checks that should have failed and did not.
    pub fn sabotage(&self, sabotage: &Sabotage) -> Result<Vec<String>> {
        let checks = self.main_session(Some(sabotage), &mut |_, _| {})?;
        let red = sabotage.red.iter().filter(|name| !is_red(&checks, name));
        Ok(red.cloned().collect())
    }

    /// The main session with the means of a sabotage and no harm done: the checks that failed all the same, of
    /// those that a sabotage is to fail.
    pub fn control(&self) -> Result<Vec<String>> {
        let harmless = Sabotage {
            name: String::new(),
            answer: Some(Replace {
                from: "nothing that is ever said".to_owned(),
                to: String::new(),
            }),
            installed: None,
            red: Vec::new(),
        };
        let checks = self.main_session(Some(&harmless), &mut |_, _| {})?;
        let named = self.client.expect.sabotage.iter();
        let named: BTreeSet<&String> = named.flat_map(|sabotage| &sabotage.red).collect();
        let red = named.into_iter().filter(|name| is_red(&checks, name));
        Ok(red.cloned().collect())
    }

    /// A session in a copy of one of `projects/`, with anyhook on its PATH.
    fn session(&self, project: &str) -> Session<'_> {
        self.bare(project).path(self.program.folder())
    }

    /// The same without anyhook in reach of the client.
    fn bare(&self, project: &str) -> Session<'_> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("projects")
            .join(project);
        let session = Session::new(self.lab, self.client).project(&folder);
        bridge::env()
            .into_iter()
            .fold(session, |session, (name, value)| session.env(name, value))
    }

    fn installed(&self, project: &str, scope: &'static str) -> Session<'_> {
        let expect = &self.client.expect;
        let slug = self.client.slug();
        self.session(project)
            .without(&expect.install.instead_of)
            .prepare(move |scratch| bridge::install(scratch, slug, scope, &expect.install.args))
    }

    /// Settles findings; when the session itself went wrong, every one of its checks failed.
    fn settle<const N: usize>(
        &self,
        outcome: &Outcome,
        records: &[Record],
        findings: [(&'static str, Finding); N],
    ) -> Vec<Check> {
        let trouble = trouble(outcome);
        findings
            .into_iter()
            .map(|(name, finding)| match &trouble {
                Some(trouble) => Check::new(name, Verdict::failed(trouble)),
                None => self.client.expect.settle(name, finding, records),
            })
            .collect()
    }
}

fn is_red(checks: &[Check], name: &str) -> bool {
    checks
        .iter()
        .any(|check| check.name == name && matches!(check.verdict, Verdict::Failed(_)))
}

/// What makes a session worthless as evidence.
fn trouble(outcome: &Outcome) -> Option<String> {
    let unoffered = outcome
        .requests
        .iter()
        .find(|request| request.purpose == Purpose::Unoffered);
    if let Some(request) = unoffered {
        return request.reply.clone();
    }
    outcome
        .ending
        .timed_out
        .then(|| "the session did not end in time".to_owned())
}

fn tell_kept(outcome: &Outcome, name: &str, kept: &mut dyn FnMut(&str, &Path)) {
    if let Some(folder) = outcome.scratch.kept() {
        kept(name, folder);
    }
}

/// A command that leaves a file of this name.
fn leave(file: &str) -> Step {
    Step::Shell {
        command: format!("echo done > {file}"),
    }
}

fn done() -> Step {
    Step::Say("Done.".to_owned())
}

fn there(outcome: &Outcome, file: &str) -> Finding {
    match outcome.file(file) {
        Some(_) => Ok(()),
        None => Err(format!("`{file}` is not there: its command did not run")),
    }
}

fn not_there(outcome: &Outcome, file: &str) -> Finding {
    match outcome.file(file) {
        None => Ok(()),
        Some(_) => Err(format!("`{file}` is there: its command ran")),
    }
}

/// The text reached the model, and not before it should.
fn reached(outcome: &Outcome, text: &str) -> Finding {
    match outcome.reached_model(text) {
        Some(_) => Ok(()),
        None => Err(format!("no request to the model held `{text}`")),
    }
}

/// No `anyhook` is in the PATH of the client.
fn out_of_reach(outcome: &Outcome) -> Finding {
    let path = outcome.scratch.env.get("PATH");
    let found = std::env::split_paths(path.map_or("", String::as_str))
        .map(|folder| folder.join("anyhook"))
        .find(|program| program.is_file());
    match found {
        None => Ok(()),
        Some(program) => Err(format!("`{}` is in reach", program.display())),
    }
}

/// Where the newest build of anyhook is, beside the running program.
pub fn newest_build() -> Option<PathBuf> {
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
