//! Imports the hooks of the agents' own files into a manifest: each once, however
//! many agents have it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_convert::program_name;
use anyhook_edit::{EditAction, EditOptions, Key, edit, write_atomic};
use anyhook_model::document::{self, Node};
use anyhook_model::hook::TimeoutAction;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Hook};
use serde_json::Value;

use crate::error::InstallError;
use crate::machine::Machine;
use crate::native_hooks::{HookIdentity, NativeHook, native_hooks};
use crate::target::Target;

/// The event at which guards decide about tool calls.
const GUARDED_EVENT: &str = "before_tool_execute";

/// A hook for the manifest, and the agents' files that have it.
#[derive(Debug, Clone)]
pub struct ImportedHook {
    pub hook: Hook,
    pub sources: Vec<NativeHook>,
}

impl ImportedHook {
    /// Whether it can block tool calls.
    pub fn is_guard(&self) -> bool {
        self.hook.blocking && self.hook.event == GUARDED_EVENT
    }
}

/// The hooks of the project's agents, without bridge entries.
pub fn existing_hooks(machine: &Machine) -> Vec<NativeHook> {
    let mut found: Vec<NativeHook> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for adapter in clients() {
        for target in Target::existing(machine, adapter, &[Scope::Project]) {
            if !files.contains(&target.path) {
                found.extend(native_hooks(machine, &target));
                files.push(target.path);
            }
        }
    }
    found
}

/// The hooks that the project's manifest does not have yet, each once. The
/// strictest of several counts.
pub fn new_hooks(machine: &Machine, existing: Vec<NativeHook>) -> Vec<ImportedHook> {
    let known = manifest_hooks(machine);
    let identity = |hook: &Hook| HookIdentity::new(hook, &machine.root);
    let known_identities: Vec<HookIdentity> = known.iter().map(identity).collect();
    let mut imported: Vec<ImportedHook> = Vec::new();
    for native in existing {
        if known_identities.contains(&native.identity) {
            continue;
        }
        let same = |one: &&mut ImportedHook| {
            let mut sources = one.sources.iter();
            sources.any(|source| source.identity == native.identity)
        };
        if let Some(one) = imported.iter_mut().find(same) {
            merge(&mut one.hook, &native.hook);
            one.sources.push(native);
        } else {
            let hook = native.hook.clone();
            let sources = vec![native];
            imported.push(ImportedHook { hook, sources });
        }
    }
    let mut names: Vec<String> = known.iter().filter_map(|hook| hook.name.clone()).collect();
    for one in &mut imported {
        if one.hook.name.is_none() {
            let name = free_name(&one.hook, &names);
            names.push(name.clone());
            one.hook.name = Some(name);
        }
    }
    imported
}

fn merge(hook: &mut Hook, other: &Hook) {
    hook.blocking |= other.blocking;
    hook.on_failure = hook.on_failure.max(other.on_failure);
    let (own, others) = (&mut hook.handler, &other.handler);
    own.timeout = match (own.timeout, others.timeout) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    if others.timeout_action == Some(TimeoutAction::Block) {
        own.timeout_action = others.timeout_action;
    }
}

/// A name after the hook's program.
fn free_name(hook: &Hook, taken: &[String]) -> String {
    let program = program_name(hook).unwrap_or_else(|| hook.event.clone());
    let stem = program
        .rsplit_once('.')
        .map_or(program.as_str(), |(stem, _)| stem);
    let clean = stem.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() || letter == '_' => letter,
        _ => '-',
    });
    let clean: String = clean.collect();
    let base = match clean.trim_matches('-') {
        "" => hook.event.as_str(),
        name => name,
    };
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| base.to_owned())
}

fn manifest_hooks(machine: &Machine) -> Vec<Hook> {
    let Some(path) = crate::project_manifest(&machine.root) else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (manifest, _) = parse::manifest(&text, format(&path), &Vocabulary::default());
    manifest.map(|manifest| manifest.hooks).unwrap_or_default()
}

fn format(path: &Path) -> Format {
    Format::from_path(&path.to_string_lossy()).unwrap_or(Format::Yaml)
}

/// Adds hooks to a manifest; everything else in it stays.
pub fn extend_manifest(
    machine: &Machine,
    path: &Path,
    import: &[ImportedHook],
) -> Result<(), InstallError> {
    let cannot = |why: String| InstallError::CannotExtend {
        path: path.to_owned(),
        why,
    };
    let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    let format = format(path);
    let hooks_of = |text: &str| {
        let (manifest, _) = parse::manifest(text, format, &Vocabulary::default());
        manifest.map(|manifest| manifest.hooks)
    };
    let mut wanted = hooks_of(&text)
        .ok_or_else(|| cannot("it has mistakes; `anyhook validate` shows them".to_owned()))?;
    wanted.extend(import.iter().map(|one| one.hook.clone()));
    let new = if format == Format::Yaml {
        extended_yaml(machine, &text, import)
    } else {
        extended_json(&text, import).map_err(|error| cannot(error.to_string()))?
    };
    // Read back: a manifest is never damaged.
    if hooks_of(&new).is_none_or(|hooks| hooks != wanted) {
        let why = "its `hooks` are written in a way that cannot be extended; write them as a block list with one `-` per hook";
        return Err(cannot(why.to_owned()));
    }
    write_atomic(path, new.as_bytes())?;
    Ok(())
}

