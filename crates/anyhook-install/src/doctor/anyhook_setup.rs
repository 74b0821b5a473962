//! Checks anyhook's own side: manifests, their trust, policies, the journal,
//! installed versions, and events that the bridge does not cover.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhook_agents::spec::ConfigShape;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, HookEvent, Manifest, Scope};
use anyhook_run::config::discover::{self, ConfigSource, ignored_manifests};
use anyhook_run::config::manifest;
use anyhook_run::config::trust::{self, ProjectManifest, TrustStore};
use anyhook_run::config::unknown_names::unknown_names;
use anyhook_run::record::journal::{CURRENT_FILE_NAME, Journal};
use anyhook_util::env;

use super::{DoctorFinding, DoctorReport, Fix, ReinstalledProgram, Severity};

use crate::detect::program_version;
use crate::hook_scripts::{ManifestPlace, ScriptProblem, check_hook_scripts};
use crate::kept_program::{KeptProgram, has_same_content};
use crate::machine::{Machine, real_path};
use crate::needs::{EventSelection, ManifestNeeds};
use crate::target::Target;

pub(super) fn check(machine: &Machine, report: &mut DoctorReport) {
    let findings = &mut report.findings;
    let found = discover::discover(&machine.dirs, &machine.cwd);
    for problem in &found.problems {
        findings.push(invalid_manifest(&problem.path, problem.message.clone()));
    }
    for source in &found.manifests {
        report.files.push(source.path.clone());
        check_manifest(machine, source, findings);
    }
    for source in &found.policies {
        report.files.push(source.path.clone());
        findings.extend(check_policy(source));
    }
    findings.extend(lost_guards(machine));
    findings.extend(check_journal(machine));
    findings.extend(check_versions(machine));
    findings.extend(check_kept_program(machine));
    if is_set(machine, env::ANYHOOK.name, "0") {
        let (severity, why) = if discover::is_locked(|name| machine.var(name).cloned()) {
            let why = "it has no effect: the administrator of this machine does not allow it";
            (Severity::Info, why)
        } else {
            let why = "agents started from this environment run none of anyhook's hooks";
            (Severity::Warning, why)
        };
        findings.push(
            DoctorFinding::new(severity, "bridge-off", "`ANYHOOK=0` is set")
                .why(why)
                .remedy("unset it"),
        );
    }
}

fn is_set(machine: &Machine, variable: &str, expected: &str) -> bool {
    machine.var(variable).is_some_and(|value| value == expected)
}

fn format_of(source: &ConfigSource, default: Format) -> Format {
    Format::from_path(&source.path.to_string_lossy()).unwrap_or(default)
}

fn invalid_manifest(path: &Path, message: String) -> DoctorFinding {
    DoctorFinding::error("manifest-invalid", message)
        .in_file(path)
        .why("none of its hooks run")
        .remedy("fix the file; `anyhook validate` shows where")
}

fn check_manifest(machine: &Machine, source: &ConfigSource, findings: &mut Vec<DoctorFinding>) {
    let agents: Vec<&str> = anyhook_agents::slugs().collect();
    let native: Vec<&str> = anyhook_agents::all()
        .flat_map(|adapter| &adapter.spec.events)
        .map(|event| event.native.as_ref())
        .collect();
    let vocabulary = Vocabulary {
        agents: &agents,
        native_events: &native,
        names: None,
    };
    let (manifest, diagnostics) =
        parse::manifest(&source.text, format_of(source, Format::Yaml), &vocabulary);
    let Some(manifest) = manifest else {
        let problem = manifest::parse_problem(source, &diagnostics);
        findings.push(invalid_manifest(&source.path, problem.message));
        return;
    };
    findings.extend(check_trust(machine, source, &manifest));
    for other in ignored_manifests(&source.path) {
        let what = format!(
            "`{}` is ignored: a folder has one manifest, and `{}` is used",
            other.display(),
            source.path.display()
        );
        findings.push(
            DoctorFinding::error("manifest-ignored", what)
                .in_file(&other)
                .why("none of its hooks run")
                .remedy("move its hooks to the other file and delete it"),
        );
    }
    let place = ManifestPlace {
        scope: source.scope,
        root: &source.root,
        folder: source.folder(),
    };
    for (position, hook) in manifest.hooks.iter().enumerate() {
        for why in unknown_names(hook) {
            let what = format!("hook {}: {why}", trust::label(hook, position));
            let finding = if hook.blocking {
                DoctorFinding::error("unknown-name", what)
            } else {
                DoctorFinding::warning("unknown-name", what)
            };
            findings.push(
                finding
                    .in_file(&source.path)
                    .why("the hook does not do what it says, in any agent")
                    .remedy("correct it; `anyhook validate` shows where"),
            );
        }
        for problem in check_hook_scripts(machine, hook, place) {
            let label = trust::label(hook, position);
            findings.push(script_finding(problem, &label).in_file(&source.path));
        }
    }
}

