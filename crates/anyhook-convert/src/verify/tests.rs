//! Every row of the manifest's field tables, set on a hook: its loss is
//! noticed. The rows are the test's data, so a new field needs no new case.

use anyhook_model::fields::{self, Field, FieldShape};
use anyhook_model::hook::SPEC;
use anyhook_model::{Hook, Manifest};
use serde_json::{Value, json};

use super::{compare, verify};
use crate::{ConversionOptions, ConversionSource, ConversionTarget, ConvertError, convert, fit};

fn base() -> Value {
    json!({
        "event": "before_tool_execute",
        "blocking": true,
        "handler": {"type": "command", "command": "./check.sh"},
    })
}

/// A value that the base does not have.
fn sample(field: &Field, base: &Value) -> Value {
    match field.shape {
        FieldShape::Text if field.name == "event" => "after_tool_execute".into(),
        FieldShape::Text => "sample".into(),
        FieldShape::Flag => (base != &Value::Bool(true)).into(),
        FieldShape::Seconds => 7.into(),
        FieldShape::OneOf(words) => (*words.last().unwrap()).into(),
        FieldShape::Texts => json!(["sample"]),
        FieldShape::TextMap => json!({"SAMPLE": "text"}),
        FieldShape::WordMap(words) => json!({"sample": words.first()}),
        FieldShape::ObjectMap => json!({"sample-agent": {"key": 1}}),
        FieldShape::Object => json!({"key": "value"}),
        FieldShape::Condition => json!({"tool": "shell"}),
        FieldShape::Matcher => "file_read".into(),
        FieldShape::Platform | FieldShape::Handler | FieldShape::Hooks | FieldShape::Mcp => {
            panic!("`{}` has a table of its own", field.name)
        }
    }
}

/// Each field, by its path, and the base with that field set.
fn hooks_with_each_field() -> Vec<(String, Hook)> {
    let mut cases = Vec::new();
    for (table, prefix) in [
        (fields::HOOK, ""),
        (fields::HANDLER, "handler."),
        (fields::PLATFORM, "handler.platform."),
    ] {
        for field in table {
            if matches!(field.shape, FieldShape::Handler | FieldShape::Platform) {
                continue;
            }
            let path = format!("{prefix}{}", field.name);
            let pointer = format!("/{}", path.replace('.', "/"));
            let mut hook = base();
            let there = hook.pointer(&pointer).cloned().unwrap_or_default();
            let value = sample(field, &there);
            *path.split('.').fold(&mut hook, |here, key| &mut here[key]) = value.clone();
            let hook: Hook = serde_json::from_value(hook).unwrap();
            let again = serde_json::to_value(&hook).unwrap();
            assert_eq!(again.pointer(&pointer), Some(&value), "{path}");
            assert!(hook.extra.is_empty() && hook.handler.extra.is_empty());
            cases.push((path, hook));
        }
    }
    assert!(cases.len() > 20, "{cases:?}");
    cases
}

fn source(hook: Hook) -> ConversionSource {
    ConversionSource::canonical(Manifest {
        spec: SPEC.to_owned(),
        hooks: vec![hook],
        sequential: false,
        extra: serde_json::Map::new(),
    })
}

fn is_about(path: &str, field: &str) -> bool {
    path == field
        || path.starts_with(&format!("{field}."))
        || field.starts_with(&format!("{path}."))
}

#[test]
fn a_field_that_is_lost_or_added_is_a_difference() {
    let base: Hook = serde_json::from_value(base()).unwrap();
    assert_eq!(compare(&base, &base, "target-agent"), []);
    for (path, hook) in hooks_with_each_field() {
        for (left, right) in [(&hook, &base), (&base, &hook)] {
            let found = compare(left, right, "target-agent");
            assert!(
                matches!(found.as_slice(), [(field, _, _)] if is_about(&path, field)),
                "{path}: {found:?}"
            );
        }
    }
}

/// The base is written for every agent; a source that says more than the base
/// does not pass for it.
#[test]
fn an_output_without_a_field_of_the_source_is_refused() {
    let base: Hook = serde_json::from_value(base()).unwrap();
    for adapter in anyhook_agents::all() {
        let written = source(base.clone());
        let mut warnings = Vec::new();
        let options = ConversionOptions::default();
        let fitted = fit::fit_hooks(&written, adapter, None, &options, &mut warnings);
        let placements: Vec<_> = fitted
            .iter()
            .flat_map(|hook| hook.placements.clone())
            .collect();
        if placements.is_empty() {
            continue;
        }
        let document = adapter.encode_config(&written.manifest, &placements, None);
        let differences = verify(&written, adapter, None, &document, &fitted, &warnings);
        assert_eq!(differences, [], "{}", adapter.spec.id);
        for (path, hook) in hooks_with_each_field() {
            let source = source(hook);
            let differences = verify(&source, adapter, None, &document, &fitted, &[]);
            assert!(
                differences.iter().any(|one| is_about(&path, &one.field)),
                "{} {path}: {differences:?}",
                adapter.spec.id
            );
        }
    }
}

/// Whatever field is set, each agent's config carries it or a warning names it.
#[test]
fn every_field_is_carried_or_reported() {
    for adapter in anyhook_agents::all() {
        for (path, hook) in hooks_with_each_field() {
            let target = ConversionTarget::Agent {
                adapter,
                variant: None,
            };
            match convert(&source(hook), target, &ConversionOptions::default()) {
                Ok(_) | Err(ConvertError::NothingLeft { .. }) => {}
                Err(error) => panic!("{} {path}: {error:?}", adapter.spec.id),
            }
        }
    }
}
