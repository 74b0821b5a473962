//! Our validator against our JSON Schemas, and both against the project's own.

#![cfg(test)]

mod common;

use common::{files, json, name};
use openhook::{Discovery, Finding, validate};
use serde_json::Value;

fn compiled(schema: &Value) -> jsonschema::Validator {
    jsonschema::validator_for(schema).unwrap()
}

#[test]
fn the_schema_agrees_with_the_validator() {
    let schema = compiled(&openhook::bundle());
    for path in files("fixtures/examples", ".json") {
        assert!(schema.is_valid(&json(&path)), "{}", name(&path));
    }
    for path in files("envelopes", ".json") {
        let case = json(&path);
        let envelope = &case["envelope"];
        let by_validator = !validate(envelope).iter().any(Finding::is_error);
        let by_schema = schema.is_valid(envelope);
        if case["schema"] == "cannot-say" {
            assert!(by_schema && !by_validator, "{}", name(&path));
        } else {
            assert_eq!(by_schema, by_validator, "{}", name(&path));
        }
    }
}

#[test]
fn the_discovery_schema_agrees_with_the_reader() {
    let text = openhook::schema("discovery").unwrap();
    let schema = compiled(&serde_json::from_str(text).unwrap());
    for path in files("discovery", ".json") {
        let case = json(&path);
        let Some(file) = case.get("file") else {
            continue;
        };
        let read = Discovery::from_value(file);
        assert_eq!(
            schema.is_valid(file),
            !read.findings.iter().any(Finding::is_error),
            "{}",
            name(&path)
        );
    }
}

/// A data schema of ours and the project's: the same fields, the same answers.
#[test]
fn data_schemas_agree_with_the_project() {
    for path in files("fixtures/upstream-schemas", ".schema.json") {
        let file = name(&path);
        let short = file.trim_end_matches(".schema.json");
        if short == "envelope" {
            continue;
        }
        let theirs = json(&path);
        let ours: Value = serde_json::from_str(openhook::schema(short).unwrap()).unwrap();
        let fields = |schema: &Value| {
            let mut names: Vec<String> = schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            names.sort();
            names
        };
        assert_eq!(fields(&ours), fields(&theirs), "{short}");
        for (field, rule) in theirs["properties"].as_object().unwrap() {
            for key in ["type", "enum", "minimum"] {
                assert_eq!(
                    ours["properties"][field][key], rule[key],
                    "{short}.{field}.{key}"
                );
            }
        }
        assert_eq!(ours["required"], theirs["required"], "{short}");
    }
}

/// Whatever we accept as an envelope of 0.1 without `cwd`, later fields and
/// later types, the project's own schema accepts. Of ISO 8601 it has one form.
#[test]
fn what_is_sound_here_is_sound_there() {
    let theirs = compiled(&json(
        &files("fixtures/upstream-schemas", "envelope.schema.json")[0],
    ));
    let mut compared = 0;
    for path in files("envelopes", ".json") {
        let case = json(&path);
        let envelope = &case["envelope"];
        let sound = !validate(envelope).iter().any(Finding::is_error);
        let known = envelope.as_object().is_some_and(|map| {
            map.keys().all(|key| {
                [
                    "openhook",
                    "id",
                    "source",
                    "type",
                    "time",
                    "session_id",
                    "data",
                    "context",
                    "extensions",
                ]
                .contains(&key.as_str())
            }) && map
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(openhook::event_type::is_known)
        });
        let has_other_time = name(&path).starts_with("sound-time-");
        if sound && known && !has_other_time {
            compared += 1;
            assert!(theirs.is_valid(envelope), "{}", name(&path));
        }
    }
    assert!(compared > 5);
}

#[test]
fn every_schema_has_its_urn_and_is_sound() {
    for short in openhook::schema_names() {
        let schema: Value = serde_json::from_str(openhook::schema(short).unwrap()).unwrap();
        assert_eq!(schema["$id"], format!("urn:openhook:0.1:{short}"));
        assert!(jsonschema::meta::is_valid(&schema), "{short}");
    }
    for event in openhook::event_type::ALL {
        assert!(openhook::schema(event).is_some(), "{event}");
    }
}
