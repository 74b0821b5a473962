//! Every command with `--json`: one document, with the same names for the same things,
//! as docs/configuration.md describes.
#![cfg(unix)] // the hook is a line for a POSIX shell
#![cfg(test)]

use std::collections::BTreeSet;

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::Value;

const MANIFEST: &str = "spec: hooks/1.0\nhooks:\n  - name: guard\n    event: before_tool_execute\n    matcher: shell\n    blocking: true\n    handler: {type: command, command: ./guard.sh, timeuot: 3}\n";
const PAYLOAD: &str = r#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"PROJECT","tool_name":"Bash","tool_input":{"command":"rm -rf /"},"tool_use_id":"toolu_1"}"#;
const ENVELOPE: &str = r#"{"specversion":"1.0","type":"no such type"}"#;
const TABLE: &str = "id = 1\n";

/// Where a command's input comes from.
#[derive(Clone, Copy)]
enum Input {
    Nothing,
    Payload,
    Envelope,
}

/// Commands whose output is not an answer to a question, and is looked at elsewhere.
const NOT_HERE: [(&str, &str); 6] = [
    ("serve", "runs until it is stopped; tests/serve.rs"),
    ("ship", "needs a server; tests/serve.rs"),
    ("tail", "one line as of `log` per event; tests/log.rs"),
    ("allow-once", "wants a terminal; tests/guards"),
    (
        "emit",
        "OpenHook envelopes, which have their own names; tests/openhook",
    ),
    (
        "openhook check",
        "a report of that protocol; tests/openhook",
    ),
];

/// What is run, in this order; the first word, or two, name the command.
const COMMANDS: &[(&[&str], Input)] = &[
    (&["init", "--import"], Input::Nothing),
    (&["new", "hook", "another"], Input::Nothing),
    (&["trust", "--yes"], Input::Nothing),
    (&["trust", "--list"], Input::Nothing),
    (
        &[
            "install",
            "--yes",
            "--agent",
            "claude-code",
            "--agent",
            "cursor",
        ],
        Input::Nothing,
    ),
    (&["doctor"], Input::Nothing),
    (&["status", "--no-versions"], Input::Nothing),
    (&["list"], Input::Nothing),
    (&["validate"], Input::Nothing),
    (&["test", "--agent", "codex"], Input::Nothing),
    (&["explain", "--agent", "claude-code"], Input::Payload),
    (&["check", "--", "git push --force"], Input::Nothing),
    (
        &["convert", ".anyhook/hooks.yaml", "--to", "cursor"],
        Input::Nothing,
    ),
    (
        &["convert", ".anyhook/hooks.yaml", "--to", "all"],
        Input::Nothing,
    ),
    (&["log"], Input::Nothing),
    (&["stats"], Input::Nothing),
    (&["replay"], Input::Nothing),
    (&["approve"], Input::Nothing),
    (&["agents"], Input::Nothing),
    (&["agents", "codex"], Input::Nothing),
    (&["agents", "check", "table.toml"], Input::Nothing),
    (&["events"], Input::Nothing),
    (&["tools"], Input::Nothing),
    (&["capabilities"], Input::Nothing),
    (&["guard"], Input::Nothing),
    (&["demo"], Input::Nothing),
    (&["openhook", "validate"], Input::Envelope),
    (
        &["export", "otlp", "--endpoint", "http://127.0.0.1:9"],
        Input::Nothing,
    ),
    (&["uninstall", "--yes"], Input::Nothing),
    (&["untrust"], Input::Nothing),
    // A manifest that cannot be read.
    (&["list"], Input::Nothing),
    (&["explain", "--agent", "claude-code"], Input::Payload),
    (&["check", "--", "ls"], Input::Nothing),
    (&["replay"], Input::Nothing),
    (&["test", "--agent", "codex"], Input::Nothing),
    (&["validate"], Input::Nothing),
];

/// Other words for things that have a name of their own.
const FORMER_NAMES: [&str; 8] = [
    "findings",
    "troubles",
    "problems",
    "remedy",
    "what",
    "about",
    "approvals",
    "slug",
];

fn anyhook(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    let binary = scratch.command(env!("CARGO_BIN_EXE_anyhook"));
    binary.run(arguments, stdin).unwrap()
}

struct Checker {
    agents: BTreeSet<String>,
    events: BTreeSet<String>,
}