/// A problem with the files of a hook.
fn script_finding(problem: ScriptProblem, label: &str) -> DoctorFinding {
    let what = format!("hook {label}: {}", problem.message);
    let finding = match problem.severity {
        anyhook_model::Severity::Error => DoctorFinding::error(problem.code, what),
        _ => DoctorFinding::warning(problem.code, what),
    };
    let finding = finding
        .why("the hook does not do what it is for; agents get a warning at most")
        .remedy(problem.help);
    match problem.not_executable {
        Some(path) => finding.fixed_by(Fix::MakeExecutable(path)),
        None => finding,
    }
}

fn check_trust(
    machine: &Machine,
    source: &ConfigSource,
    manifest: &Manifest,
) -> Option<DoctorFinding> {
    if is_set(machine, env::ANYHOOK_TRUST.name, "all") {
        return None;
    }
    let status = match source.scope {
        Scope::Managed | Scope::User => trust::by_location(source),
        Scope::Project => {
            let store = TrustStore::new(&machine.dirs.state);
            let checked = store.check(&ProjectManifest {
                path: &source.path,
                root: &source.root,
                text: &source.text,
                manifest,
            });
            checked.map(|_| ())
        }
    };
    let Err(reason) = status else {
        return None;
    };
    Some(
        DoctorFinding::error("project-untrusted", reason.to_string())
            .in_file(&source.path)
            .why("its hooks run only after you approve them")
            .remedy("review them and run `anyhook trust`"),
    )
}

/// Manifests that were trusted and are gone, and records of trust that cannot be
/// read.
fn lost_guards(machine: &Machine) -> Vec<DoctorFinding> {
    let engine = anyhook_run::Engine::new(machine.dirs.clone(), false);
    let here = HookEvent {
        cwd: Some(machine.cwd.to_string_lossy().into_owned()),
        ..HookEvent::default()
    };
    let lost = engine.lost_guards(&here).into_iter().map(|what| {
        DoctorFinding::error("guard-lost", what).why("you have trusted it, and it does not run")
    });
    let damaged = engine.trust.damaged().into_iter().map(|record| {
        DoctorFinding::error(
            "trust-damaged",
            format!("a record of trust cannot be read: {record}"),
        )
        .why("what it was about is not known any more, and does not run")
        .remedy("delete the file, then review the project and run `anyhook trust`")
    });
    lost.chain(damaged).collect()
}

fn check_policy(source: &ConfigSource) -> Option<DoctorFinding> {
    let format = format_of(source, Format::Jsonc);
    let (policy, diagnostics) =
        parse::policy(&source.text, format, source.scope, &Vocabulary::default());
    let finding = if policy.is_none() {
        let message = manifest::parse_problem(source, &diagnostics).message;
        DoctorFinding::error("policy-invalid", message)
            .why("it restricts nothing")
            .remedy("fix the file; `anyhook validate` shows where")
    } else if source.scope == Scope::Project {
        let what = "this project has its own policy";
        DoctorFinding::new(Severity::Info, "project-policy", what)
            .why("it can only forbid more than you and your administrator do")
            .remedy("review it")
    } else {
        return None;
    };
    Some(finding.in_file(&source.path))
}

