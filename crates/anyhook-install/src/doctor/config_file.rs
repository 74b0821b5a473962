//! Checks one config file as a whole: whether the agent reads it, and whether
//! something in it turns hooks off.

use anyhook_agents::matrix::clients;
use anyhook_agents::spec::{ConfigShape, Scope, SwitchOff};
use anyhook_edit::read_text;
use anyhook_model::{Format, suggest};
use serde_json::Value;

use super::{DoctorFinding, FileCheck, Severity, command_lines, entry_timeouts, hook_entry};
use crate::hook_entries::{self, HookEntry};
use crate::machine::Machine;
use crate::target::Target;

/// A mistake anywhere makes the agent ignore the whole file.
pub(super) const FAULT_VOIDS_FILE: &str = "one-fault-voids-the-file";

/// Checks a file and each of its entries.
pub(super) fn check(machine: &Machine, target: &Target, findings: &mut Vec<DoctorFinding>) {
    let mut file = FileCheck {
        machine,
        target,
        findings,
    };
    if !target.is_editable() {
        command_lines::check_scripts(&mut file);
        return;
    }
    if let Err(error) = check_editable(&mut file) {
        file.report(
            DoctorFinding::error("unreadable-file", error)
                .why("the agent cannot read it either, and runs without these hooks")
                .remedy("fix the syntax error"),
        );
    }
}

fn check_editable(file: &mut FileCheck<'_>) -> Result<(), String> {
    let target = file.target;
    let text = read_text(&target.path).map_err(|error| error.to_string())?;
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(());
    };
    check_slashes(file, &text);
    let document = anyhook_edit::get(&text, target.edit_format(), &[]);
    let Some(document) = document.map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let entries = hook_entries::entries(target.config(), &document);
    if target.format == Some(Format::Json)
        && let Err(error) = anyhook_edit::get(&text, Format::Json, &[])
        && !entries.is_empty()
    {
        let what = format!("the file has comments or trailing commas: {error}");
        file.report(
            DoctorFinding::warning("not-strict-json", what)
                .why("an agent that reads strict JSON ignores the whole file and runs no hooks")
                .remedy("remove them"),
        );
    }
    check_off_switches(file, &document);
    check_form(file, &document, &entries);
    check_event_names(file, &entries);
    for entry in &entries {
        hook_entry::check(file, entry);
        command_lines::check_entry(file, entry);
    }
    entry_timeouts::check(file, &document);
    Ok(())
}

/// `//` inside a string, for readers that treat it as a comment everywhere.
fn check_slashes(file: &mut FileCheck<'_>, text: &str) {
    for (number, line) in text.lines().enumerate() {
        let (mut inside, mut escaped, mut before) = (false, false, ' ');
        let mut found = false;
        for c in line.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if inside => escaped = true,
                '"' => inside = !inside,
                '/' | '*' if inside && before == '/' => found = true,
                '/' if !inside && before == '/' => break,
                _ => {}
            }
            before = if escaped { ' ' } else { c };
        }
        if found {
            let what = format!("line {}: `//` or `/*` inside a string", number + 1);
            file.report_hazard(Severity::Error, "slashes-are-comments", what);
        }
    }
}

