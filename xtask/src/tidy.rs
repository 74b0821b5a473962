//! The invariants of ARCHITECTURE.md, as tests.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// Rust sources below a folder, without tests.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                // What stands behind the first test module is test.
                let code = text
                    .split("#[cfg(test)]")
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                found.push((path, code));
            }
        }
    }
    found
}

/// Code lines only: prose may name whom it likes.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Places that speak of one agent by its nature, each with the reason.
const NAMED: &[(&str, &str)] = &[
    ("anyhook-codex/", "the bridge of that agent's own protocol"),
    ("anyhook/src/commands/codex", "the command of that bridge"),
    ("anyhook/src/commands/run.rs", "an example in a help text"),
    (
        "anyhook/src/commands/demo",
        "the demonstration's own hook speaks one agent's language",
    ),
    (
        "anyhook-daemon/src/wrapper",
        "the wrapper forms of two agents that the daemon's contract fixes",
    ),
    (
        "anyhook-store/src/row",
        "event types that the daemon's contract fixes",
    ),
    ("anyhook-testkit/", "reference models of the agents"),
    (
        "openhook/",
        "names of tools in examples, and makers of models",
    ),
    ("anyhook-daemon/src/api", "the cursor of a page of events"),
    ("anyhook-daemon/src/app", "the cursor of a page of events"),
];

#[test]
fn no_agent_is_named_outside_its_folder() {
    let slugs: Vec<String> = anyhook_agents::matrix::clients()
        .map(|adapter| format!("\"{}\"", adapter.spec.id))
        .collect();
    let mut faults = Vec::new();
    for entry in fs::read_dir(root().join("crates"))
        .into_iter()
        .flatten()
        .flatten()
    {
        for (path, text) in sources(&entry.path().join("src")) {
            let shown = path.display().to_string();
            if NAMED.iter().any(|(place, _)| shown.contains(place)) {
                continue;
            }
            for (number, line) in code_lines(&text) {
                if let Some(slug) = slugs.iter().find(|slug| line.contains(slug.as_str())) {
                    faults.push(format!("{shown}:{}: {slug}", number + 1));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "agents are named outside their folders:\n{}",
        faults.join("\n")
    );
}

#[test]
fn core_crates_touch_nothing() {
    let forbidden = [
        "std::fs",
        "std::env",
        "SystemTime",
        "Instant::now",
        "std::process",
        "std::net",
        "File::open",
    ];
    let mut faults = Vec::new();
    for name in [
        "openhook",
        "anyhook-model",
        "anyhook-agents",
        "anyhook-convert",
    ] {
        for (path, text) in sources(&root().join("crates").join(name).join("src")) {
            for (number, line) in code_lines(&text) {
                if let Some(word) = forbidden.iter().find(|word| line.contains(**word)) {
                    faults.push(format!("{}:{}: {word}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "core crates do I/O:\n{}",
        faults.join("\n")
    );
}

#[test]
fn the_run_path_is_light() {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root())
        .args([
            "tree",
            "--offline",
            "--package",
            "anyhook-run",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()
        .expect("cargo tree");
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(
        tree.contains("anyhook-model"),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for heavy in [
        "clap",
        "tokio",
        "regex",
        "rusqlite",
        "postgres",
        "tracing",
        "reqwest",
        "toml",
        "jsonschema",
    ] {
        let found = tree
            .lines()
            .any(|line| line.split_whitespace().next() == Some(heavy));
        assert!(!found, "`anyhook-run` depends on `{heavy}`");
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let output = Command::new("git")
        .current_dir(root())
        .args(["ls-files"])
        .output()
        .expect("git");
    // Written in pieces, so that this file is no finding of its own.
    let words = [
        concat!("/wo", "rk/main"),
        concat!("/wo", "rk/shared"),
        concat!("../sha", "red"),
        concat!("/wo", "rk/.library"),
    ];
    let mut faults = Vec::new();
    for name in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(text) = fs::read_to_string(root().join(name)) else {
            continue;
        };
        for word in words {
            if text.contains(word) {
                faults.push(format!("{name}: {word}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
