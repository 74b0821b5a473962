//! The interchange format's own vectors, and our schema against our checks.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_model::fields::{self, Field, FieldShape};
use anyhook_model::{Format, Vocabulary, parse, schema};
use anyhook_testkit::Golden;
use proptest::prelude::*;
use serde_json::{Value, json};

mod common;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn vectors(folder: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(root().join("conformance/interchange").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
        .into_iter()
        .map(|path| {
            (
                path.file_stem().unwrap().display().to_string(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect()
}

#[test]
fn valid_vectors_pass_and_lose_nothing() {
    for (name, text) in vectors("canonical") {
        let (manifest, findings) = parse::manifest(&text, Format::Json, &Vocabulary::default());
        assert_eq!(findings, [], "{name}");
        let manifest = serde_json::to_value(manifest.unwrap()).unwrap();
        let original: Value = serde_json::from_str(&text.replace("darwin", "osx")).unwrap();
        // `blocking` is always written out.
        let with_blocking = |mut value: Value| {
            for hook in value["hooks"].as_array_mut().unwrap() {
                hook.as_object_mut()
                    .unwrap()
                    .entry("blocking")
                    .or_insert(false.into());
            }
            value
        };
        assert_eq!(with_blocking(manifest), with_blocking(original), "{name}");
    }
}

#[test]
fn invalid_vectors_are_rejected_for_their_reason() {
    for (name, text) in vectors("invalid") {
        let (manifest, findings) = parse::manifest(&text, Format::Json, &Vocabulary::default());
        assert_eq!(manifest, None, "{name}");
        let expected = match name.as_str() {
            "empty-hooks-array" => "`hooks` is empty",
            "invalid-degradation-strategy" => "unknown degradation strategy `ignore`",
            "missing-event" => "is missing the required field `event`",
            "missing-handler" => "is missing the required field `handler`",
            "missing-hooks" => "the required field `hooks` is missing",
            "missing-spec" => "the required field `spec` is missing",
            other => panic!("say what is wrong with {other}"),
        };
        let messages: Vec<_> = findings
            .iter()
            .map(|finding| finding.message.as_str())
            .collect();
        assert_eq!(messages.len(), 1, "{name}: {messages:?}");
        assert!(messages.concat().contains(expected), "{name}: {messages:?}");
    }
}

#[test]
fn schemas_are_fresh() {
    let mut golden = Golden::default();
    for (name, value) in [
        ("manifest", schema::manifest()),
        ("policy", schema::policy()),
    ] {
        let path = root().join(format!("schemas/{name}.schema.json"));
        golden.json(path, &value).unwrap();
    }
    golden.end();
}

/// One change that may or may not make a manifest wrong.
fn damage() -> impl Strategy<Value = (usize, usize, Value)> {
    let value = proptest::sample::select(vec![
        Value::Null,
        Value::from(1),
        Value::from(-1),
        Value::from("text"),
        Value::from(true),
        Value::from(Vec::<Value>::new()),
        serde_json::json!({}),
        serde_json::json!(["a"]),
        serde_json::json!({"a": "b"}),
    ]);
    (any::<usize>(), any::<usize>(), value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever our checks accept, the schema accepts too; and what the schema
    /// refuses, our checks refuse. The checks are stricter (patterns, URLs).
    #[test]
    fn the_schema_is_never_stricter_than_the_checks(
        value in common::manifest(), (place, field, new) in damage()
    ) {
        let mut value = value;
        let tables = [
            anyhook_model::fields::HOOK,
            anyhook_model::fields::HANDLER,
        ];
        let table = tables[place % 2];
        let name = table[field % table.len()].name;
        let hook = &mut value["hooks"][0];
        let object = if place % 2 == 0 { hook } else { &mut hook["handler"] };
        // Null is "absent, aloud" for us and a wrong type for the schema.
        if !new.is_null() {
            object[name] = new;
        }
        let validator = jsonschema::validator_for(&schema::manifest()).unwrap();
        let (manifest, findings) = parse::manifest(&value.to_string(), Format::Json, &Vocabulary::default());
        if manifest.is_some() {
            let data_only_warned = findings.iter().any(|finding| finding.path.contains("provider_data."));
            prop_assert!(validator.is_valid(&value) || data_only_warned, "{value}");
        }
        let strict = ["bad-pattern", "bad-url", "empty", "unknown-dialect", "ambiguous-matcher", "duplicate-key"];
        if manifest.is_none() && findings.iter().all(|it| !it.is_error() || !strict.contains(&it.code)) {
            prop_assert!(!validator.is_valid(&value), "{value}\n{findings:#?}");
        }
    }
}

#[test]
fn the_schema_accepts_the_valid_vectors() {
    let validator = jsonschema::validator_for(&schema::manifest()).unwrap();
    for (name, text) in vectors("canonical") {
        assert!(
            validator.is_valid(&serde_json::from_str(&text).unwrap()),
            "{name}"
        );
    }
    for (name, text) in vectors("invalid") {
        assert!(
            !validator.is_valid(&serde_json::from_str(&text).unwrap()),
            "{name}"
        );
    }
}

/// A valid value for a field, made from its row.
fn sample(field: &Field) -> Value {
    match (field.name, field.shape) {
        ("spec", _) => "hooks/1.0".into(),
        ("dialect", _) => "canonical".into(),
        (_, FieldShape::Text) => "https://example.com".into(),
        (_, FieldShape::Flag) => true.into(),
        (_, FieldShape::Seconds) => 1.into(),
        (_, FieldShape::OneOf(words)) => words[0].into(),
        (_, FieldShape::Texts) => json!(["input_rewrite"]),
        (_, FieldShape::TextMap) => json!({"A": "b"}),
        (_, FieldShape::WordMap(words)) => json!({"input_rewrite": words[0]}),
        (_, FieldShape::ObjectMap) => json!({"a": {}}),
        (_, FieldShape::Object) => json!({"key": "value"}),
        (_, FieldShape::Condition) => json!({"tool": "shell"}),
        (_, FieldShape::Hooks) => json!([samples(fields::HOOK)]),
        (_, FieldShape::Matcher) => json!([{"pattern": "x"}, {"mcp": samples(fields::MCP)}]),
        (_, FieldShape::Handler) => samples(fields::HANDLER),
        (_, FieldShape::Platform) => samples(fields::PLATFORM),
        (_, FieldShape::Mcp) => samples(fields::MCP),
    }
}

fn samples(table: &[Field]) -> Value {
    table
        .iter()
        .map(|field| (field.name.to_owned(), sample(field)))
        .collect()
}

#[test]
fn every_field_of_the_tables_is_read_and_every_field_read_is_in_the_tables() {
    let text = &samples(fields::MANIFEST).to_string();
    let (manifest, findings) = parse::manifest(text, Format::Json, &Vocabulary::default());
    assert!(
        findings
            .iter()
            .all(|finding| finding.code != "unknown-field"),
        "{findings:?}"
    );
    let manifest = manifest.unwrap();
    let hook = &manifest.hooks[0];
    let unread = [&manifest.extra, &hook.extra, &hook.handler.extra];
    assert!(unread.iter().all(|extra| extra.is_empty()), "{unread:?}");
    let value = serde_json::to_value(&manifest).unwrap();
    let hook = &value["hooks"][0];
    for (table, object) in [
        (fields::MANIFEST, &value),
        (fields::HOOK, hook),
        (fields::HANDLER, &hook["handler"]),
        (fields::PLATFORM, &hook["handler"]["platform"]),
        (fields::MCP, &hook["matcher"][1]["mcp"]),
    ] {
        let mut expected: Vec<_> = fields::names(table).collect();
        let mut found: Vec<_> = object
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn registries_are_consistent() {
    use anyhook_model::registry::{CAPABILITIES, EVENTS, LEVELS, TOOLS, Tier};

    fn unique<'a>(names: impl Iterator<Item = &'a str>) {
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
    unique(EVENTS.iter().map(|event| event.name));
    unique(
        EVENTS
            .iter()
            .flat_map(|event| event.unified.iter().chain(event.also).copied()),
    );
    unique(TOOLS.iter().map(|tool| tool.name));
    unique(CAPABILITIES.iter().map(|capability| capability.name));
    let core = EVENTS
        .iter()
        .filter(|event| event.tier == Tier::Core)
        .count();
    assert_eq!(
        (core, TOOLS.len(), CAPABILITIES.len(), LEVELS.len()),
        (6, 9, 8, 3)
    );
}
