//! Our own side: manifests, consent, policies, journal, the program itself.

use std::path::{Path, PathBuf};

use anyhook_agents::spec::Shape;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Manifest, Scope};
use anyhook_run::discover::{self, Source};
use anyhook_run::trust::{Project, TrustStatus, TrustStore, by_place};
use anyhook_run::{journal, plan};

use super::{Finding, Fix, Program, Report, Severity, about, script};
use crate::command;
use crate::found::Found;
use crate::needs::{Events, Needs};
use crate::target::Target;
use crate::world::{World, is_program};

fn finding(
    id: &str,
    severity: Severity,
    file: Option<&Path>,
    what: String,
    why: &str,
    remedy: String,
) -> Finding {
    Finding {
        id: id.to_owned(),
        severity,
        agent: None,
        file: file.map(Path::to_owned),
        what,
        why: why.to_owned(),
        remedy,
        fix: None,
    }
}

pub fn check(world: &World, report: &mut Report) {
    let findings = &mut report.findings;
    let found = discover::discover(&world.dirs, &world.cwd);
    for trouble in &found.troubles {
        findings.push(finding(
            "manifest-invalid",
            Severity::Error,
            Some(&trouble.path),
            trouble.message.clone(),
            "none of its hooks run",
            "mend the file; `anyhook validate` shows the place".to_owned(),
        ));
    }
    for source in &found.manifests {
        report.files.push(source.path.clone());
        manifest(world, source, findings);
    }
    for source in &found.policies {
        report.files.push(source.path.clone());
        policy(source, findings);
    }
    writable(world, findings);
    versions(world, findings);
    if world.var("ANYHOOK").is_some_and(|value| value == "0") {
        let is_locked = discover::is_locked(|name| world.var(name).cloned());
        let (severity, why) = if is_locked {
            (
                Severity::Info,
                "it does nothing: the administrator of this machine has not allowed it",
            )
        } else {
            (
                Severity::Warning,
                "the bridge runs no hook for agents that are started from here",
            )
        };
        let what = "`ANYHOOK=0` is set".to_owned();
        let remedy = "unset it".to_owned();
        findings.push(finding("bridge-off", severity, None, what, why, remedy));
    }
}

fn format(source: &Source, default: Format) -> Format {
    Format::from_path(&source.path.to_string_lossy()).unwrap_or(default)
}

fn manifest(world: &World, source: &Source, findings: &mut Vec<Finding>) {
    let agents: Vec<&str> = anyhook_agents::slugs().collect();
    let native: Vec<&str> = anyhook_agents::all()
        .flat_map(|adapter| {
            adapter
                .spec
                .events
                .iter()
                .map(|event| event.native.as_ref())
        })
        .collect();
    let vocabulary = Vocabulary {
        agents: &agents,
        native_events: &native,
    };
    let (manifest, diagnostics) =
        parse::manifest(&source.text, format(source, Format::Yaml), &vocabulary);
    let Some(manifest) = manifest else {
        let trouble = plan::broken(source, &diagnostics);
        findings.push(finding(
            "manifest-invalid",
            Severity::Error,
            Some(&source.path),
            trouble.message,
            "none of its hooks run",
            "mend the place; `anyhook validate` shows it".to_owned(),
        ));
        return;
    };
    consent(world, source, &manifest, findings);
    scripts(world, source, &manifest, findings);
}

fn consent(world: &World, source: &Source, manifest: &Manifest, findings: &mut Vec<Finding>) {
    if world
        .var("ANYHOOK_TRUST")
        .is_some_and(|value| value == "all")
    {
        return;
    }
    let status = match source.scope {
        Scope::Managed | Scope::User => by_place(&source.path),
        Scope::Project => TrustStore::new(&world.dirs.state).status(&Project {
            path: &source.path,
            root: &source.root,
            text: &source.text,
            manifest,
        }),
    };
    if let TrustStatus::Untrusted(why) = status {
        findings.push(finding(
            "project-untrusted",
            Severity::Error,
            Some(&source.path),
            why.to_string(),
            "its hooks do not run until you have agreed to them",
            "look at them and run `anyhook trust`".to_owned(),
        ));
    }
}

