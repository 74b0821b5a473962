//! One file as a whole: does the agent read it, and what switches hooks off?

use anyhook_agents::matrix::clients;
use anyhook_agents::spec::{FileFormat, Scope, Shape};
use anyhook_edit::{Format, read_text};
use anyhook_model::suggest;
use serde_json::Value;

use super::{Finding, Severity, about, entry, hazard, script, trap};
use crate::target::Target;
use crate::walk;
use crate::world::World;

/// Looks at a file and at each of its entries.
pub fn check(world: &World, target: &Target, findings: &mut Vec<Finding>) {
    if !target.is_editable() {
        script::check_scripts(world, target, findings);
        return;
    }
    let text = match read_text(&target.path) {
        Ok(Some(text)) => text,
        Ok(None) => return,
        Err(error) => {
            findings.push(unreadable(target, error.to_string()));
            return;
        }
    };
    if text.trim().is_empty() {
        return;
    }
    slashes(target, &text, findings);
    let document = match anyhook_edit::get(&text, target.edit_format(), &[]) {
        Ok(Some(document)) => document,
        Ok(None) => return,
        Err(error) => {
            findings.push(unreadable(target, error.to_string()));
            return;
        }
    };
    if target.format == FileFormat::Json
        && let Err(error) = anyhook_edit::get(&text, Format::Json, &[])
        && !walk::entries(target.config(), &document).is_empty()
    {
        findings.push(about(
            target,
            "not-strict-json",
            Severity::Warning,
            format!("it has comments or trailing commas: {error}"),
            "an agent that reads strict JSON reads nothing of it, and runs without hooks",
            "take them out".to_owned(),
        ));
    }
    switches(target, &document, findings);
    form(world, target, &document, findings);
    events(world, target, &document, findings);
    for one in walk::entries(target.config(), &document) {
        entry::check(target, &one, findings);
        script::check_entry(world, target, &one, findings);
    }
}

fn unreadable(target: &Target, error: String) -> Finding {
    about(
        target,
        "unreadable-file",
        Severity::Error,
        error,
        "the agent cannot read it either, and runs without these hooks",
        "mend the place that is named".to_owned(),
    )
}

/// `//` inside a string, for readers that take it for a comment everywhere.
fn slashes(target: &Target, text: &str, findings: &mut Vec<Finding>) {
    let (mut inside, mut escaped, mut before) = (false, false, ' ');
    for (number, line) in text.lines().enumerate() {
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
        (inside, escaped, before) = (false, false, ' ');
        if found {
            let what = format!("line {}: `//` or `/*` inside a text", number + 1);
            findings.extend(trap(target, "slashes-are-comments", Severity::Error, what));
        }
    }
}

/// Keys that switch hooks off.
fn switches(target: &Target, document: &Value, findings: &mut Vec<Finding>) {
    let is = |at: &str, value: bool| document.pointer(at) == Some(&Value::Bool(value));
    let mut off = |id: &str, what: &str| {
        findings.extend(trap(target, id, Severity::Error, what.to_owned()));
    };
    if is("/disableAllHooks", true) {
        off("disable-all-hooks", "`disableAllHooks` is true");
    }
    let root = walk::root(target.config(), document);
    if root.and_then(|root| root.get("hooksDisabled")) == Some(&Value::Bool(true)) {
        off("hooks-disabled", "`hooksDisabled` is true");
    }
    if is("/hooksConfig/enabled", false) {
        off("disabled-by-name", "`hooksConfig.enabled` is false");
    }
    for key in ["hooks", "codex_hooks"] {
        if is(&format!("/features/{key}"), false) {
            off("features-hooks-off", &format!("`features.{key}` is false"));
        }
    }
    let disabled = document
        .pointer("/hooksConfig/disabled")
        .and_then(Value::as_array);
    let names: Vec<&str> = disabled
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !names.is_empty() {
        let severity = if names.iter().any(|name| name.contains("anyhook")) {
            Severity::Error
        } else {
            Severity::Info
        };
        let what = format!("`hooksConfig.disabled` names {}", names.join(", "));
        findings.extend(trap(target, "disabled-by-name", severity, what));
    }
    let states = document.pointer("/hooks/state").and_then(Value::as_object);
    for (key, state) in states.into_iter().flatten() {
        if state.get("enabled") == Some(&Value::Bool(false)) {
            let what = format!("the hook `{key}` has `enabled = false`");
            findings.extend(trap(target, "features-hooks-off", Severity::Warning, what));
        }
    }
}

