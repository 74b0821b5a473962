//! An agent of the user's own: one file, no build. Installed, called, denied,
//! converted and removed through the real binary.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

use std::fs;

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

const TABLE: &str = r#"id = "invented"
extends = "claude-code"
name = "Invented Agent"
homepage = "https://example.com"
summary = "An agent that only this test has."
aliases = ["inv"]
verified = { version = "0.1", date = "2026-11-18", how = "docs" }

[inherit]
events = ["Before", "Stop"]
tools = ["run", "Read", "Write", "Edit", "Grep", "Glob", "WebSearch", "WebFetch", "Agent"]
without = ["/config/handler/type_events", "/config/handler/fail_closed", "/hazard"]

[detect]
folders = [".invented"]

[[file]]
scope = "project"
path = ".invented/hooks.json"
format = "jsonc"
write = true

[config.handler]
types = { command = "command" }

[[event]]
native = "Before"
is = "before_tool_execute"
blocking = "prevent"
matcher = "tool"
answer = "deny_only"
rows = [
  { to = "tool_name", at = "/tool" },
  { to = "tool_input", at = "/arguments" },
]

[[tool]]
is = "shell"
native = "run"
keys = { command = "line" }

[answer.deny_only]
deny = [{ stdout = { verdict = "no", because = "{reason}" } }]
"#;

const MANIFEST: &str = r"
spec: hooks/1.0
hooks:
  - name: guard
    event: before_tool_execute
    matcher: shell
    blocking: true
    handler: {type: command, command: ./guard.sh}
";

const GUARD: &str = r#"#!/bin/sh
grep -q '"command":"rm' || exit 0
echo "not this one" >&2
exit 2
"#;

fn scratch(table: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/hooks.yaml", MANIFEST).unwrap();
    scratch.exec(".anyhook/guard.sh", GUARD).unwrap();
    let folder = scratch.config().join("agents/invented");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent.toml"), table).unwrap();
    scratch
}

fn anyhook(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    binary.run(arguments, stdin).unwrap()
}

fn succeed(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    let ran = anyhook(scratch, arguments, "");
    assert_eq!(ran.exit, Some(0), "{arguments:?}: {ran:?}");
    ran
}

fn call(scratch: &Scratch, agent: &str, line: &str) -> ProcessOutput {
    let payload = json!({"hook_event_name": "Before", "session_id": "s", "cwd": scratch.project(),
        "tool": "run", "arguments": {"line": line}});
    anyhook(scratch, &["run", "--agent", agent], &payload.to_string())
}

