//! Finds what keeps hooks from running: by reading the files, and by firing
//! events through the installed entries.
//!
//! Every check has an id. Where the agent's table describes the hazard, the
//! finding uses its words. Hand-written configs are checked too: nothing here
//! needs the bridge to be installed.

mod anyhook_setup;
mod command_lines;
mod config_file;
mod duplicates;
mod entry_timeouts;
mod hook_entry;
mod probe;
mod probe_daemon;
mod probe_safety;
mod probe_sandbox;
mod project_env;
mod trust_query;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Hazard, Scope};
pub use anyhook_model::Severity;
use serde::Serialize;

use crate::agent_trust::{self, AgentTrust};
use crate::error::InstallError;
use crate::installation::Installation;
use crate::machine::Machine;
use crate::native_hooks::ActiveHooks;
use crate::needs::{EventSelection, ManifestNeeds};
use crate::notes;
use crate::program::{ProgramNaming, ProgramPlan};
use crate::select;
use crate::target::Target;

/// One problem. An error means that hooks do not run, a warning that something
/// does not do what it seems to.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorFinding {
    #[serde(rename = "code")]
    pub id: String,
    pub severity: Severity,
    pub agent: Option<String>,
    pub file: Option<PathBuf>,
    #[serde(rename = "message")]
    pub what: String,
    pub why: String,
    /// Empty if there is nothing to do.
    #[serde(rename = "help", skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// What `--fix` would do, where that is safe.
    pub fix: Option<Fix>,
}

impl DoctorFinding {
    fn new(severity: Severity, id: &str, what: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            severity,
            agent: None,
            file: None,
            what: what.into(),
            why: String::new(),
            remedy: String::new(),
            fix: None,
        }
    }

    fn error(id: &str, what: impl Into<String>) -> Self {
        Self::new(Severity::Error, id, what)
    }

    fn warning(id: &str, what: impl Into<String>) -> Self {
        Self::new(Severity::Warning, id, what)
    }

    fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    fn in_file(mut self, path: &Path) -> Self {
        self.file = Some(path.to_owned());
        self
    }

    fn for_target(mut self, target: &Target) -> Self {
        self.agent = Some(target.slug().to_owned());
        self.in_file(&target.path)
    }

    fn fixed_by(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// The same problem in the words of an agent's table.
    fn described_by(self, hazard: &Hazard) -> Self {
        self.why(&*hazard.why).remedy(&*hazard.remedy)
    }
}

/// How a reinstalled bridge names its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReinstalledProgram {
    Unchanged,
    /// As `install` would name it now.
    Renewed,
}

