//! What holds for every command: help with an example, JSON, exit codes.

#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn anyhook(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anyhook"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = anyhook(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let help = stdout(&["--help"]);
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let names: Vec<String> = rest
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 5, "{names:?}");
    names
}

#[test]
fn every_help_has_an_example() {
    for command in commands() {
        let help = stdout(&[&command, "--help"]);
        let (_, example) = help
            .split_once("Example")
            .unwrap_or_else(|| panic!("{help}"));
        assert!(example.contains(&format!("anyhook {command}")), "{help}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    for command in commands() {
        let name = format!("anyhook-{command}").replace('-', "\\-");
        assert!(stdout(&["man", &command]).contains(&name), "{command}");
    }
    let man = stdout(&["man"]);
    assert!(man.contains("anyhook"));
    assert!(man.contains("ENVIRONMENT") && man.contains("ANYHOOK_STATE_DIR"));
    assert_eq!(anyhook(&["man", "nothing"]).status.code(), Some(1));
}

#[test]
fn registries_are_json_and_tables() {
    for (command, first, count) in [
        ("events", "before_tool_execute", 46),
        ("tools", "shell", 9),
        ("capabilities", "structured_output", 8),
    ] {
        let all: Value = serde_json::from_str(&stdout(&[command, "--json"])).unwrap();
        assert_eq!(all[0]["name"], first);
        assert_eq!(all.as_array().unwrap().len(), count);
        let table = stdout(&[command]);
        assert_eq!(table.lines().count(), count + 1);
        assert!(table.lines().nth(1).unwrap().starts_with(first));
        assert!(!table.contains('\u{1b}'), "no colour into a pipe");
    }
}

#[test]
fn schemas_are_those_that_are_checked_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for name in ["manifest", "policy"] {
        let stored = fs::read_to_string(folder.join(format!("{name}.schema.json"))).unwrap();
        assert_eq!(stdout(&["schema", name]), stored);
    }
}

#[test]
fn wrong_usage_is_2_and_version_has_a_number() {
    for arguments in [
        &["nothing"][..],
        &["validate", "--nothing"],
        &["schema", "nothing"],
        &[],
    ] {
        assert_eq!(anyhook(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert!(stdout(&["--version"]).starts_with(concat!("anyhook ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_anyhook"))
        .args(["schema", "manifest"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// An agent must never be stopped by us: the dispatcher takes any argument and
/// any payload, and does not exit with 2, which would mean "block".
#[test]
fn run_leaves_before_the_argument_parser() {
    use std::process::Stdio;
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_anyhook"))
        .args(["run", "--no-such-flag"])
        .current_dir(scratch.path())
        .env("ANYHOOK_CONFIG_DIR", scratch.path())
        .env("ANYHOOK_STATE_DIR", scratch.path())
        .env("ANYHOOK_MANAGED_DIR", scratch.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(2));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Usage: anyhook"));
}