#[test]
fn an_agent_of_ones_own_is_installed_called_denied_and_removed() {
    let scratch = scratch(TABLE);
    let own = "// mine\n{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"./mine.sh\"}]}]}}\n";
    let file = scratch.file(".invented/hooks.json", own).unwrap();
    succeed(&scratch, &["trust", "--yes"]);

    succeed(&scratch, &["install", "--agent", "invented"]);
    let installed = fs::read_to_string(&file).unwrap();
    assert!(installed.contains("run --agent invented"), "{installed}");
    assert!(
        installed.contains("// mine") && installed.contains("./mine.sh"),
        "{installed}"
    );
    let status = succeed(&scratch, &["status"]);
    assert!(status.stdout.contains("invented"), "{}", status.stdout);

    for name in ["invented", "inv"] {
        let denied = call(&scratch, name, "rm -rf /");
        let answer: Value = serde_json::from_str(&denied.stdout).unwrap();
        assert_eq!(answer, json!({"verdict": "no", "because": "not this one"}));
        let allowed = call(&scratch, name, "ls");
        assert_eq!((allowed.exit, allowed.stdout.as_str()), (Some(0), ""));
    }
    let test = anyhook(&scratch, &["test", "--agent", "invented"], "");
    assert!(test.stdout.contains("invented"), "{test:?}");

    succeed(&scratch, &["uninstall", "--agent", "invented"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
}

#[test]
fn a_config_is_converted_to_an_agent_of_ones_own_and_back() {
    let scratch = scratch(TABLE);
    let there = anyhook(
        &scratch,
        &[
            "convert",
            ".anyhook/hooks.yaml",
            "--to",
            "invented",
            "--allow-loss",
        ],
        "",
    );
    let document: Value = serde_json::from_str(&there.stdout).unwrap();
    assert_eq!(
        document["hooks"]["Before"][0]["matcher"], "run",
        "{there:?}"
    );
    let back = anyhook(
        &scratch,
        &[
            "convert",
            "-",
            "--from",
            "invented",
            "--to",
            "canonical",
            "--allow-loss",
        ],
        &there.stdout,
    );
    assert!(back.stdout.contains("before_tool_execute"), "{back:?}");
}

#[test]
fn a_mistake_in_a_table_is_told_where_it_is() {
    let broken = TABLE.replace("blocking = \"prevent\"", "blocking = \"prevents\"");
    let scratch = scratch(&broken);
    let file = scratch.config().join("agents/invented/agent.toml");
    let line = 1 + broken
        .lines()
        .position(|line| line.contains("prevents"))
        .unwrap();
    let place = format!("{}:{line}: ", file.display());

    let check = anyhook(&scratch, &["agents", "check", file.to_str().unwrap()], "");
    assert_eq!(check.exit, Some(1));
    assert!(check.stderr.contains(&place), "{}", check.stderr);
    assert!(check.stderr.contains("`prevents`"), "{}", check.stderr);
    assert!(
        check.stderr.contains("agents/claude-code/agent.toml"),
        "{}",
        check.stderr
    );

    // A call for it gets the same message, and other commands go on.
    let ran = call(&scratch, "invented", "ls");
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stderr.contains(&place), "{}", ran.stderr);
    let events = anyhook(&scratch, &["events"], "");
    assert_eq!(events.exit, Some(0));
    assert!(events.stderr.contains(&place), "{}", events.stderr);
}

#[test]
fn a_table_is_checked_as_those_of_the_build_are() {
    let scratch = scratch(TABLE);
    let file = scratch.config().join("agents/invented/agent.toml");
    let file = file.to_str().unwrap();
    let right = succeed(&scratch, &["agents", "check", file]);
    assert!(
        right
            .stdout
            .contains("2 events, 9 tools, extends `claude-code`"),
        "{}",
        right.stdout
    );
    for (from, to, told) in [
        (
            "id = \"invented\"",
            "id = \"other\"",
            "its folder is `invented`",
        ),
        (
            "aliases = [\"inv\"]",
            "aliases = [\"codex\"]",
            "`codex` is an agent that anyhook has already",
        ),
        (
            "write = true",
            "write = false",
            "`install` has nowhere to write",
        ),
        (
            "\"Agent\"]",
            "]",
            "tool `agent` is neither mapped nor in [absent.tools]",
        ),
        ("answer = \"deny_only\"\n", "", "its answer cannot deny"),
        (
            "extends = \"claude-code\"",
            "extends = \"claude-cod\"",
            "did you mean `claude-code`",
        ),
    ] {
        fs::write(file, TABLE.replacen(from, to, 1)).unwrap();
        let check = anyhook(&scratch, &["agents", "check", file], "");
        assert_eq!(check.exit, Some(1), "{to}: {check:?}");
        assert!(check.stderr.contains(told), "{to}: {}", check.stderr);
    }
}

/// The administrator's table of a name counts, not the user's.
#[test]
fn the_managed_table_of_a_name_wins() {
    let scratch = scratch(&TABLE.replace("verdict", "users"));
    let folder = scratch.managed().join("agents/invented");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("agent.toml"),
        TABLE.replace("verdict", "managed"),
    )
    .unwrap();
    succeed(&scratch, &["trust", "--yes"]);
    let denied = call(&scratch, "invented", "rm x");
    assert!(denied.stdout.contains("managed"), "{denied:?}");
}