/// Keys of the agent's table that turn hooks off.
fn check_off_switches(file: &mut FileCheck<'_>, document: &Value) {
    let root = hook_entries::hooks_root(file.target.config(), document);
    for switch in &file.target.adapter.spec.off_switches {
        let at = &*switch.at;
        let key = at.trim_start_matches('/').replace('/', ".");
        let value = match at.strip_prefix('/') {
            Some(_) => document.pointer(at),
            None => root.and_then(|root| root.get(at)),
        };
        match (switch.off, value) {
            (SwitchOff::True, Some(Value::Bool(true)))
            | (SwitchOff::False, Some(Value::Bool(false))) => {
                let what = format!("`{key}` is {}", switch.off == SwitchOff::True);
                file.report_hazard(Severity::Error, &switch.hazard, what);
            }
            (SwitchOff::Names, Some(Value::Array(names))) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                let severity = if names.iter().any(|name| name.contains("anyhook")) {
                    Severity::Error
                } else {
                    Severity::Info
                };
                if !names.is_empty() {
                    let what = format!("`{key}` lists {}", names.join(", "));
                    file.report_hazard(severity, &switch.hazard, what);
                }
            }
            (SwitchOff::States, Some(Value::Object(states))) => {
                for (hook, state) in states {
                    if state.get("enabled") == Some(&Value::Bool(false)) {
                        let what = format!("the hook `{hook}` has `enabled = false`");
                        file.report_hazard(Severity::Warning, &switch.hazard, what);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether the file has the structure that the agent reads.
fn check_form(file: &mut FileCheck<'_>, document: &Value, entries: &[HookEntry<'_>]) {
    let (target, config) = (file.target, file.target.config());
    if config.root.is_empty() && document.get("hooks").is_some_and(Value::is_object) {
        let id = "wrapped-hooks-json";
        file.report_as(
            &[id],
            DoctorFinding::error(id, "the events are under a `hooks` key")
                .why("the agent expects the event names at the top level, so none of these hooks run")
                .remedy("move the event names to the top level"),
        );
    }
    let is_hooks_json = target.path.ends_with("hooks.json") && target.format == Some(Format::Json);
    let keys = document.as_object().into_iter().flat_map(|map| map.keys());
    let foreign: Vec<&str> = keys
        .map(String::as_str)
        .filter(|key| is_hooks_json && !["description", "hooks"].contains(key))
        .collect();
    if !foreign.is_empty() {
        let keys = foreign.join(", ");
        let what = format!("the file has other keys than `hooks`: {keys}");
        file.report_hazard(Severity::Error, "root-keys", what);
    }
    if let Some(version) = document.get("version")
        && version.as_i64() != Some(1)
        && config.shape == ConfigShape::Flat
    {
        let what = format!("`version` is {version}");
        file.report_hazard(Severity::Error, "version-must-be-1", what);
    }
    if let Some((key, value)) = config.preamble.iter().next()
        && target.scope != Scope::Plugin
        && !entries.is_empty()
        && document.get(key).is_none_or(|version| !version.is_i64())
    {
        let what = format!("`{key}` is missing or not a whole number; it must be {value}");
        file.report_hazard(Severity::Error, FAULT_VOIDS_FILE, what);
    }
    if target.variant.is_some() && !entries.is_empty() {
        check_shadowed(file);
    }
}

/// Hooks in a file that the agent ignores if its main file exists.
fn check_shadowed(file: &mut FileCheck<'_>) {
    let target = file.target;
    let files = &target.adapter.spec.files;
    let mut own = files
        .iter()
        .filter(|other| other.scope == target.scope && other.variant.as_deref() == target.variant);
    let main = own.find_map(|own| own.ignored_beside.as_ref());
    let main = main.and_then(|main| {
        let main = files.iter().find(|file| file.path == *main)?;
        file.machine.config_path(main)
    });
    if let Some(main) = main.filter(|main| main.is_file()) {
        let main = file.machine.display_path(&main);
        let what = format!("both this file and `{main}` have hooks");
        file.report_hazard(Severity::Warning, "settings-shadowed", what);
    }
}

/// Whether another agent reads the same file and knows the event.
fn is_for_another_agent(file: &FileCheck<'_>, event: &str) -> bool {
    clients().any(|other| {
        other.spec.id != file.target.adapter.spec.id
            && other.event_by_native(event).is_some()
            && Target::for_path(file.machine, other, &file.target.path).is_ok()
    })
}

/// Events that the agent does not know.
fn check_event_names(file: &mut FileCheck<'_>, entries: &[HookEntry<'_>]) {
    let (adapter, config) = (file.target.adapter, file.target.config());
    let mut reported: Vec<&str> = Vec::new();
    for entry in entries {
        let is_known = adapter.event_by_native(entry.event).is_some()
            || config.event_names.values().any(|name| name == entry.event);
        if is_known || reported.contains(&entry.event) || is_for_another_agent(file, entry.event) {
            continue;
        }
        reported.push(entry.event);
        let names = adapter.spec.events.iter().map(|event| &*event.native);
        let hint = suggest::nearest(entry.event, names)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        let what = format!("{} has no event `{}`{hint}", adapter.spec.name, entry.event);
        file.report_as(
            &[FAULT_VOIDS_FILE],
            DoctorFinding::warning("unknown-event", what)
                .why("its hooks never run")
                .remedy("use one of the agent's events (`anyhook agents NAME` lists them)"),
        );
    }
}
