//! What the standard guards object to in the shell scripts of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_guard::{Guard, GuardInput, parse_guard};
use anyhook_model::HookEvent;
use serde_json::json;

use crate::labelled;

/// Where systems keep scripts; those that do not exist are left out by name.
const FOLDERS: &[&str] = &[
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/local/bin",
    "/etc",
    "/usr/share",
    "/var/lib/dpkg/info",
];

const MAX_FILE_BYTES: u64 = 256 << 10;

pub(crate) fn standard_guards() -> Vec<Guard> {
    [
        "filesystem",
        "git",
        "secrets",
        "remote-code",
        "database",
        "cloud",
        "self",
    ]
    .iter()
    .map(|name| parse_guard(&[(*name).to_owned()], &|_| Err(String::new())).expect("a guard"))
    .collect()
}

pub(crate) fn shell_event(command: &str, shell: &str) -> HookEvent {
    serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "cwd": "/home/dev/project",
        "data": {"tool_name": "shell", "native_tool_name": shell, "tool_input": {"command": command}},
    }))
    .expect("an event")
}

pub(crate) fn measure(folders: &[String]) {
    let guards = standard_guards();
    let context = labelled::context();
    let given: Vec<&str> = if folders.is_empty() {
        FOLDERS.to_vec()
    } else {
        folders.iter().map(String::as_str).collect()
    };
    let mut lines = BTreeSet::new();
    let mut files = 0;
    for folder in given {
        if !Path::new(folder).is_dir() {
            println!("skipped, because it does not exist: {folder}");
            continue;
        }
        for file in scripts_in(Path::new(folder)) {
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            files += 1;
            lines.extend(commands(&text));
        }
    }
    let (mut denied, mut asked) = (0, 0);
    for line in &lines {
        let event = shell_event(line, "bash");
        let input = GuardInput::new(&event, &context);
        let found = guards.iter().filter_map(|guard| guard.judge_input(&input));
        let Some(strongest) = found.max_by_key(|found| found.decision) else {
            continue;
        };
        match strongest.decision.as_str() {
            "deny" => denied += 1,
            _ => asked += 1,
        }
        println!(
            "{} {}/{}: {line}",
            strongest.decision.as_str(),
            strongest.guard,
            strongest.rule
        );
    }
    let per_mille = |count: usize| count * 1000 / lines.len().max(1);
    println!(
        "{files} scripts, {} different lines: {denied} denied ({} ‰), {asked} asked about ({} ‰)",
        lines.len(),
        per_mille(denied),
        per_mille(asked),
    );
}

/// Shell scripts below a folder, by their first line or their place.
fn scripts_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if metadata.is_dir() {
                waiting.push(path);
            } else if metadata.is_file() && metadata.len() <= MAX_FILE_BYTES && is_script(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_script(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    let first = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    first.starts_with("#!")
        && [
            "/sh", "/bash", "/dash", "/ksh", "/zsh", "env sh", "env bash", "env zsh",
        ]
        .iter()
        .any(|shell| first.contains(shell))
}

/// Lines that are commands, with those that they continue on.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut command = String::new();
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(start) => {
                command.push_str(start);
                continue;
            }
            None => command.push_str(line),
        }
        let line = std::mem::take(&mut command);
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            found.push(line.to_owned());
        }
    }
    found
}