fn extended_json(text: &str, import: &[ImportedHook]) -> Result<String, anyhook_edit::EditError> {
    let mut text = text.to_owned();
    for one in import {
        let value = serde_json::to_value(&one.hook).unwrap_or_default();
        let (path, options) = ([Key::from("hooks")], EditOptions::default());
        text = edit(
            &text,
            Format::Jsonc,
            EditAction::Append,
            &path,
            &value,
            &options,
        )?
        .text;
    }
    Ok(text)
}

/// The text with the hooks after the last one, indented like it.
fn extended_yaml(machine: &Machine, text: &str, import: &[ImportedHook]) -> String {
    let (tree, _) = document::parse(text, Format::Yaml);
    let hooks = tree.as_ref().and_then(|tree| tree.get("hooks"));
    let last = hooks.and_then(Node::as_array).and_then(<[Node]>::last);
    let end = last.map_or(text.len(), |node| node.span.end.min(text.len()));
    let after = text.get(end..).unwrap_or_default();
    let line_end = match after.find('\n') {
        // A span may already end after the line.
        _ if text.get(..end).is_some_and(|head| head.ends_with('\n')) => end,
        Some(at) => end + at + 1,
        None => text.len(),
    };
    let head = text.get(..line_end).unwrap_or(text);
    let indent = last.map_or(2, |node| dash_column(text, node.span.start));
    let newline = if head.ends_with('\n') { "" } else { "\n" };
    let rest = text.get(line_end..).unwrap_or_default();
    format!("{head}{newline}{}{rest}", yaml(machine, import, indent))
}

/// The column of the dash before an element.
fn dash_column(text: &str, start: usize) -> usize {
    let line_start = text.get(..start).and_then(|head| head.rfind('\n'));
    let line = text
        .get(line_start.map_or(0, |at| at + 1)..)
        .unwrap_or_default();
    line.len() - line.trim_start_matches(' ').len()
}

/// The hooks as elements of a YAML list.
pub(crate) fn yaml(machine: &Machine, import: &[ImportedHook], indent: usize) -> String {
    let mut text = String::new();
    let pad = " ".repeat(indent);
    for one in import {
        let files = one
            .sources
            .iter()
            .map(|source| machine.display_path(&source.path));
        let mut files: Vec<String> = files.collect();
        files.dedup();
        text.push('\n');
        if !files.is_empty() {
            let _ = writeln!(text, "{pad}# From {}.", files.join(", "));
        }
        let value = serde_json::to_value(&one.hook).unwrap_or_default();
        let _ = write!(text, "{pad}- {}", yaml_block(&value, indent + 2));
    }
    text
}

/// A value as YAML, after a key or a dash; strings are quoted as in JSON where
/// YAML could read them as something else.
fn yaml_block(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            let members = map.iter().map(|(key, value)| {
                let gap = match value {
                    Value::Object(map) if !map.is_empty() => format!("\n{pad}  "),
                    _ => " ".to_owned(),
                };
                yaml_scalar(key) + ":" + &gap + &yaml_block(value, indent + 2)
            });
            members.collect::<Vec<_>>().join(&pad)
        }
        Value::String(text) => yaml_scalar(text) + "\n",
        // Flow style: JSON is YAML.
        other => format!("{other}\n"),
    }
}

fn yaml_scalar(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.' || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if is_plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn written_hooks_parse_back() {
        let hook = json!({
            "event": "before_tool_execute",
            "matcher": "shell",
            "handler": {"type": "command", "command": "echo \"a: b\" # no\n", "dialect": "x", "timeout": 5,
                "env": {"A B": "no", "C": "#"}},
            "blocking": true,
            "provider_data": {"x": {"$matcher": "Bash", "list": [1, {"a": null}]}},
        });
        let text = format!("spec: hooks/1.0\nhooks:\n  - {}", yaml_block(&hook, 4));
        let (tree, findings) = anyhook_model::document::parse(&text, Format::Yaml);
        assert!(findings.is_empty(), "{findings:?}\n{text}");
        assert_eq!(tree.unwrap().to_json()["hooks"][0], hook, "{text}");
    }
}