/// A repair that loses nothing.
#[derive(Debug, Clone)]
pub enum Fix {
    MakeExecutable(PathBuf),
    Reinstall(Box<Target>, ReinstalledProgram),
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
                let path = target.path.display();
                write!(formatter, "reinstall the bridge in `{path}`")
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct DoctorOptions {
    /// Only these; empty: all.
    pub agents: Vec<&'static Adapter>,
    /// Fire events through the installed entries, and query the agents' programs.
    pub run_probes: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct DoctorReport {
    pub findings: Vec<DoctorFinding>,
    /// The files that were checked.
    pub files: Vec<PathBuf>,
    /// Bridge entries that were fired, and those of them that answered.
    pub fired: usize,
    pub answered: usize,
    /// Bridge entries that were not fired, because they may be anyone's.
    pub not_fired: usize,
}

const CHECKED_SCOPES: [Scope; 4] = [Scope::Project, Scope::Local, Scope::User, Scope::Managed];

/// Runs all checks.
pub fn examine(machine: &Machine, options: &DoctorOptions) -> DoctorReport {
    let mut report = DoctorReport::default();
    anyhook_setup::check(machine, &mut report);
    let active = ActiveHooks::load(machine);
    for adapter in select::named_or_all(&options.agents) {
        let targets = Target::existing(machine, adapter, &CHECKED_SCOPES);
        for target in &targets {
            report.files.push(target.path.clone());
            config_file::check(machine, target, &mut report.findings);
        }
        duplicates::check(machine, adapter, &targets, &mut report.findings);
        duplicates::check_moved(machine, &targets, &active, &mut report.findings);
        let bridged: Vec<&Target> = targets.iter().filter(|one| one.has_bridge()).collect();
        anyhook_setup::check_coverage(machine, &bridged, &mut report.findings);
        report.findings.extend(unread_here(machine, &bridged));
        report.findings.extend(unproven(adapter, &bridged));
        project_env::check(machine, adapter, &targets, &mut report.findings);
        let listed = options
            .run_probes
            .then(|| trust_query::list_hooks(machine, adapter, &bridged))
            .flatten();
        for target in &bridged {
            // The agent's program knows better than its files.
            let trust = match &listed {
                Some(listed) => trust_query::listed_trust(listed, target),
                None => agent_trust::trust_state(machine, target),
            };
            report.findings.extend(missing_trust(target, trust));
            if options.run_probes {
                probe::probe_entries(machine, target, &mut report);
            }
        }
    }
    report.findings.sort_by_cached_key(|one| {
        let severity = Reverse(one.severity);
        (severity, one.agent.clone(), one.file.clone())
    });
    report
}

/// Entries that the agent does not read if it is started in the current folder.
fn unread_here(machine: &Machine, bridged: &[&Target]) -> Option<DoctorFinding> {
    let unread = bridged.iter().find(|one| !one.is_read_here(machine))?;
    let rest = unread.path.strip_prefix(&machine.root).ok()?;
    let own = Target {
        path: machine.cwd.join(rest),
        ..(*unread).clone()
    };
    let is_covered = bridged.iter().any(|one| one.is_read_here(machine)) || own.has_bridge();
    let what = format!(
        "{} reads this file only if it is started in `{}`, not in `{}`",
        unread.adapter.spec.name,
        machine.root.display(),
        machine.cwd.display()
    );
    let severity = if is_covered {
        Severity::Info
    } else {
        Severity::Error
    };
    let why = if is_covered {
        "another entry is read here, so hooks run all the same"
    } else {
        "started here it runs no hook, and nothing reports it"
    };
    Some(
        DoctorFinding::new(severity, "not-read-here", what)
            .for_target(unread)
            .why(why)
            .remedy("start the agent in that folder, or run `anyhook install --scope user`"),
    )
}

/// An agent whose table was never compared with the running client.
fn unproven(adapter: &Adapter, bridged: &[&Target]) -> Option<DoctorFinding> {
    let what = notes::unproven_source(&adapter.spec)?;
    Some(
        DoctorFinding::new(Severity::Warning, "unproven", what)
            .for_target(bridged.first()?)
            .why("no guard has been seen to block in it")
            .remedy("try a call that your guard denies, and see that it does not run"),
    )
}

/// The agent's own approval of our entries.
fn missing_trust(target: &Target, trust: AgentTrust) -> Option<DoctorFinding> {
    let AgentTrust::Missing(what) = trust else {
        return None;
    };
    let text = target.adapter.spec.trust.as_deref().unwrap_or_default();
    let remedy = format!("{text} `anyhook install --accept-trust` does it for you");
    Some(
        DoctorFinding::error("agent-untrusted", what)
            .for_target(target)
            .why("the agent runs none of them, and some agents do not report it")
            .remedy(remedy.trim()),
    )
}

/// Repairs what can be repaired without losing anything.
pub fn fix(machine: &Machine, running: &Path, fix: &Fix) -> Result<(), InstallError> {
    match fix {
        Fix::MakeExecutable(path) => anyhook_edit::make_executable(path)?,
        Fix::Reinstall(target, program) => {
            let target = (**target).clone();
            let unchanged = target
                .bridge_program()
                .filter(|_| *program == ReinstalledProgram::Unchanged);
            let naming = match target.scope {
                Scope::Project => ProgramNaming::Searched,
                _ => ProgramNaming::Absolute,
            };
            let mut plan = ProgramPlan::new(machine, naming, running)?;
            plan.apply(machine)?;
            if let Some(program) = unchanged {
                plan.program = program;
            }
            let bridged = target.bridged_events().len();
            let transport = target.transport();
            Installation::existing(machine, target.clone()).uninstall()?;
            let needs = ManifestNeeds::load(machine);
            let wanted = needs.events(target.adapter, &EventSelection::Manifest)?;
            // More than the manifest needs: for the record of all events.
            let events = if bridged > wanted.len() || needs.is_empty() {
                EventSelection::All
            } else {
                EventSelection::Manifest
            };
            let active = ActiveHooks::load(machine);
            let is_reviewed = agent_trust::reviews_entries(machine, &target);
            let mut bridge =
                Installation::plan(machine, target, &events, &needs, &plan.program, &transport)?;
            if !is_reviewed {
                bridge = bridge.moving(machine, &active);
            }
            bridge.install()?;
            plan.register(machine, &bridge.target)?;
        }
    }
    Ok(())
}

fn hazard(adapter: &'static Adapter, id: &str) -> Option<&'static Hazard> {
    adapter.spec.hazards.iter().find(|hazard| hazard.id == id)
}

/// The check of one file of an agent.
struct FileCheck<'a> {
    machine: &'a Machine,
    target: &'a Target,
    findings: &'a mut Vec<DoctorFinding>,
}

impl FileCheck<'_> {
    fn report(&mut self, finding: DoctorFinding) {
        self.findings.push(finding.for_target(self.target));
    }

    /// Reports a hazard of the agent's table; nothing if the table does not have it.
    fn report_hazard(&mut self, severity: Severity, id: &str, what: impl Into<String>) {
        if let Some(hazard) = hazard(self.target.adapter, id) {
            self.report(DoctorFinding::new(severity, id, what).described_by(hazard));
        }
    }

    /// Reports a finding as the first of `hazards` that the agent's table has,
    /// which is an error then, or else as it is.
    fn report_as(&mut self, hazards: &[&str], finding: DoctorFinding) {
        let adapter = self.target.adapter;
        match hazards.iter().find(|id| hazard(adapter, id).is_some()) {
            Some(id) => self.report_hazard(Severity::Error, id, finding.what),
            None => self.report(finding),
        }
    }
}
