//! The SDKs read the canonical event of every capture, reject what is not one, and
//! type-check strictly. What a machine lacks (Python, Node.js, mypy, tsc) is skipped by
//! name.
#![cfg(unix)] // programs are found by name on PATH
#![cfg(test)]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::captures;

fn sdk(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../sdk")
        .join(path)
}

/// Whether a program starts; says so if it does not.
fn is_installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success());
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// One line per event: the event, and whether it must be accepted.
fn events() -> String {
    let mut lines = String::new();
    let mut add = |event: &Value, accepted: bool| {
        let _ = writeln!(lines, "{}", json!({"event": event, "accepted": accepted}));
    };
    for capture in captures() {
        let payload = capture.payload.to_string();
        let (agent, _) = anyhook_run::agent::resolve(Some(&capture.adapter.spec.id), b"").unwrap();
        let decoded = agent
            .decode(payload.as_bytes(), Some(&capture.event))
            .unwrap();
        add(&serde_json::to_value(decoded.event).unwrap(), true);
    }
    for wrong in [
        json!({}),
        json!([]),
        json!({"event": "x"}),
        json!({"event": 1, "source": "x"}),
        json!({"event": "x", "source": "x", "data": []}),
        json!({"event": "x", "source": "x", "data": {"tool_name": true}}),
        json!({"event": "x", "source": "x", "data": {"tool_input": "ls"}}),
        json!({"event": "x", "source": "x", "data": {"tool_kinds": ["shell", 1]}}),
        json!({"event": "x", "source": "x", "data": {"mcp": {"server": "s"}}}),
    ] {
        add(&wrong, false);
    }
    lines
}

#[test]
fn python_reads_every_capture() {
    if !is_installed("python3") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let lines = scratch.path().join("events.jsonl");
    fs::write(&lines, events()).unwrap();
    let script = "
import json, sys
from anyhook_sdk import parse_event, parse_response
count = 0
for line in open(sys.argv[1], encoding='utf-8'):
    row = json.loads(line)
    try:
        assert parse_event(json.dumps(row['event'])) == row['event']
        accepted = True
    except ValueError as error:
        accepted, why = False, error
    assert accepted == row['accepted'], (row, accepted or why)
    count += 1
assert parse_response('{\"decision\": \"deny\"}') == {'decision': 'deny'}
try:
    parse_response('{\"decision\": \"block\"}')
    raise SystemExit('accepted')
except ValueError:
    pass
print(count)
";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(&lines)
        .env("PYTHONPATH", sdk("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let count: usize = succeeded(&output).trim().parse().unwrap();
    assert!(count > 300, "{count}");
}

#[test]
fn python_answers() {
    if !is_installed("python3") {
        return;
    }
    let script =
        "from anyhook_sdk import deny, read_event\nevent = read_event()\ndeny(event['event'])\n";
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "echo '{\"event\": \"x\", \"source\": \"y\"}' | python3 -c \"$SCRIPT\"",
        ])
        .env("SCRIPT", script)
        .env("PYTHONPATH", sdk("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let answer: Value = serde_json::from_str(&succeeded(&output)).unwrap();
    assert_eq!(answer, json!({"decision": "deny", "reason": "x"}));
}

#[test]
fn python_type_checks() {
    if !is_installed("mypy") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("mypy")
        .args(["--strict", "--no-error-summary", "--cache-dir"])
        .arg(scratch.path())
        .arg(sdk("python/anyhook_sdk"))
        .output()
        .unwrap();
    succeeded(&output);
}

#[test]
fn typescript_type_checks_and_reads_every_capture() {
    if !is_installed("tsc") || !is_installed("node") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("tsc")
        .arg("--project")
        .arg(sdk("typescript"))
        .arg("--outDir")
        .arg(scratch.path())
        .output()
        .unwrap();
    succeeded(&output);
    let module = scratch.path().join("index.mjs");
    fs::rename(scratch.path().join("index.js"), &module).unwrap();
    let lines = scratch.path().join("events.jsonl");
    fs::write(&lines, events()).unwrap();
    let script = "
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseEvent, parseResponse } from './index.mjs';
let count = 0;
for (const line of readFileSync('events.jsonl', 'utf8').trimEnd().split('\\n')) {
  const row = JSON.parse(line);
  let accepted = true;
  let why = '';
  try { assert.deepEqual(parseEvent(JSON.stringify(row.event)), row.event); }
  catch (error) { accepted = false; why = error; }
  assert.equal(accepted, row.accepted, line + why);
  count += 1;
}
parseResponse('{\"decision\": \"deny\"}');
assert.throws(() => parseResponse('{\"decision\": \"block\"}'));
console.log(count);
";
    fs::write(scratch.path().join("check.mjs"), script).unwrap();
    let output = Command::new("node")
        .arg("check.mjs")
        .current_dir(&scratch)
        .output()
        .unwrap();
    let count: usize = succeeded(&output).trim().parse().unwrap();
    assert!(count > 300, "{count}");
}

#[test]
fn the_sdks_stay_small() {
    for path in ["python/anyhook_sdk/__init__.py", "typescript/src/index.ts"] {
        let text = fs::read_to_string(sdk(path)).unwrap();
        assert!(
            text.lines().count() <= 300,
            "{path}: {}",
            text.lines().count()
        );
    }
}
