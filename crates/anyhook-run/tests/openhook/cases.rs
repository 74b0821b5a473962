//! Events in, envelopes out: each file under `cases/` is a little story.
//!
//! `steps` change the machine (`write`, `remove`, `now`) or bring an `event`;
//! `expect` is what each event gives. Ids are shown as `#1`, `#2`, … in the
//! order of their first appearance, so that the same id is seen to be the same.
//! `UPDATE=1` rewrites `expect`.

#![cfg(test)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhook_model::HookEvent;
use anyhook_run::openhook::{EnvelopeOptions, envelopes_with};
use serde_json::{Map, Value, json};

use crate::fake_machine::FakeMachine;

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openhook/cases");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 10, "cases are missing");
    let mut wrong = Vec::new();
    for path in paths {
        let mut case: Map<String, Value> =
            serde_json::from_str(&fs::read_to_string(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let got = Value::Array(play(&case));
        if std::env::var_os("UPDATE").is_some() {
            case.insert("expect".into(), got);
            let text = serde_json::to_string_pretty(&case).unwrap();
            fs::write(&path, text + "\n").unwrap();
        } else if case.get("expect") != Some(&got) {
            let got = serde_json::to_string_pretty(&got).unwrap();
            wrong.push(format!("{}:\n{got}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn play(case: &Map<String, Value>) -> Vec<Value> {
    let machine = FakeMachine::starting_at(1_771_841_730_000);
    let flag = |key: &str| case.get(key) == Some(&Value::Bool(true));
    let options = EnvelopeOptions {
        synthesize_start: flag("synthesize_start"),
        synthesize_end: flag("synthesize_end"),
        ..EnvelopeOptions::default()
    };
    let common = case["common"].as_object().unwrap();
    let mut names = HashMap::new();
    let mut sent = Vec::new();
    for step in case["steps"].as_array().unwrap() {
        for (what, value) in step.as_object().unwrap() {
            match what.as_str() {
                "write" => {
                    for (path, content) in value.as_object().unwrap() {
                        machine.write(path, content.as_str().unwrap());
                    }
                }
                "remove" => machine.remove(value.as_str().unwrap()),
                "now" => machine.set_now(value.as_i64().unwrap()),
                "event" => {
                    let mut event = common.clone();
                    event.extend(value.as_object().unwrap().clone());
                    let event: HookEvent = serde_json::from_value(Value::Object(event)).unwrap();
                    sent.push(shown(&event, &machine, options, &mut names));
                }
                other => panic!("unknown step `{other}`"),
            }
        }
    }
    sent
}

fn shown(
    event: &HookEvent,
    machine: &FakeMachine,
    options: EnvelopeOptions,
    names: &mut HashMap<String, String>,
) -> Value {
    let list = envelopes_with(event, machine, options)
        .into_iter()
        .map(|envelope| {
            assert_eq!(envelope.findings(), [], "{envelope:?}");
            let mut value = envelope.to_value();
            let map = value.as_object_mut().unwrap();
            map.shift_remove("openhook");
            map.shift_remove("context");
            let mut rename = |id: &mut Value| {
                let text = id.as_str().unwrap();
                // Ids of agents stay as they are.
                if text.len() == 36 {
                    let next = format!("#{}", names.len() + 1);
                    *id = json!(names.entry(text.to_owned()).or_insert(next));
                }
            };
            rename(&mut map["id"]);
            if let Some(made) = map["session_id"].as_str().unwrap().strip_prefix("unknown-") {
                let mut id = json!(made);
                rename(&mut id);
                map["session_id"] = json!(format!("unknown-{}", id.as_str().unwrap()));
            }
            if let Some(id) = map
                .get_mut("data")
                .and_then(|data| data.get_mut("tool_call_id"))
            {
                rename(id);
            }
            value
        })
        .collect();
    Value::Array(list)
}
