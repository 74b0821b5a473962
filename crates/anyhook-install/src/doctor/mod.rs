//! What keeps hooks from running, seen from the files, and proved by running.
//!
//! Each check has an id. Where the agent's table tells the trap, its words are
//! used. Works on configs that were written by hand: nothing here needs the
//! bridge to be installed.

mod entry;
mod file;
mod own;
mod prove;
mod script;
mod server;
mod twice;

pub use script::make_executable;

use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::{Hazard, Scope};
use serde::Serialize;

use crate::bridge::Bridge;
use crate::command::{self, Naming};
use crate::error::InstallError;
use crate::needs::{Events, Needs};
use crate::target::Target;
use crate::trust::{self, Trust};
use crate::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something does not do what it seems to.
    Warning,
    /// Hooks do not run.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub id: String,
    pub severity: Severity,
    pub agent: Option<String>,
    pub file: Option<PathBuf>,
    pub what: String,
    pub why: String,
    pub remedy: String,
    /// What `--fix` would do, where that is safe.
    pub fix: Option<Fix>,
}

/// How a new bridge names its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    AsItWas,
    Absolute,
}

/// A mend that loses nothing.
#[derive(Debug, Clone)]
pub enum Fix {
    MakeExecutable(PathBuf),
    /// With the program as it stands there, or by its path.
    Reinstall(Box<Target>, Program),
}

impl Serialize for Fix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for Fix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MakeExecutable(path) => write!(formatter, "make `{}` executable", path.display()),
            Self::Reinstall(target, _) => {
                write!(
                    formatter,
                    "write the bridge into `{}` anew",
                    target.path.display()
                )
            }
        }
    }
}

/// What is looked at.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only these; empty: all.
    pub agents: Vec<&'static Adapter>,
    /// Fire events through the installed entries, and ask the agents' programs.
    pub prove: bool,
}

/// What was looked at, and what is wrong with it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// Files that were read.
    pub files: Vec<PathBuf>,
    /// Entries of the bridge that were fired, and that answered.
    pub fired: usize,
    pub answered: usize,
}

/// Scopes that are looked at.
const SCOPES: [Scope; 4] = [Scope::Project, Scope::Local, Scope::User, Scope::Managed];

/// Everything.
pub fn examine(world: &World, options: &Options) -> Report {
    let mut report = Report::default();
    own::check(world, &mut report);
    let adapters: Vec<&'static Adapter> = if options.agents.is_empty() {
        clients().collect()
    } else {
        options.agents.clone()
    };
    for adapter in adapters {
        let targets = Target::present(world, adapter, &SCOPES);
        for target in &targets {
            report.files.push(target.path.clone());
            file::check(world, target, &mut report.findings);
        }
        twice::check(world, adapter, &targets, &mut report.findings);
        let bridged: Vec<&Target> = targets.iter().filter(|one| one.has_bridge()).collect();
        own::coverage(world, &bridged, &mut report.findings);
        let asked = options
            .prove
            .then(|| server::ask(world, adapter, &bridged))
            .flatten();
        for target in &bridged {
            let told = asked.as_ref().map(|asked| asked.of(target));
            consent(world, target, told, &mut report.findings);
            if options.prove {
                prove::fire(world, target, &mut report);
            }
        }
    }
    report.findings.sort_by(|a, b| {
        let key = |one: &Finding| {
            (
                std::cmp::Reverse(one.severity),
                one.agent.clone(),
                one.file.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    report
}

/// The agent's own consent to our entries; its program knows best.
fn consent(world: &World, target: &Target, told: Option<Trust>, findings: &mut Vec<Finding>) {
    let state = told.unwrap_or_else(|| trust::state(world, target));
    if let Trust::Missing(what) = state {
        let text = target.adapter.spec.trust.as_deref().unwrap_or_default();
        findings.push(Finding {
            id: "agent-untrusted".to_owned(),
            severity: Severity::Error,
            agent: Some(target.slug().to_owned()),
            file: Some(target.path.clone()),
            what,
            why: "the agent runs none of them, and some say nothing about it".to_owned(),
            remedy: format!("{text} `anyhook install --accept-trust` does it for you")
                .trim()
                .to_owned(),
            fix: None,
        });
    }
}

/// Mends what can be mended without losing anything.
pub fn fix(world: &World, running: &Path, fix: &Fix) -> Result<(), InstallError> {
    match fix {
        Fix::MakeExecutable(path) => script::make_executable(path),
        Fix::Reinstall(target, program) => {
            let target = (**target).clone();
            let kept = target
                .bridge_program()
                .filter(|_| *program == Program::AsItWas);
            let program =
                kept.unwrap_or_else(|| command::program(world, Naming::Absolute, running));
            Bridge::installed(world, target.clone()).uninstall()?;
            let needs = Needs::read(world);
            Bridge::new(world, target, &Events::All, &needs, &program)?.install()?;
            Ok(())
        }
    }
}

/// The agent's own words on a trap.
fn hazard(adapter: &'static Adapter, id: &str) -> Option<&'static Hazard> {
    adapter.spec.hazards.iter().find(|hazard| hazard.id == id)
}

/// A finding about a file, in the words of the agent's table.
fn trap(target: &Target, id: &str, severity: Severity, what: String) -> Option<Finding> {
    let hazard = hazard(target.adapter, id)?;
    Some(Finding {
        id: id.to_owned(),
        severity,
        agent: Some(target.slug().to_owned()),
        file: Some(target.path.clone()),
        what,
        why: hazard.why.to_string(),
        remedy: hazard.remedy.to_string(),
        fix: None,
    })
}

/// A finding about a file.
fn about(
    target: &Target,
    id: &str,
    severity: Severity,
    what: String,
    why: &str,
    remedy: String,
) -> Finding {
    Finding {
        id: id.to_owned(),
        severity,
        agent: Some(target.slug().to_owned()),
        file: Some(target.path.clone()),
        what,
        why: why.to_owned(),
        remedy,
        fix: None,
    }
}
