//! The same manifest from JSON, JSON with comments, and YAML.

#![cfg(test)]

mod common;
#[path = "common/write.rs"]
mod write;

use anyhook_model::document::{self, Format};
use anyhook_model::{Manifest, Vocabulary, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str, format: Format) -> Manifest {
    let (manifest, findings) = parse::manifest(text, format, &Vocabulary::default());
    let errors: Vec<_> = findings
        .into_iter()
        .filter(anyhook_model::Diagnostic::is_error)
        .collect();
    manifest.unwrap_or_else(|| panic!("{errors:#?}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_format_gives_the_same_manifest(value in common::manifest()) {
        let json = value.to_string();
        let from_json = read(&json, Format::Json);
        let canonical = serde_json::to_string(&from_json).unwrap();
        for (text, format) in [
            (format!("\u{feff}{json}"), Format::Json),
            (serde_json::to_string_pretty(&value).unwrap(), Format::Jsonc),
            (write::to_jsonc(&value), Format::Jsonc),
            (write::to_yaml(&value), Format::Yaml),
            (format!("\u{feff}{}", write::to_yaml(&value)), Format::Yaml),
            (json.clone(), Format::Yaml),
        ] {
            let other = serde_json::to_string(&read(&text, format)).unwrap();
            prop_assert_eq!(&other, &canonical, "{}", text);
        }
    }

    /// The checked way and the plain way of reading agree, and nothing is lost.
    #[test]
    fn agrees_with_the_types(value in common::manifest()) {
        let read = read(&value.to_string(), Format::Json);
        prop_assert_eq!(&read, &serde_json::from_value::<Manifest>(value.clone()).unwrap());
        let again = serde_json::to_value(&read).unwrap();
        prop_assert_eq!(without_defaults(again), without_defaults(value));
    }
}

/// Without the fields whose presence means nothing: `false`, and what is empty.
fn without_defaults(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_defaults).collect(),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, value)| (key, without_defaults(value)))
                .filter(|(key, value)| match key.as_str() {
                    "blocking" | "async" => value != &json!(false),
                    "env" => value != &json!({}),
                    _ => true,
                })
                .collect(),
        ),
        Value::Number(number) => json!(number.as_f64()),
        leaf => leaf,
    }
}

#[test]
fn yaml_scalars_follow_the_core_schema() {
    for (yaml, expected) in [
        ("yes", json!("yes")),
        ("on", json!("on")),
        ("True", json!(true)),
        ("~", json!(null)),
        ("", json!(null)),
        ("012", json!(12)),
        ("0o17", json!(15)),
        ("0xff", json!(255)),
        ("+5", json!(5)),
        ("1.", json!(1.0)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1_000", json!("1_000")),
        ("2024-01-01", json!("2024-01-01")),
        ("'5'", json!("5")),
        ("!!str 5", json!("5")),
        ("!!int 5", json!(5)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("|\n  a\n  b\n", json!("a\nb\n")),
        (">-\n  a\n  b\n", json!("a b")),
    ] {
        let (node, findings) = document::parse(&format!("v: {yaml}"), Format::Yaml);
        assert_eq!(findings, [], "{yaml}");
        assert_eq!(
            node.unwrap().get("v").unwrap().to_json(),
            expected,
            "{yaml}"
        );
    }
}

#[test]
fn what_json_cannot_say_is_refused() {
    for (yaml, code) in [
        ("a: &x 1\nb: *x", "alias"),
        ("1: a", "key-not-text"),
        ("true: a", "key-not-text"),
        ("? [a]\n: b", "key-not-text"),
        ("a: 1\na: 2", "duplicate-key"),
        ("a: !!binary eA==", "tag"),
        ("a: !mine b", "tag"),
        ("a: .nan", "syntax"),
        ("a: 1\n---\nb: 2", "several-documents"),
        ("a: [1", "syntax"),
        ("a:\n\t- b", "syntax"),
        ("", "syntax"),
        ("# only a comment", "syntax"),
    ] {
        let (_, findings) = document::parse(yaml, Format::Yaml);
        let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [code], "{yaml}: {findings:?}");
    }
    for (text, code) in [
        ("{'a': 1}", "syntax"),
        ("{a: 1}", "syntax"),
        ("{\"a\": 01}", "syntax"),
        ("{\"a\": 1e999}", "syntax"),
        ("{\"a\": \"\\ud800\"}", "syntax"),
        ("{\"a\": 1, \"a\": 2}", "duplicate-key"),
        ("{\"a\": 1} x", "syntax"),
        ("[1, 2", "syntax"),
        ("{\"a\": [1, 2}", "syntax"),
        ("/* open", "syntax"),
        ("", "syntax"),
    ] {
        let (_, findings) = document::parse(text, Format::Jsonc);
        let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [code], "{text}: {findings:?}");
    }
}

#[test]
fn a_doubled_key_is_found_in_large_objects_too() {
    let keys: Vec<String> = (0..50).map(|index| format!("\"k{index}\": 1")).collect();
    let text = format!("{{{}, \"k7\": 2}}", keys.join(", "));
    let (_, findings) = document::parse(&text, Format::Json);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].span.start, text.rfind("\"k7\"").unwrap());
}

#[test]
fn strict_json_has_no_comments_and_no_trailing_commas() {
    let text = "{\"a\": [1, 2,], // x\n}";
    assert_eq!(document::parse(text, Format::Jsonc).1, []);
    let messages: Vec<_> = document::parse(text, Format::Json)
        .1
        .into_iter()
        .map(|it| it.message)
        .collect();
    assert_eq!(
        messages,
        [
            "trailing commas are not allowed in JSON",
            "comments are not allowed in JSON",
            "trailing commas are not allowed in JSON"
        ]
    );
}

#[test]
fn a_missing_comma_does_not_hide_the_rest() {
    let text = "{\"a\": 1 \"b\": [1 2]}";
    let (node, findings) = document::parse(text, Format::Jsonc);
    assert_eq!(node.unwrap().to_json(), json!({"a": 1, "b": [1, 2]}));
    let starts: Vec<_> = findings.iter().map(|finding| finding.span.start).collect();
    assert_eq!(starts, [7, 15]);
}