impl Checker {
    fn check(&self, command: &str, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.check(command, item)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.check_member(command, name, member);
                }
            }
            _ => {}
        }
    }

    fn check_member(&self, command: &str, name: &str, member: &Value) {
        assert!(
            !FORMER_NAMES.contains(&name),
            "{command}: `{name}`: {member}"
        );
        match name {
            // What agents, hooks and consumers wrote is theirs.
            "payload" | "record" | "response" | "output" | "recorded" => return,
            // By the names of tools and events.
            "tools" | "events" if member.is_object() => return,
            "agent" => {
                let slug = member.as_str().map(ToOwned::to_owned);
                let is_known = slug.is_some_and(|slug| self.agents.contains(&slug));
                assert!(is_known || member.is_null(), "{command}: agent {member}");
            }
            "agents" => {
                let entries = member.as_array().unwrap().iter();
                for entry in entries {
                    let slug = entry.as_str().or(entry["agent"].as_str());
                    assert!(
                        slug.is_some_and(|slug| self.agents.contains(slug)),
                        "{command}: agents {entry}"
                    );
                }
            }
            "hook" => {
                let is_number_in_file =
                    command.starts_with("convert") && (member.is_u64() || member.is_null());
                assert!(
                    member.is_string() || is_number_in_file,
                    "{command}: hook {member}"
                );
            }
            "event" if member.is_string() => {
                let is_known = self.events.contains(member.as_str().unwrap());
                assert!(
                    is_known || command.starts_with("status"),
                    "{command}: event {member}"
                );
            }
            "diagnostics" => {
                for one in member.as_array().unwrap() {
                    for (name, words) in [
                        ("code", &[][..]),
                        ("message", &[]),
                        ("severity", &["error", "warning", "info"]),
                    ] {
                        let text = one[name].as_str().unwrap_or_default();
                        let is_right =
                            !text.is_empty() && (words.is_empty() || words.contains(&text));
                        assert!(is_right, "{command}: {name} of {one}");
                    }
                }
            }
            "warnings" if command.starts_with("convert") => {
                for one in member.as_array().unwrap() {
                    for name in ["severity", "message", "field"] {
                        assert!(one[name].is_string(), "{command}: {name} of {one}");
                    }
                }
            }
            "error" => assert!(
                member.is_null() || member.is_string(),
                "{command}: {member}"
            ),
            _ => {}
        }
        self.check(command, member);
    }
}

/// Every command that `--help` shows with an option `--json`.
fn commands_with_json(scratch: &Scratch, prefix: &[&str]) -> Vec<String> {
    let mut arguments = prefix.to_vec();
    arguments.push("--help");
    let help = anyhook(scratch, &arguments, "").stdout;
    let mut found = Vec::new();
    if help
        .lines()
        .any(|line| line.trim_start().starts_with("--json"))
    {
        found.push(prefix.join(" "));
    }
    let section = help
        .split_once("\nCommands:\n")
        .map_or("", |(_, rest)| rest);
    for line in section.lines().take_while(|line| !line.is_empty()) {
        let Some(name) = line
            .split_whitespace()
            .next()
            .filter(|_| line.starts_with("  ") && !line.starts_with("   "))
        else {
            continue;
        };
        if name != "help" {
            let mut inner = prefix.to_vec();
            inner.push(name);
            found.extend(commands_with_json(scratch, &inner));
        }
    }
    found
}

fn project() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".anyhook/hooks.yaml", MANIFEST).unwrap();
    scratch
        .exec(".anyhook/guard.sh", "#!/bin/sh\necho no >&2\nexit 2\n")
        .unwrap();
    let settings = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    scratch.file(".claude/settings.json", settings).unwrap();
    let cursor = r#"{"version": 1, "hooks": {"stop": [{"command": "true"}]}}"#;
    scratch.file(".cursor/hooks.json", cursor).unwrap();
    scratch.file("table.toml", TABLE).unwrap();
    scratch
}

#[test]
fn every_command_speaks_the_same_json() {
    let scratch = project();
    let payload = PAYLOAD.replace("PROJECT", scratch.project().to_str().unwrap());
    let names = |arguments: &[&str], member: &str| -> BTreeSet<String> {
        let listed = anyhook(&scratch, arguments, "").json().unwrap();
        let items = listed.as_array().unwrap().iter();
        items
            .map(|item| item[member].as_str().unwrap().to_owned())
            .collect()
    };
    let mut checker = Checker {
        agents: names(&["agents", "--json"], "agent"),
        events: names(&["events", "--json"], "name"),
    };
    // Formats that are no clients.
    checker.agents.extend(["contract", "-"].map(str::to_owned));
    let mut not_run: BTreeSet<String> = commands_with_json(&scratch, &[]).into_iter().collect();
    assert!(not_run.len() > 25, "{not_run:?}");
    for (name, why) in NOT_HERE {
        assert!(not_run.remove(name), "{name}, which {why}, has no --json");
    }
    let run = anyhook(&scratch, &["run", "--agent", "claude-code"], &payload);
    assert_eq!(run.exit, Some(0), "{}", run.stderr);
    for (arguments, input) in COMMANDS {
        let command = arguments.join(" ");
        if *arguments == ["untrust"] {
            scratch
                .file(".anyhook/hooks.yaml", "spec: hooks/1.0\nhooks: [\n")
                .unwrap();
        }
        let stdin = match input {
            Input::Nothing => "",
            Input::Payload => payload.as_str(),
            Input::Envelope => ENVELOPE,
        };
        let mut all = vec![];
        all.extend(arguments.iter().take_while(|word| **word != "--"));
        all.push("--json");
        all.extend(arguments.iter().skip_while(|word| **word != "--"));
        let output = anyhook(&scratch, &all, stdin);
        let lines: Vec<Value> = match output.json() {
            Ok(document) => vec![document],
            Err(_) => output
                .stdout
                .lines()
                .map(|line| {
                    serde_json::from_str(line)
                        .unwrap_or_else(|error| panic!("{command}: {error}: {line}"))
                })
                .collect(),
        };
        assert!(!lines.is_empty(), "{command}: {}", output.stderr);
        for line in &lines {
            checker.check(&command, line);
        }
        let words: Vec<&str> = arguments.iter().take(2).copied().collect();
        not_run.remove(words[0]);
        not_run.remove(&words.join(" "));
    }
    assert_eq!(
        not_run,
        BTreeSet::new(),
        "commands with --json that no row runs"
    );
}