/// Whether the file has the form that the agent reads.
fn form(world: &World, target: &Target, document: &Value, findings: &mut Vec<Finding>) {
    let config = target.config();
    let name = target
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    if config.root.is_empty() && document.get("hooks").is_some_and(Value::is_object) {
        let what = "the events stand under a `hooks` key".to_owned();
        let known = trap(target, "wrapped-hooks-json", Severity::Error, what.clone());
        findings.push(known.unwrap_or_else(|| {
            about(
                target,
                "wrapped-hooks-json",
                Severity::Error,
                what,
                "this file is the map of events itself: none of these hooks run",
                "put the event names at the top".to_owned(),
            )
        }));
    }
    let keys = document
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key);
    if name == "hooks.json" && target.format == FileFormat::Json {
        let foreign: Vec<&str> = keys
            .map(String::as_str)
            .filter(|key| !["description", "hooks"].contains(key))
            .collect();
        if !foreign.is_empty() && hazard(target.adapter, "root-keys").is_some() {
            let what = format!("it has the keys {} beside `hooks`", foreign.join(", "));
            findings.extend(trap(target, "root-keys", Severity::Error, what));
        }
    }
    let version = document.get("version");
    let is_other = version.is_some_and(|version| version.as_i64() != Some(1));
    if is_other && config.shape == Shape::Flat {
        let what = format!("`version` is {}", version.unwrap_or(&Value::Null));
        findings.extend(trap(target, "version-must-be-1", Severity::Error, what));
    }
    if let Some((key, value)) = config.preamble.iter().next()
        && version_matters(target)
        && !walk::entries(config, document).is_empty()
        && document.get(key).is_none_or(|there| !there.is_i64())
    {
        let what = format!("`{key}` is missing or no whole number; it has to be {value}");
        findings.extend(trap(
            target,
            "one-fault-voids-the-file",
            Severity::Error,
            what,
        ));
    }
    shadowed(world, target, document, findings);
}

fn version_matters(target: &Target) -> bool {
    target.scope != Scope::Plugin && hazard(target.adapter, "one-fault-voids-the-file").is_some()
}

/// Hooks in a file that another file of the same scope puts out of force.
fn shadowed(world: &World, target: &Target, document: &Value, findings: &mut Vec<Finding>) {
    if target.variant.is_none() || walk::entries(target.config(), document).is_empty() {
        return;
    }
    let main = target
        .adapter
        .spec
        .files
        .iter()
        .find(|file| file.write && file.scope == target.scope && file.variant.is_none());
    let main = main.and_then(|file| world.place(file));
    if let Some(main) = main.filter(|main| main.is_file()) {
        let what = format!("it has hooks, and so has `{}`", world.shown(&main));
        findings.extend(trap(target, "settings-shadowed", Severity::Warning, what));
    }
}

/// Whether another agent looks into the same file and knows the event.
fn is_for_another(world: &World, target: &Target, event: &str) -> bool {
    clients().any(|other| {
        other.spec.id != target.adapter.spec.id
            && other.event_by_native(event).is_some()
            && Target::named(world, other, &target.path).is_ok()
    })
}

/// Names that the agent does not know.
fn events(world: &World, target: &Target, document: &Value, findings: &mut Vec<Finding>) {
    let (adapter, config) = (target.adapter, target.config());
    let mut told: Vec<&str> = Vec::new();
    for entry in walk::entries(config, document) {
        let known = adapter.event_by_native(entry.event).is_some()
            || config.event_names.values().any(|name| name == entry.event);
        if known || told.contains(&entry.event) || is_for_another(world, target, entry.event) {
            continue;
        }
        told.push(entry.event);
        let names = adapter
            .spec
            .events
            .iter()
            .map(|event| event.native.as_ref());
        let hint = suggest::nearest(entry.event, names)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        let what = format!("{} has no event `{}`{hint}", adapter.spec.name, entry.event);
        let void = trap(
            target,
            "one-fault-voids-the-file",
            Severity::Error,
            what.clone(),
        );
        findings.push(void.unwrap_or_else(|| {
            about(
                target,
                "unknown-event",
                Severity::Warning,
                what,
                "its hooks never run",
                "use one of the agent's events (`anyhook agents NAME` lists them)".to_owned(),
            )
        }));
    }
}
