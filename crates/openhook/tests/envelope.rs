//! Envelopes: the examples of both texts, one file per rule, properties.

#![cfg(test)]

mod common;

use common::{files, json, name};
use openhook::{Envelope, Finding, code, validate};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

#[test]
fn every_example_parses_validates_and_round_trips() {
    for path in files("fixtures/examples", ".json") {
        let value = json(&path);
        assert_eq!(validate(&value), [], "{}", name(&path));
        let envelope = Envelope::from_value(value.clone()).unwrap();
        assert_eq!(envelope.to_value(), value, "{}", name(&path));
        let line = envelope.to_json_line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(Envelope::parse(&line).unwrap(), envelope);
        assert_eq!(serde_json::to_value(&envelope).unwrap(), value);
        let by_serde: Envelope = serde_json::from_value(value).unwrap();
        assert_eq!(by_serde, envelope);
    }
}

fn summary(findings: &[Finding]) -> Value {
    findings
        .iter()
        .map(|f| json!({"code": f.code, "severity": f.severity, "field": f.field}))
        .collect()
}

#[test]
fn every_rule_finds_its_violation_and_nothing_else() {
    for path in files("envelopes", ".json") {
        let case = json(&path);
        let findings = validate(&case["envelope"]);
        assert_eq!(
            summary(&findings),
            case["expect"],
            "{}: {findings:#?}",
            name(&path)
        );
        for finding in &findings {
            assert!(!finding.message.is_empty());
            assert!(finding.to_string().contains(finding.code));
        }
    }
}

/// A code without a case is a rule without a test.
#[test]
fn every_code_has_a_case() {
    let mut seen = BTreeSet::new();
    for folder in ["envelopes", "discovery"] {
        for path in files(folder, ".json") {
            for expected in json(&path)["expect"].as_array().unwrap() {
                seen.insert(expected["code"].as_str().unwrap().to_owned());
            }
        }
    }
    let all: BTreeSet<String> = code::ALL.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(seen, all);
}

#[test]
fn a_message_says_what_is_right() {
    let mut value = json!({
        "openhook": "0.1", "id": "550e8400-e29b-41d4-a716-446655440000",
        "source": "Claude Code", "type": "userPromptSubmitted",
        "time": "2026-02-23T10:15:30", "session_id": "s", "context": "/home/me/a b",
    });
    let messages: Vec<String> = validate(&value).into_iter().map(|f| f.message).collect();
    for (message, fix) in messages.iter().zip([
        "`claude-code`",
        "`prompt.submit`",
        "`Z`",
        "`file:///home/me/a%20b`",
    ]) {
        assert!(message.contains(fix), "{message}");
    }
    assert_eq!(messages.len(), 4);
    value["type"] = "session.end".into();
    value["data"] = json!({"reason": "prompt_input_exit"});
    assert!(
        validate(&value)
            .iter()
            .any(|f| f.message.contains("write `user_exit`"))
    );
}

#[test]
fn an_unknown_version_is_processed_and_kept() {
    let text = r#"{"openhook":"7.3","id":"x","source":"a","type":"new.event","time":"t","session_id":"s","tomorrow":[1,2],"cwd":null}"#;
    let envelope = Envelope::parse(text).unwrap();
    assert_eq!(envelope.openhook, "7.3");
    assert_eq!(envelope.unknown["tomorrow"], json!([1, 2]));
    assert_eq!(envelope.cwd, None);
}

#[test]
fn what_cannot_be_represented_is_refused_with_every_reason() {
    let error = Envelope::parse(r#"{"openhook":"0.1","id":5,"cwd":1,"data":[]}"#).unwrap_err();
    let fields: Vec<&str> = error.findings().iter().map(|f| f.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "/id",
            "/source",
            "/type",
            "/time",
            "/session_id",
            "/cwd",
            "/data"
        ]
    );
    let error = Envelope::parse("{\n\"openhook\": }").unwrap_err();
    let at = error.findings()[0].position.unwrap();
    assert_eq!((at.line, at.column), (2, 13));
    assert!(error.to_string().contains("line 2, column 13"));
}