/// Files that hooks name directly.
fn scripts(world: &World, source: &Source, manifest: &Manifest, findings: &mut Vec<Finding>) {
    for (position, hook) in manifest.hooks.iter().enumerate() {
        let Some(line) = plan::command(&hook.handler) else {
            continue;
        };
        let words = command::words(line, !cfg!(windows));
        let Some(first) = words.first() else { continue };
        let label = anyhook_run::trust::label(hook, position);
        if !first.contains('/') || first.contains('$') {
            continue;
        }
        let candidates = [source.root.join(first), source.folder().join(first)];
        let mut one = |id: &str, what: String, remedy: String, fix: Option<Fix>| {
            findings.push(Finding {
                fix,
                ..finding(
                    id,
                    Severity::Error,
                    Some(&source.path),
                    what,
                    "the hook cannot start, and counts as a warning only",
                    remedy,
                )
            });
        };
        match candidates.iter().find(|path| path.exists()) {
            None => one(
                "script-missing",
                format!("hook {label}: `{first}` is not there"),
                "write the script, or name the right one".to_owned(),
                None,
            ),
            Some(path) if !is_program(path) => one(
                "script-not-executable",
                format!("hook {label}: `{}` has no run bit", world.shown(path)),
                format!("run `chmod +x {}`", path.display()),
                Some(Fix::MakeExecutable(path.clone())),
            ),
            Some(path) => {
                if let Some((what, remedy)) = script::needs(world, path) {
                    one(
                        "interpreter-missing",
                        format!("hook {label}: {what}"),
                        remedy,
                        None,
                    );
                }
            }
        }
    }
}

fn policy(source: &Source, findings: &mut Vec<Finding>) {
    let (policy, diagnostics) = parse::policy(
        &source.text,
        format(source, Format::Jsonc),
        source.scope,
        &Vocabulary::default(),
    );
    if policy.is_none() {
        let trouble = plan::broken(source, &diagnostics);
        findings.push(finding(
            "policy-invalid",
            Severity::Error,
            Some(&source.path),
            trouble.message,
            "it restricts nothing",
            "mend the place; `anyhook validate` shows it".to_owned(),
        ));
    } else if source.scope == Scope::Project {
        findings.push(finding(
            "project-policy",
            Severity::Info,
            Some(&source.path),
            "this project has a policy of its own".to_owned(),
            "it can only forbid more than you and your administrator do",
            "look at it".to_owned(),
        ));
    }
}

/// Whether the journal can be written.
fn writable(world: &World, findings: &mut Vec<Finding>) {
    let folder = world.dirs.state.join("journal");
    let current = folder.join(journal::CURRENT);
    let try_file = |path: &Path| {
        std::fs::OpenOptions::new()
            .append(true)
            .open(path)
            .map(drop)
    };
    let try_folder = |folder: &Path| {
        let probe = folder.join(format!(".anyhook-doctor-{}", std::process::id()));
        std::fs::File::create(&probe)?;
        std::fs::remove_file(&probe)
    };
    let existing = folder.ancestors().find(|folder| folder.exists());
    let result = if current.exists() {
        try_file(&current)
    } else {
        existing.map_or(Ok(()), try_folder)
    };
    if let Err(error) = result {
        findings.push(finding(
            "journal-not-writable",
            Severity::Error,
            Some(&folder),
            format!("the journal cannot be written: {error}"),
            "events are handled and leave no record",
            format!("let your user write `{}`", folder.display()),
        ));
    }
}

/// Several versions of this program on PATH.
fn versions(world: &World, findings: &mut Vec<Finding>) {
    let programs = world.on_path("anyhook");
    let mut told: Vec<(String, PathBuf)> = Vec::new();
    if programs.len() < 2 {
        return;
    }
    for program in programs {
        let found = Found {
            program: Some(program.clone()),
            ..Found::default()
        };
        let version = found.version(world).unwrap_or_else(|| "unknown".to_owned());
        if !told.iter().any(|(other, _)| *other == version) {
            told.push((version, program));
        }
    }
    if told.len() > 1 {
        let list: Vec<String> = told
            .iter()
            .map(|(version, path)| format!("`{}` ({version})", path.display()))
            .collect();
        findings.push(finding(
            "two-versions",
            Severity::Warning,
            None,
            format!("there are several on PATH: {}", list.join(", ")),
            "agents run the first, which need not be the one that you use",
            "remove the older".to_owned(),
        ));
    }
}

/// Events that a manifest needs and the bridge does not stand at.
pub fn coverage(world: &World, bridged: &[&Target], findings: &mut Vec<Finding>) {
    let Some(target) = bridged.first() else {
        return;
    };
    if target.shape() == Shape::Plugin {
        return;
    }
    let needs = Needs::read(world);
    let Ok(events) = needs.events(target.adapter, &Events::Manifest) else {
        return;
    };
    let covered: Vec<String> = bridged.iter().flat_map(|one| one.bridged()).collect();
    let names = &target.config().event_names;
    let missing: Vec<&str> = events
        .iter()
        .filter(|event| {
            let spelled = names
                .get(&event.native)
                .map_or(event.native.as_ref(), AsRef::as_ref);
            !covered.iter().any(|name| name == spelled)
        })
        .map(|event| event.native.as_ref())
        .collect();
    if !missing.is_empty() {
        findings.push(Finding {
            fix: Some(Fix::Reinstall(
                Box::new((*target).clone()),
                Program::AsItWas,
            )),
            ..about(
                target,
                "event-not-covered",
                Severity::Error,
                format!("the bridge does not stand at {}", missing.join(", ")),
                "hooks of the manifest for these events do not run in this agent",
                "run `anyhook install`".to_owned(),
            )
        });
    }
}
