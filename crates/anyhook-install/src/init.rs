//! A first working manifest, and the hooks that a project already has.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_convert::{
    ConversionOptions, ConversionSource, ConversionTarget, ConversionWarning, convert,
};
use anyhook_edit::{make_executable, write_atomic};
use anyhook_model::{Format, Hook, parse};
use anyhook_run::config::discover::PROJECT_FOLDER;
use anyhook_run::config::trust::{ProjectManifest, TrustStore};
use serde_json::Value;

use crate::command::BridgeCommand;
use crate::error::InstallError;
use crate::machine::Machine;
use crate::target::Target;

const GUARD_SCRIPT: &str = include_str!("init/guard.sh");
const MANIFEST_TEMPLATE: &str = include_str!("init/hooks.yaml");

/// A manifest of built-in guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    pub manifest: &'static str,
}

pub const PRESETS: [Preset; 2] = [
    Preset {
        name: "standard",
        about: "what hardly anyone wants an agent to do; a guard that fails lets the call pass, with a warning",
        manifest: include_str!("init/standard.yaml"),
    },
    Preset {
        name: "strict",
        about: "as standard, and hosts that are not listed, changes of CI files; a guard that fails blocks",
        manifest: include_str!("init/strict.yaml"),
    },
];

impl Preset {
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    pub fn hooks(&self) -> Vec<Hook> {
        let vocabulary = parse::Vocabulary::default();
        let (manifest, _) = parse::manifest(self.manifest, Format::Yaml, &vocabulary);
        manifest.map(|manifest| manifest.hooks).unwrap_or_default()
    }
}

/// Hooks in an agent's own file, converted for a manifest.
#[derive(Debug, Clone)]
pub struct ExistingHooks {
    pub adapter: &'static Adapter,
    pub path: PathBuf,
    pub hooks: Vec<Value>,
    /// What the conversion loses, or what users should know.
    pub warnings: Vec<ConversionWarning>,
}

/// The hooks of the project's agents, without bridge entries.
pub fn existing_hooks(machine: &Machine) -> Vec<ExistingHooks> {
    let mut found: Vec<ExistingHooks> = Vec::new();
    for adapter in clients() {
        for target in Target::existing(machine, adapter, &[Scope::Project]) {
            if !target.is_editable() || found.iter().any(|other| other.path == target.path) {
                continue;
            }
            found.extend(converted_hooks(&target));
        }
    }
    found
}

fn converted_hooks(target: &Target) -> Option<ExistingHooks> {
    let document = target.document()?;
    let source = ConversionSource::decode(target.adapter, &document, target.variant);
    let options = ConversionOptions::default();
    let conversion = convert(&source, ConversionTarget::Canonical, &options).ok()?;
    let hooks: Vec<Value> = conversion
        .document
        .get("hooks")?
        .as_array()?
        .iter()
        .filter(|hook| {
            let line = hook.pointer("/handler/command").and_then(Value::as_str);
            line.and_then(BridgeCommand::parse).is_none()
        })
        .cloned()
        .collect();
    (!hooks.is_empty()).then(|| ExistingHooks {
        adapter: target.adapter,
        path: target.path.clone(),
        warnings: conversion.warnings,
        hooks,
    })
}

#[derive(Debug, Clone)]
pub struct InitResult {
    pub manifest: PathBuf,
    /// The script of a manifest without built-in guards.
    pub guard: Option<PathBuf>,
    /// The manifest is trusted: it contains only what was just written.
    pub trusted: bool,
}

/// Writes the manifest, of a preset or with a guard of its own. Imported hooks
/// came with the project, so the user has to approve them.
pub fn write_manifest(
    machine: &Machine,
    preset: Option<&Preset>,
    import: &[ExistingHooks],
) -> Result<InitResult, InstallError> {
    let folder = machine.root.join(PROJECT_FOLDER);
    let manifest = folder.join("hooks.yaml");
    let template = preset.map_or(MANIFEST_TEMPLATE, |preset| preset.manifest);
    let mut text = template.to_owned();
    for source in import {
        let _ = writeln!(
            text,
            "\n  # From {}: these also run there until you remove them.",
            machine.display_path(&source.path)
        );
        for hook in &source.hooks {
            let _ = write!(text, "  - {}", yaml_block(hook, 4));
        }
    }
    let guard = preset.is_none().then(|| folder.join("guard.sh"));
    if let Some(guard) = guard.as_ref().filter(|guard| !guard.exists()) {
        write_atomic(guard, GUARD_SCRIPT.as_bytes())?;
        make_executable(guard)?;
    }
    write_atomic(&manifest, text.as_bytes())?;
    let is_own =
        |guard: &PathBuf| std::fs::read_to_string(guard).is_ok_and(|text| text == GUARD_SCRIPT);
    let trusted = import.is_empty()
        && guard.as_ref().is_none_or(is_own)
        && trust_manifest(machine, &manifest, &text);
    Ok(InitResult {
        manifest,
        guard,
        trusted,
    })
}

fn trust_manifest(machine: &Machine, path: &Path, text: &str) -> bool {
    let (manifest, _) = parse::manifest(text, Format::Yaml, &parse::Vocabulary::default());
    let store = TrustStore::new(&machine.dirs.state);
    manifest.is_some_and(|manifest| {
        let project = ProjectManifest {
            path,
            root: &machine.root,
            text,
            manifest: &manifest,
        };
        store.record(&project).is_ok()
    })
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
    use anyhook_run::run::guard::GuardCommand;
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

    #[test]
    fn the_first_manifest_is_valid() {
        let presets = PRESETS.iter().map(|preset| preset.manifest);
        for text in presets.chain([MANIFEST_TEMPLATE]) {
            let vocabulary = parse::Vocabulary::default();
            let (manifest, findings) = parse::manifest(text, Format::Yaml, &vocabulary);
            assert!(manifest.is_some() && findings.is_empty(), "{findings:?}");
        }
    }

    #[test]
    fn a_preset_is_made_of_guards_that_exist() {
        for preset in &PRESETS {
            assert!(!preset.hooks().is_empty());
            for hook in preset.hooks() {
                let guard = GuardCommand::from_handler(&hook.handler).unwrap();
                let parsed = anyhook_guard::parse_guard(&guard.words, &|_| Err(String::new()));
                assert_eq!(parsed.unwrap().name(), hook.name.unwrap(), "{guard:?}");
            }
        }
    }
}
