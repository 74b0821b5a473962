//! A first manifest that works, and the hooks that a project has already.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_agents::spec::Scope;
use anyhook_convert::{Options, Source, Target as Goal, Warning, convert};
use anyhook_edit::write_atomic;
use anyhook_model::{Format, parse};
use anyhook_run::discover::PROJECT_FOLDER;
use anyhook_run::trust::{Project, TrustStore};
use serde_json::Value;

use crate::command;
use crate::error::InstallError;
use crate::target::Target;
use crate::world::World;

const GUARD: &str = include_str!("init/guard.sh");
const MANIFEST: &str = include_str!("init/hooks.yaml");

/// Hooks of an agent's own file, as they would stand in a manifest.
#[derive(Debug, Clone)]
pub struct Existing {
    pub adapter: &'static Adapter,
    pub path: PathBuf,
    pub hooks: Vec<Value>,
    /// What they lose, or what one should know.
    pub warnings: Vec<Warning>,
}

/// What the project's agents run already; our own entries are not among it.
pub fn existing(world: &World) -> Vec<Existing> {
    let mut found: Vec<Existing> = Vec::new();
    for adapter in clients() {
        for target in Target::present(world, adapter, &[Scope::Project]) {
            if !target.is_editable() || found.iter().any(|other| other.path == target.path) {
                continue;
            }
            found.extend(decoded(&target));
        }
    }
    found
}

fn decoded(target: &Target) -> Option<Existing> {
    let document = target.document()?;
    let source = Source::decode(target.adapter, &document, target.variant);
    let options = Options {
        keep_dialect: true,
        ..Options::default()
    };
    let conversion = convert(&source, Goal::Canonical, &options).ok()?;
    let hooks: Vec<Value> = conversion
        .document
        .get("hooks")?
        .as_array()?
        .iter()
        .filter(|hook| {
            let line = hook.pointer("/handler/command").and_then(Value::as_str);
            line.is_none_or(|line| command::ours(line).is_none())
        })
        .cloned()
        .collect();
    (!hooks.is_empty()).then(|| Existing {
        adapter: target.adapter,
        path: target.path.clone(),
        warnings: conversion.warnings,
        hooks,
    })
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Written {
    pub manifest: PathBuf,
    pub guard: PathBuf,
    /// The manifest is trusted: it holds nothing but what we wrote.
    pub trusted: bool,
}

/// Writes manifest and guard. With imported hooks the user has to consent to
/// them: they came with the project.
pub fn write(world: &World, import: &[Existing]) -> Result<Written, InstallError> {
    let folder = world.root.join(PROJECT_FOLDER);
    let (manifest, guard) = (folder.join("hooks.yaml"), folder.join("guard.sh"));
    let mut text = MANIFEST.to_owned();
    for source in import {
        let _ = writeln!(
            text,
            "\n  # From {}: these still run there as well, until you take them out.",
            world.shown(&source.path)
        );
        for hook in &source.hooks {
            let _ = write!(text, "  - {}", block(hook, 4));
        }
    }
    if !guard.exists() {
        write_atomic(&guard, GUARD.as_bytes())?;
        crate::doctor::make_executable(&guard)?;
    }
    write_atomic(&manifest, text.as_bytes())?;
    let trusted = import.is_empty()
        && std::fs::read_to_string(&guard).is_ok_and(|there| there == GUARD)
        && consent(world, &manifest, &text);
    Ok(Written {
        manifest,
        guard,
        trusted,
    })
}

fn consent(world: &World, path: &Path, text: &str) -> bool {
    let Some(manifest) = parse::manifest(text, Format::Yaml, &parse::Vocabulary::default()).0
    else {
        return false;
    };
    let project = Project {
        path,
        root: &world.root,
        text,
        manifest: &manifest,
    };
    TrustStore::new(&world.dirs.state).record(&project).is_ok()
}

/// A value as YAML, after a key or a dash; texts are written as in JSON where
/// they could be taken for something else.
fn block(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            let mut out = String::new();
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    out.push_str(&pad);
                }
                let is_nested = matches!(value, Value::Object(map) if !map.is_empty());
                let gap = if is_nested {
                    format!("\n{}", " ".repeat(indent + 2))
                } else {
                    " ".to_owned()
                };
                let _ = write!(out, "{}:{gap}{}", scalar(key), block(value, indent + 2));
            }
            out
        }
        Value::String(text) => scalar(text) + "\n",
        // Flow style: JSON is YAML.
        other => format!("{other}\n"),
    }
}

fn scalar(text: &str) -> String {
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
    fn what_is_written_is_read_back() {
        let hook = json!({
            "event": "before_tool_execute",
            "matcher": "shell",
            "handler": {"type": "command", "command": "echo \"a: b\" # no\n", "dialect": "x", "timeout": 5,
                "env": {"A B": "no", "C": "#"}},
            "blocking": true,
            "provider_data": {"x": {"$matcher": "Bash", "list": [1, {"a": null}]}},
        });
        let text = format!("spec: hooks/1.0\nhooks:\n  - {}", block(&hook, 4));
        let (tree, findings) = anyhook_model::document::parse(&text, Format::Yaml);
        assert!(findings.is_empty(), "{findings:?}\n{text}");
        assert_eq!(tree.unwrap().to_json()["hooks"][0], hook, "{text}");
    }

    #[test]
    fn the_first_manifest_is_valid() {
        let (manifest, findings) =
            parse::manifest(MANIFEST, Format::Yaml, &parse::Vocabulary::default());
        assert!(manifest.is_some() && findings.is_empty(), "{findings:?}");
    }
}
