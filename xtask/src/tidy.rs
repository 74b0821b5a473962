//! The invariants of ARCHITECTURE.md, as tests.

#![cfg(test)]

mod conformance;
mod layout;

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
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = fs::read_to_string(&path).unwrap_or_default();
                // Everything after the first test module is test code.
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
const FILES_ABOUT_ONE_AGENT: &[(&str, &str)] = &[
    ("anyhook-codex/", "the bridge of that agent's own protocol"),
    ("anyhook/src/commands/codex", "the command of that bridge"),
    (
        "anyhook-daemon/src/wrapped",
        "each wrapped HTTP form belongs to one agent",
    ),
    (
        "openhook/",
        "names of tools in examples, and makers of models",
    ),
    ("anyhook-daemon/src/api", "the cursor of a page of events"),
    ("anyhook-daemon/src/app", "the cursor of a page of events"),
    (
        "anyhook-guard/src/judges/",
        "editors and cloud tools of the same name, as commands",
    ),
    (
        "anyhook-guard/src/shell/wrappers/unknown_launchers",
        "programs of agents, whose arguments are prompts and no commands",
    ),
];

/// Variables that several agents set, each with its own name as the value.
const SHARED_VARIABLES: [&str; 1] = ["AI_AGENT"];

/// Strings that only an agent's folder may know: its names, its variables and its
/// files.
fn own_words(spec: &anyhook_agents::spec::AgentSpec) -> impl Iterator<Item = &str> {
    let variables = spec.env.keys().chain(&spec.detect.env);
    let variables = variables
        .map(|mark| mark.split('=').next().unwrap_or(mark))
        .filter(|name| name.chars().all(|letter| !letter.is_lowercase()))
        .filter(|name| !SHARED_VARIABLES.contains(name));
    std::iter::once(spec.id.as_ref())
        .chain(spec.aliases.iter().map(AsRef::as_ref))
        .chain(variables)
        .chain(spec.files.iter().map(|file| file.path.as_ref()))
}

#[test]
fn no_agent_is_named_outside_its_folder() {
    let words: Vec<String> = anyhook_agents::matrix::clients()
        .flat_map(|adapter| own_words(&adapter.spec))
        .map(|word| format!("\"{word}\""))
        .collect();
    let mut faults = Vec::new();
    for entry in fs::read_dir(root().join("crates"))
        .into_iter()
        .flatten()
        .flatten()
    {
        for (path, text) in sources(&entry.path().join("src")) {
            let shown = path.display().to_string();
            if FILES_ABOUT_ONE_AGENT
                .iter()
                .any(|(place, _)| shown.contains(place))
            {
                continue;
            }
            for (number, line) in code_lines(&text) {
                if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                    faults.push(format!("{shown}:{}: {word}", number + 1));
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
        "Timestamp::now",
        "uuid_v7",
        "anyhook_util::env",
        "anyhook_util::fs",
        // Would hide the two above.
        "anyhook_util::{",
    ];
    let mut faults = Vec::new();
    for name in [
        "openhook",
        "anyhook-model",
        "anyhook-agents",
        "anyhook-convert",
        "anyhook-guard",
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
fn variables_are_named_in_one_table() {
    let mut faults = Vec::new();
    for entry in fs::read_dir(root().join("crates"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        if name == "anyhook-testkit" {
            continue;
        }
        for (path, text) in sources(&entry.path().join("src")) {
            let is_table = path.ends_with("anyhook-util/src/env.rs");
            let is_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
            if is_root && !text.contains("#![deny(clippy::disallowed_methods)]") {
                faults.push(format!("{} may read the environment", path.display()));
            }
            for (number, line) in code_lines(&text).filter(|_| !is_table) {
                let parts = line.split('"').skip(1).step_by(2);
                let is_name = |part: &str| {
                    part.starts_with("ANYHOOK")
                        && part.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
                };
                // What the build script sets is read by `env!`.
                if !line.contains("env!(") && parts.into_iter().any(is_name) {
                    faults.push(format!("{}:{}: {line}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "use `anyhook_util::env`:\n{}",
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
