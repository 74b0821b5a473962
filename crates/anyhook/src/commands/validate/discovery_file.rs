//! Checks of `.openhook.json`: what the protocol says, fields and events that are
//! probably misspelt, and the scripts that its commands name.

use std::path::{Path, PathBuf};

use anyhook_install::Machine;
use anyhook_install::hook_scripts::{ManifestPlace, check_hook_scripts};
use anyhook_model::document::{self, Node, Value};
use anyhook_model::{Diagnostic, Format, Handler, Hook, Scope, Severity, suggest};
use openhook::{Discovery, FindingSeverity, event_type};

use super::{STDIN, span_at};

/// The fields of an entry.
const ENTRY_FIELDS: [&str; 4] = ["command", "events", "async", "timeout"];

/// The number of hooks, and everything that is wrong. OpenHook's findings have a JSON
/// pointer; the parsed tree has its position in the text.
pub(super) fn check(path: &str, text: &str, machine: &Machine) -> (Option<usize>, Vec<Diagnostic>) {
    let (tree, syntax) = document::parse(text, Format::Json);
    let Some(tree) = tree.filter(|_| syntax.is_empty()) else {
        return (None, syntax);
    };
    let parsed = Discovery::from_value(&tree.to_json());
    let mut findings: Vec<Diagnostic> = parsed
        .findings
        .into_iter()
        .map(|finding| protocol_finding(&tree, finding))
        .collect();
    findings.extend(misspelt_fields(&tree));
    if let Some(discovery) = parsed.discovery.as_ref().filter(|_| path != STDIN) {
        findings.extend(script_findings(&tree, discovery, path, machine));
    }
    findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
    let hooks = parsed.discovery.map(|discovery| discovery.hooks.len());
    (hooks, findings)
}

fn protocol_finding(tree: &Node, finding: openhook::Finding) -> Diagnostic {
    let severity = match finding.severity {
        FindingSeverity::Error => Severity::Error,
        FindingSeverity::Warning => Severity::Warning,
    };
    let span = span_at(tree, &finding.field);
    let value = tree.to_json();
    let event = value.pointer(&finding.field).and_then(|it| it.as_str());
    let event = event.filter(|_| finding.field.contains("/events/"));
    let near = event.and_then(|event| suggest::nearest(event, event_type::ALL));
    let has_hint = finding.message.contains("did you mean");
    let found = Diagnostic::new(severity, finding.code, span, finding.message);
    let found = match near.filter(|_| !has_hint) {
        Some(near) => found.help(format!("did you mean `{near}`?")),
        None => found,
    };
    found.path(finding.field)
}

/// Fields of an entry that have no effect and look like one that has. Others may be
/// extensions.
fn misspelt_fields(tree: &Node) -> Vec<Diagnostic> {
    let entries = tree.get("hooks").and_then(Node::as_array);
    let mut findings = Vec::new();
    for (position, entry) in entries.into_iter().flatten().enumerate() {
        let Value::Object(members) = &entry.value else {
            continue;
        };
        for member in members {
            let name = member.key.as_str();
            let near = suggest::nearest(name, ENTRY_FIELDS);
            let Some(near) = near.filter(|_| !ENTRY_FIELDS.contains(&name)) else {
                continue;
            };
            let message = format!("unknown field `{name}` has no effect");
            findings.push(
                Diagnostic::new(Severity::Warning, "unknown-field", member.key_span, message)
                    .help(format!("did you mean `{near}`?"))
                    .path(format!("/hooks/{position}/{name}")),
            );
        }
    }
    findings
}

/// Missing scripts and the like: a warning, because a consumer guards nothing.
fn script_findings(
    tree: &Node,
    discovery: &Discovery,
    path: &str,
    machine: &Machine,
) -> Vec<Diagnostic> {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let folder = path.parent().unwrap_or(Path::new("."));
    let place = ManifestPlace {
        scope: Scope::Project,
        root: folder,
        folder,
    };
    let mut findings = Vec::new();
    for (position, subscriber) in discovery.hooks.iter().enumerate() {
        let hook = Hook {
            handler: Handler {
                command: Some(subscriber.command.clone()),
                ..Handler::default()
            },
            ..Hook::default()
        };
        for problem in check_hook_scripts(machine, &hook, place) {
            // A consumer's exit code says nothing.
            if problem.is_about_machine() || problem.code.starts_with("exit-") {
                continue;
            }
            let at = format!("/hooks/{position}/command");
            let severity = problem.severity.min(Severity::Warning);
            findings.push(
                Diagnostic::new(severity, problem.code, span_at(tree, &at), problem.message)
                    .help(problem.help)
                    .path(at),
            );
        }
    }
    findings
}
