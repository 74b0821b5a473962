//! Every labelled call of `corpus/` gets the answer that its row expects.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_guard::{Guard, GuardContext, definitions, parse_guard};
use anyhook_model::HookEvent;
use serde_json::{Value, json};

fn context() -> GuardContext {
    let agent_files = anyhook_agents::all()
        .flat_map(|adapter| adapter.spec.files.iter().map(|file| file.path.to_string()))
        .collect();
    GuardContext {
        project: Some(PathBuf::from("/home/dev/project")),
        home: Some(PathBuf::from("/home/dev")),
        agent_files,
        ..GuardContext::default()
    }
}

/// Without the mark that keeps scanners away from made-up keys.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace('·', "")),
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), unmarked(value)))
            .collect(),
        other => other.clone(),
    }
}

fn event(row: &Value) -> HookEvent {
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    let (tool, native, input) = if let Some(tool) = text("tool") {
        (tool, tool, row["input"].clone())
    } else {
        let native = match text("shell") {
            Some("powershell") => "powershell",
            Some("cmd") => "cmd",
            _ => "bash",
        };
        ("shell", native, json!({"command": row["command"]}))
    };
    let cwd = text("cwd").unwrap_or("/home/dev/project");
    serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "cwd": cwd,
        "data": {"tool_name": tool, "native_tool_name": native, "tool_input": input},
    }))
    .expect("an event")
}

fn guard(name: &str, row: &Value) -> Guard {
    let mut words = vec![name.to_owned()];
    let options = row.get("options").and_then(Value::as_array);
    words.extend(
        options
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned),
    );
    parse_guard(&words, &|file| Err(format!("no file `{file}`"))).expect("a guard")
}

#[test]
fn every_row_gets_its_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let context = context();
    let mut wrong = String::new();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut rows = 0;
    // Dangerous calls that a guard is known to miss; it may only get shorter.
    let open =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/open-rows.tsv"))
            .unwrap();
    let mut open: Vec<&str> = open.lines().collect();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    files.sort_by_key(fs::DirEntry::path);
    for file in files {
        if file
            .path()
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let text = fs::read_to_string(file.path()).unwrap();
        for (number, line) in text.lines().enumerate() {
            let row: Value = serde_json::from_str(line).unwrap_or_else(|error| {
                panic!("{}:{}: {error}", file.path().display(), number + 1)
            });
            let row = unmarked(&row);
            let name = row["guard"].as_str().expect("a guard's name");
            let names: Vec<&str> = if name == "*" {
                definitions()
                    .iter()
                    .map(|guard| guard.name)
                    .filter(|name| *name != "rules")
                    .collect()
            } else {
                vec![name]
            };
            let event = event(&row);
            let expected: Vec<&str> = row["expect"]
                .as_str()
                .expect("an answer")
                .split('|')
                .collect();
            for name in names {
                rows += 1;
                let found = guard(name, &row).judge(&event, &context);
                let answer = found
                    .as_ref()
                    .map_or("none", |found| found.decision.as_str());
                let count = counts.entry(format!("{name} {}", row["kind"])).or_default();
                count.1 += 1;
                let key = format!("{name}\t{}", row.get("command").unwrap_or(&row["input"]));
                if expected.contains(&answer) {
                    if let Some(at) = open.iter().position(|row| *row == key) {
                        let _ = writeln!(
                            wrong,
                            "answered rightly now, remove it from open-rows.tsv: {key}"
                        );
                        open.remove(at);
                    }
                } else if let Some(at) = open.iter().position(|row| *row == key) {
                    open.remove(at);
                } else {
                    count.0 += 1;
                    let _ = writeln!(
                        wrong,
                        "{}:{}: {name} answers {answer}, not {}: {}{}",
                        file.file_name().to_string_lossy(),
                        number + 1,
                        row["expect"],
                        row.get("command").unwrap_or(&row["input"]),
                        found.map_or_else(String::new, |found| format!(" -- {}", found.reason)),
                    );
                }
            }
        }
    }
    assert!(
        open.is_empty(),
        "rows of open-rows.tsv that the corpus does not have: {open:#?}"
    );
    assert!(rows > 4000, "only {rows} rows");
    assert!(wrong.is_empty(), "{wrong}\n{counts:#?}");
}
