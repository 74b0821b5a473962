//! Compares the payloads of a session with the captures in the agents' folders: how has their shape changed?
//! New payloads are stored only on request.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use serde_json::Value;

use crate::error::{AtPath, Error, Result};
use crate::session::Outcome;
use crate::shape::Shape;

/// The client's event and tool.
type Key = (String, Option<String>);

/// Describes how the payloads of a session differ from the stored ones, one line each; `store` saves those that
/// differ.
pub fn compare_with_stored(slug: &str, outcome: &Outcome, store: bool) -> Result<Vec<String>> {
    let Some(adapter) = anyhook_agents::get(slug) else {
        return Ok(Vec::new());
    };
    let folder = captures_folder(slug);
    let mut stored: BTreeMap<Key, Vec<Shape>> = BTreeMap::new();
    for path in capture_files(&folder)? {
        let text = fs::read_to_string(&path).at("read", &path)?;
        let payload: Value = serde_json::from_str(&text).map_err(|error| Error::Data {
            path: path.clone(),
            message: error.to_string(),
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let event = name.split('-').next().unwrap_or_default();
        let shapes = stored
            .entry(payload_key(adapter, event, &payload))
            .or_default();
        shapes.push(Shape::from_value(&payload));
    }
    let mut changes_found = Vec::new();
    for call in &outcome.hooks {
        let Some(payload) = call.payload() else {
            continue;
        };
        let key = payload_key(adapter, &call.event, &payload);
        let name = capture_name(&call.event, &key);
        let shape = Shape::from_value(&payload);
        let known = stored.entry(key).or_default();
        let changes = if known.is_empty() {
            vec!["never captured before".to_owned()]
        } else {
            shape.differs_from(known)
        };
        if changes.is_empty() {
            continue;
        }
        changes_found.push(format!("{name}: {}", changes.join(", ")));
        known.push(shape);
        if store {
            let path = unused_path(&folder, &name);
            fs::write(&path, scrub(&call.stdin, outcome)).at("write", path)?;
        }
    }
    Ok(changes_found)
}

fn captures_folder(slug: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/anyhook-agents/agents")
        .join(slug)
        .join("captures")
}

fn capture_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).at("list", &folder)? {
            let path = entry.at("list", &folder)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn payload_key(adapter: &Adapter, event: &str, payload: &Value) -> Key {
    match adapter.decode(payload, Some(event)) {
        Ok(decoded) => {
            let tool = decoded.event.text("native_tool_name").map(str::to_owned);
            (decoded.event.native_event, tool)
        }
        Err(_) => (event.to_owned(), None),
    }
}

/// Starts with the hook that was called, which is how readers of the file identify it.
fn capture_name(hook: &str, (event, tool): &Key) -> String {
    let variant = tool.as_ref().or((hook != event).then_some(event));
    match variant {
        Some(variant) => format!("{hook}-{}", variant.replace(['/', '-'], "_")),
        None => hook.to_owned(),
    }
}

/// A numbered name if the plain one is taken; stored captures are never overwritten.
fn unused_path(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(format!("{name}.json"));
    if !plain.exists() {
        return plain;
    }
    (2..1000)
        .map(|count| folder.join(format!("{name}-{count}.json")))
        .find(|path| !path.exists())
        .unwrap_or(plain)
}

/// The payload with the paths of this machine replaced by neutral ones.
fn scrub(text: &str, outcome: &Outcome) -> String {
    let sandbox = &outcome.sandbox;
    let mut text = text.to_owned();
    for (path, stand_in) in [
        (Some(sandbox.project.as_path()), "/home/dev/proj"),
        (Some(sandbox.home.as_path()), "/home/dev"),
        (sandbox.run.parent(), "/tmp/dev"),
    ] {
        let Some(path) = path else { continue };
        let path = path.to_string_lossy();
        text = text.replace(path.as_ref(), stand_in);
        // Some clients name folders after the project's path.
        text = text.replace(&path.replace('/', "-"), &stand_in.replace('/', "-"));
    }
    text
}
