//! Finds variables that a project's files set for an agent and that matter to hooks:
//! with them a repository can turn the user's hooks off, or make them run other code.

use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::spec::{EnvSource, Scope};
use anyhook_edit::read_text;
use anyhook_model::Format;
use anyhook_util::env;
use serde_json::Value;

use super::{DoctorFinding, Severity};
use crate::command;
use crate::hook_entries;
use crate::machine::Machine;
use crate::target::Target;

/// Where anyhook looks for the user's files.
const MOVING_VARIABLES: &[&str] = &["HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// What changes the programs and services that hooks use.
const OTHER_VARIABLES: &[&str] = &[
    "PATH",
    "LD_LIBRARY_PATH",
    "RUST_MIN_STACK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

pub(super) fn check(
    machine: &Machine,
    adapter: &'static Adapter,
    targets: &[Target],
    findings: &mut Vec<DoctorFinding>,
) {
    let mut folders = vec![&machine.root];
    folders.extend((machine.cwd != machine.root).then_some(&machine.cwd));
    for source in &adapter.spec.env_sources {
        for path in folders.iter().map(|folder| folder.join(&*source.path)) {
            for name in variables(source, &path) {
                report(adapter, &path, &name, findings);
            }
        }
    }
    let is_project = |target: &&Target| matches!(target.scope, Scope::Project | Scope::Local);
    for target in targets.iter().filter(is_project) {
        if !target.is_editable() {
            continue;
        }
        for name in entry_variables(target) {
            report(adapter, &target.path, &name, findings);
        }
    }
}

fn report(adapter: &Adapter, path: &Path, name: &str, findings: &mut Vec<DoctorFinding>) {
    let switches = [env::ANYHOOK, env::ANYHOOK_TRUST].map(|it| it.name);
    let is_switch = is_ours(name) && (switches.contains(&name) || name.ends_with("_DIR"));
    let (severity, why) = if is_switch || MOVING_VARIABLES.contains(&name) {
        let why = "it can turn your hooks off, or approve hooks that you have not seen, for everyone who opens this project";
        (Severity::Error, why)
    } else if !is_ours(name) {
        let why = "it can change which programs and which code your hooks run, for everyone who opens this project";
        (Severity::Warning, why)
    } else {
        let why = "a project should not change how anyhook works for everyone who opens it";
        (Severity::Warning, why)
    };
    let what = format!(
        "a file of the project sets `{name}` for {}",
        adapter.spec.name
    );
    let mut finding = DoctorFinding::new(severity, "env-in-project", what)
        .in_file(path)
        .why(why)
        .remedy("remove it, unless you know why it is there");
    finding.agent = Some(adapter.spec.id.to_string());
    let is_known = |one: &DoctorFinding| one.what == finding.what && one.file == finding.file;
    if !findings.iter().any(is_known) {
        findings.push(finding);
    }
}

/// The variables that matter to hooks in a file of the agent's table.
fn variables(source: &EnvSource, path: &Path) -> Vec<String> {
    let Ok(Some(text)) = read_text(path) else {
        return Vec::new();
    };
    let names: Vec<String> = match source.at.as_deref() {
        Some(at) => {
            let document = anyhook_edit::get(&text, Format::Jsonc, &[]).ok().flatten();
            names_in(document.as_ref().and_then(|document| document.pointer(at)))
        }
        None => text.lines().filter_map(assigned_name).collect(),
    };
    names.into_iter().filter(|name| matters(name)).collect()
}

/// The variables that matter to hooks in entries, for their own command.
fn entry_variables(target: &Target) -> Vec<String> {
    let config = target.config();
    let document = target.document().unwrap_or_default();
    let at: Vec<&str> = config
        .handler
        .fields
        .iter()
        .filter(|field| field.to == "env")
        .map(|field| field.at.as_ref())
        .collect();
    let mut names = Vec::new();
    for entry in hook_entries::entries(config, &document) {
        for at in &at {
            names.extend(names_in(entry.handler.pointer(at)));
        }
        for line in entry.commands(config) {
            let words = command::words(line, true);
            names.extend(words.iter().filter_map(|word| assigned_name(word)));
        }
    }
    names.retain(|name| matters(name));
    names
}

fn names_in(map: Option<&Value>) -> Vec<String> {
    let map = map.and_then(Value::as_object);
    map.into_iter()
        .flat_map(|map| map.keys().cloned())
        .collect()
}

/// The name in `NAME=value`, perhaps with `export`.
fn assigned_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, _) = line.split_once('=')?;
    Some(name.trim().to_owned())
}

fn matters(name: &str) -> bool {
    let mut others = MOVING_VARIABLES.iter().chain(OTHER_VARIABLES);
    is_ours(name) || others.any(|other| *other == name) || env::is_injection(name)
}

fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix(env::ANYHOOK.name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}