#[test]
fn the_builder_refuses_what_violates_the_protocol() {
    let error = Envelope::builder("Bad Name", "file.write", "s")
        .id("i")
        .time("2026-01-01T00:00:00Z")
        .build()
        .unwrap_err();
    let codes: Vec<&str> = error.findings().iter().map(|f| f.code).collect();
    assert_eq!(codes, ["bad-source", "missing-field"]);
    assert!(Envelope::builder("a", "session.end", "s").build().is_err());
}

/// A field that is known is never written twice.
#[test]
fn unknown_fields_cannot_shadow_known_ones() {
    let mut envelope = Envelope::builder("a", "session.end", "s")
        .id("550e8400-e29b-41d4-a716-446655440000")
        .time("2026-01-01T00:00:00Z")
        .build()
        .unwrap();
    envelope.unknown.insert("id".into(), "other".into());
    envelope.unknown.insert("cwd".into(), "/other".into());
    let line = envelope.to_json_line();
    assert!(!line.contains("other"));
    assert_eq!(serde_json::to_string(&envelope).unwrap() + "\n", line);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            any_map(inner).prop_map(Value::from),
        ]
    })
}

fn any_map(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        ".{0,8}",
        prop::sample::select(vec![
            "openhook",
            "id",
            "source",
            "type",
            "time",
            "session_id",
            "data",
            "cwd",
            "context",
            "extensions",
            "reason",
            "path",
            "duration_ms",
            "start_line",
            "events",
            "hooks",
            "command",
            "hook_event_name",
            "toolName",
            "timestamp",
            "tool_call_id",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec((key, value), 0..8).prop_map(Map::from_iter)
}

prop_compose! {
    fn any_envelope()(
        texts in prop::array::uniform6(".{0,16}"),
        data in any_map(any_json()),
        extensions in any_map(any_json()),
        unknown in any_map(any_json()),
        cwd in prop::option::of(".{0,16}"),
        context in prop::option::of(".{0,16}"),
    ) -> Envelope {
        let [openhook, id, source, event_type, time, session_id] = texts;
        let mut unknown = unknown;
        for name in ["openhook", "id", "source", "type", "time", "session_id",
                     "data", "cwd", "context", "extensions"] {
            unknown.remove(name);
        }
        Envelope { openhook, id, source, event_type, time, session_id, data, cwd, context,
                   extensions, unknown }
    }
}

proptest! {
    #[test]
    fn parse_of_write_is_the_same(envelope in any_envelope()) {
        prop_assert_eq!(&Envelope::parse(&envelope.to_json_line()).unwrap(), &envelope);
        let text = serde_json::to_string(&envelope).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Envelope>(&text).unwrap(), &envelope);
    }

    #[test]
    fn any_json_is_survived(value in any_json(), kind in prop::sample::select(&openhook::event_type::ALL[..])) {
        let mut value = value;
        for _ in 0..2 {
            let findings = validate(&value);
            let refused = Envelope::from_value(value.clone()).is_err();
            // What cannot even be read never validates.
            prop_assert!(!refused || findings.iter().any(Finding::is_error));
            let _ = openhook::Discovery::from_value(&value);
            if let Some(guess) = openhook::legacy::guess_envelope(&value, "some-agent") {
                let envelope = guess.into_envelope("2026-01-01T00:00:00Z").unwrap();
                prop_assert!(envelope.findings().iter().all(|f| !f.is_error()));
            }
            let mut checker = openhook::StreamChecker::new();
            checker.push(&value);
            checker.push(&value);
            checker.finish();
            if let Value::Object(map) = &mut value {
                map.insert("type".into(), kind.into());
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = Envelope::parse(&text);
        let _ = openhook::Discovery::parse(&text);
        let _ = text.parse::<openhook::Timestamp>();
        let _ = openhook::is_uri(&text);
        let _ = openhook::file_path(&text);
        prop_assert!(openhook::is_uri(&openhook::file_uri(&text)));
        let mut checker = openhook::StreamChecker::new();
        checker.push_line(&text);
        checker.finish();
    }

    #[test]
    fn any_digits_are_survived(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,12})?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?") {
        if let Ok(time) = text.parse::<openhook::Timestamp>() {
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }
}