/// Whether the journal can be written.
fn check_journal(machine: &Machine) -> Option<DoctorFinding> {
    let journal = Journal::new(&machine.dirs.state);
    let folder = journal.folder();
    let current = folder.join(CURRENT_FILE_NAME);
    let result = if current.exists() {
        OpenOptions::new().append(true).open(&current).map(drop)
    } else {
        let existing = folder.ancestors().find(|folder| folder.exists());
        let probe = existing?.join(format!(".anyhook-doctor-{}", std::process::id()));
        File::create(&probe).and_then(|_| fs::remove_file(&probe))
    };
    let what = format!("could not write the journal: {}", result.err()?);
    let remedy = format!("make `{}` writable for your user", folder.display());
    Some(
        DoctorFinding::error("journal-not-writable", what)
            .in_file(folder)
            .why("events are handled but not recorded")
            .remedy(remedy),
    )
}

/// Several versions of this program on PATH.
fn check_versions(machine: &Machine) -> Option<DoctorFinding> {
    let programs = machine.own_programs("anyhook");
    if programs.len() < 2 {
        return None;
    }
    let mut versions: Vec<(String, PathBuf)> = Vec::new();
    for program in programs {
        let version = program_version(machine, &program).unwrap_or_else(|| "unknown".to_owned());
        if !versions.iter().any(|(known, _)| *known == version) {
            versions.push((version, program));
        }
    }
    let described: Vec<String> = versions
        .iter()
        .map(|(version, path)| format!("`{}` ({version})", path.display()))
        .collect();
    let what = format!("several versions are on PATH: {}", described.join(", "));
    (described.len() > 1).then(|| {
        DoctorFinding::warning("two-versions", what)
            .why("agents run the first, which may not be the one that you use")
            .remedy("remove the older one")
    })
}

/// The program that `install` keeps for the entries: gone, or an older one.
fn check_kept_program(machine: &Machine) -> Option<DoctorFinding> {
    let kept = KeptProgram::new(machine);
    if let Some(path) = kept.broken_link() {
        let what = format!("`{}` leads to a program that is gone", path.display());
        return Some(
            DoctorFinding::error("kept-program-gone", what)
                .why("entries that start it run no hook, and the agent takes that for approval")
                .remedy("run `anyhook install`"),
        );
    }
    let path = kept.path().ok().filter(|path| path.is_file())?;
    let running = std::env::current_exe().ok()?;
    let is_other = real_path(&path) != real_path(&running) && !has_same_content(&path, &running);
    let what = format!("`{}` is another build than this program", path.display());
    is_other.then(|| {
        DoctorFinding::warning("kept-program-old", what)
            .why("agents start that one")
            .remedy("run `anyhook install`, which replaces it with this program")
    })
}

/// Events that a manifest needs and that have no bridge entry.
pub(super) fn check_coverage(
    machine: &Machine,
    bridged: &[&Target],
    findings: &mut Vec<DoctorFinding>,
) {
    let Some(&target) = bridged.first() else {
        return;
    };
    let needs = ManifestNeeds::load(machine);
    let Ok(events) = needs.events(target.adapter, &EventSelection::Manifest) else {
        return;
    };
    let covered: Vec<String> = bridged
        .iter()
        .flat_map(|one| one.bridged_events())
        .collect();
    let names = &target.config().event_names;
    let missing: Vec<&str> = events
        .iter()
        .map(|event| &event.native)
        .filter(|native| {
            !covered
                .iter()
                .any(|name| name == names.get(*native).unwrap_or(native))
        })
        .map(AsRef::as_ref)
        .collect();
    if !missing.is_empty() && target.shape() != ConfigShape::Plugin {
        let what = format!("the bridge is not installed for {}", missing.join(", "));
        let fix = Fix::Reinstall(Box::new(target.clone()), ReinstalledProgram::Unchanged);
        findings.push(
            DoctorFinding::error("event-not-covered", what)
                .for_target(target)
                .why("the manifest's hooks for these events do not run in this agent")
                .remedy("run `anyhook install`")
                .fixed_by(fix),
        );
    }
}
