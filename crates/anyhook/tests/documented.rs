//! Every field of the settings, the manifest, policies and messages, and every
//! environment variable is on a page; the settings are those that the programs parse.
#![cfg(test)]

use std::fs;
use std::path::Path;

use anyhook_export::otlp::OtlpConfig;
use anyhook_model::Format;
use anyhook_model::config_fields::{CONFIG, ConfigField};
use anyhook_model::fields::{self, Field};
use anyhook_model::message_fields::{MESSAGE_TYPES, MessageKind};
use anyhook_run::config::settings::{Approvals, Evaluator, Http, OpenHookSettings, Settings};
use anyhook_testkit::struct_fields;
use anyhook_util::env::VARIABLES;
use serde_json::{Map, Value, json};

fn page(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join("docs").join(name)).unwrap()
}

/// The row of a table that begins with this name.
#[track_caller]
fn assert_has_row(page: &str, name: &str) {
    let start = format!("| `{name}` |");
    assert!(
        page.lines().any(|line| line.starts_with(&start)),
        "`{name}` is not on the page"
    );
}

#[test]
fn every_field_and_variable_is_on_a_page() {
    let manifest = page("manifest.md");
    let tables: [&[Field]; 7] = [
        fields::MANIFEST,
        fields::HOOK,
        fields::HANDLER,
        fields::PLATFORM,
        fields::MATCHER,
        fields::MCP,
        fields::POLICY,
    ];
    for field in tables.into_iter().flatten() {
        assert_has_row(&manifest, field.name);
        assert!(!field.about.is_empty(), "{}", field.name);
    }
    let configuration = page("configuration.md");
    for field in CONFIG {
        assert_has_row(&configuration, field.path);
    }
    for variable in VARIABLES {
        assert_has_row(&configuration, variable.name);
    }
    let hooks = page("writing-hooks.md");
    let of_hooks = |name: &str| !matches!(name, "record" | "hook_run" | "loss");
    for message in MESSAGE_TYPES.iter().filter(|one| of_hooks(one.name)) {
        for field in message.fields {
            assert_has_row(&hooks, field.name);
        }
    }
}

#[test]
fn the_settings_are_those_that_are_parsed() {
    let sections = [
        ("evaluator", struct_fields::<Evaluator>()),
        ("http", struct_fields::<Http>()),
        ("openhook", struct_fields::<OpenHookSettings>()),
        ("approvals", struct_fields::<Approvals>()),
        ("otlp", struct_fields::<OtlpConfig>()),
    ];
    let mut parsed = Vec::new();
    for name in struct_fields::<Settings>() {
        match sections.iter().find(|(section, _)| *section == name) {
            Some((_, fields)) => {
                parsed.extend(fields.iter().map(|field| format!("{name}.{field}")));
            }
            None => parsed.push(name.to_owned()),
        }
    }
    let mut listed: Vec<String> = CONFIG.iter().map(|field| field.path.to_owned()).collect();
    listed.sort();
    parsed.sort();
    assert_eq!(listed, parsed, "config_fields.rs and the parsers differ");
}

fn parse(field: &ConfigField, value: Value) -> Result<(), String> {
    let (section, name) = field.section_and_name();
    let mut document = Map::new();
    document.insert(name.to_owned(), value);
    if let Some(section) = section {
        let inner = Value::Object(std::mem::take(&mut document));
        document.insert(section.to_owned(), inner);
    }
    let text = Value::Object(document).to_string();
    let settings = Settings::parse(&text, Format::Json)?;
    if settings.otlp.is_null() {
        return Ok(());
    }
    let otlp: Result<OtlpConfig, _> = serde_json::from_value(settings.otlp);
    otlp.map(drop).map_err(|error| error.to_string())
}

#[test]
fn the_settings_have_the_documented_types() {
    for field in CONFIG {
        let right = match field.kind {
            MessageKind::Text => vec![json!("x")],
            MessageKind::Flag => vec![json!(true)],
            MessageKind::Number | MessageKind::Integer => vec![json!(3)],
            MessageKind::Texts if field.path == "otlp.signals" => {
                vec![json!(["traces", "logs", "metrics"])]
            }
            MessageKind::Texts => vec![json!(["x"])],
            MessageKind::Words(words) => words.iter().map(|word| json!(word)).collect(),
            MessageKind::Object => vec![json!({"x": "y"})],
            other => panic!("{}: {other:?}", field.path),
        };
        for value in right {
            parse(field, value).unwrap_or_else(|error| panic!("{}: {error}", field.path));
        }
        for wrong in [json!({"no": {"such": "value"}}), json!("no-such-word")] {
            let is_text = field.kind == MessageKind::Text && wrong.is_string();
            assert_eq!(parse(field, wrong).is_ok(), is_text, "{}", field.path);
        }
    }
}

#[test]
fn the_schema_of_the_settings_has_every_field() {
    let schema = anyhook_model::message_schema::config();
    for field in CONFIG {
        let pointer = field.path.replace('.', "/properties/");
        let pointer = format!("/properties/{pointer}");
        let about = schema.pointer(&pointer).map(|one| &one["description"]);
        assert_eq!(about, Some(&json!(field.about)), "{}", field.path);
    }
}
