//! Agent Trace records out of envelopes.

#![cfg(test)]

mod common;

use common::{files, json};
use openhook::trace::{Contributor, LineRange, TraceRecord, trace, trace_sessions};
use openhook::{Envelope, stable_id};
use serde_json::{Value, json};

/// What Agent Trace 0.1.0 demands of a record, in our words.
fn schema() -> jsonschema::Validator {
    let range = json!({
        "type": "object", "required": ["start_line", "end_line"],
        "properties": {
            "start_line": {"type": "integer", "minimum": 1},
            "end_line": {"type": "integer", "minimum": 1},
        },
    });
    let conversation = json!({
        "type": "object", "required": ["ranges"],
        "properties": {
            "url": {"type": "string", "pattern": "^[a-z]+:"},
            "contributor": {
                "type": "object", "required": ["type"],
                "properties": {
                    "type": {"enum": ["human", "ai", "mixed", "unknown"]},
                    "model_id": {"type": "string", "maxLength": 250},
                },
            },
            "ranges": {"type": "array", "items": range},
        },
    });
    jsonschema::validator_for(&json!({
        "type": "object", "required": ["version", "id", "timestamp", "files"],
        "properties": {
            "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
            "id": {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
            "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"},
            "vcs": {"type": "object", "required": ["type", "revision"]},
            "tool": {"type": "object"},
            "files": {"type": "array", "items": {
                "type": "object", "required": ["path", "conversations"],
                "properties": {"conversations": {"type": "array", "items": conversation}},
            }},
            "metadata": {"type": "object"},
        },
    }))
    .unwrap()
}

fn checked(record: &TraceRecord) -> Value {
    let line = record.to_json_line();
    assert_eq!(line.matches('\n').count(), 1);
    let value: Value = serde_json::from_str(&line).unwrap();
    assert!(schema().is_valid(&value), "{value:#}");
    assert_eq!(
        &serde_json::from_value::<TraceRecord>(value.clone()).unwrap(),
        record
    );
    value
}

fn write(data: Value) -> Envelope {
    Envelope::builder("demo", "file.write", "s1")
        .id(stable_id(&[&data.to_string()]))
        .time("2026-02-23T12:00:00+02:00")
        .directory("/home/user/p")
        .data(data.as_object().unwrap().clone())
        .build()
        .unwrap()
}

#[test]
fn the_example_of_the_project_becomes_a_record() {
    let path = &files("fixtures/examples", "agent-trace-integration.json")[0];
    let envelope = Envelope::from_value(json(path)).unwrap();
    let value = checked(&trace(&envelope).unwrap());
    assert_eq!(
        value,
        json!({
            "version": "0.1.0",
            "id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
            "timestamp": "2026-02-23T10:15:45.678Z",
            "tool": {"name": "claude-code"},
            "files": [{
                "path": "src/utils.ts",
                "conversations": [{
                    "contributor": {"type": "ai", "model_id": "anthropic/claude-sonnet-4-6"},
                    "ranges": [{"start_line": 1, "end_line": 30}],
                }],
            }],
            "metadata": {"dev.openhook": {
                "event_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
                "session_id": "sess_abc123def456",
                "operation": "create",
                "tool_call_id": "call_xyz789",
            }},
        })
    );
}

#[test]
fn other_events_are_no_records() {
    for name in ["claude-session-end.json", "copilot-tool-end.json"] {
        let path = &files("fixtures/examples", name)[0];
        assert_eq!(trace(&Envelope::from_value(json(path)).unwrap()), None);
    }
    let mut nameless = write(json!({"path": "a"}));
    nameless.data.clear();
    assert_eq!(trace(&nameless), None);
    let mut timeless = write(json!({"path": "a"}));
    timeless.time = "now".into();
    assert_eq!(trace(&timeless), None);
}

#[test]
fn lines_are_never_made_up() {
    for (data, expected) in [
        (json!({"path": "a"}), json!([])),
        (json!({"path": "a", "end_line": 4}), json!([])),
        (
            json!({"path": "a", "start_line": 4}),
            json!([{"start_line": 4, "end_line": 4}]),
        ),
        (
            json!({"path": "a", "start_line": 4, "end_line": 2}),
            json!([]),
        ),
        (
            json!({"path": "a", "operation": "delete", "start_line": 1, "end_line": 2}),
            json!([]),
        ),
    ] {
        let record = checked(&trace(&write(data.clone())).unwrap());
        assert_eq!(
            record["files"][0]["conversations"][0]["ranges"], expected,
            "{data}"
        );
    }
}

#[test]
fn ids_and_times_have_the_form_of_agent_trace() {
    let mut envelope = write(json!({"path": "/home/user/p/src/a.rs"}));
    envelope.id = "event-1".into();
    let record = checked(&trace(&envelope).unwrap());
    assert_eq!(record["timestamp"], "2026-02-23T10:00:00Z");
    assert_eq!(record["files"][0]["path"], "src/a.rs");
    envelope.cwd = None;
    envelope.context = Some("https://example.org/".into());
    let record = checked(&trace(&envelope).unwrap());
    assert_eq!(record["files"][0]["path"], "/home/user/p/src/a.rs");
}

#[test]
fn a_session_is_one_record_with_files_conversations_and_ranges() {
    let mut other = write(json!({"path": "z"}));
    other.session_id = "s2".into();
    let end = Envelope::builder("demo", "session.end", "s1")
        .id(stable_id(&["end"]))
        .time("2026-02-23T10:05:00Z")
        .data(
            json!({"transcript_path": "/t/s1.jsonl"})
                .as_object()
                .unwrap()
                .clone(),
        )
        .build()
        .unwrap();
    let events = [
        write(json!({"path": "a", "start_line": 1, "end_line": 9, "model": "gpt-5"})),
        write(
            json!({"path": "/home/user/p/a", "start_line": 20, "end_line": 21, "model": "openai/gpt-5"}),
        ),
        other,
        write(
            json!({"path": "a", "start_line": 1, "end_line": 9, "model": "gpt-5", "tool_call_id": "again"}),
        ),
        write(json!({"path": "a", "start_line": 3, "end_line": 3, "model": "claude-opus-4"})),
        write(json!({"path": "b", "start_line": 1, "end_line": 2})),
        write(json!({"path": "b", "operation": "delete"})),
        end,
    ];
    let records = trace_sessions(&events);
    assert_eq!(records.len(), 2);
    for record in &records {
        checked(record);
    }
    let [a, b] = &records[0].files[..] else {
        panic!("{records:#?}");
    };
    let lines = |ranges: &[LineRange]| -> Vec<(u64, u64)> {
        ranges.iter().map(|r| (r.start_line, r.end_line)).collect()
    };
    let model = |contributor: &Option<Contributor>| contributor.clone().unwrap().model_id;
    assert_eq!(a.conversations.len(), 2);
    assert_eq!(
        model(&a.conversations[0].contributor).as_deref(),
        Some("openai/gpt-5")
    );
    assert_eq!(lines(&a.conversations[0].ranges), [(1, 9), (20, 21)]);
    assert_eq!(lines(&a.conversations[1].ranges), [(3, 3)]);
    assert_eq!(
        a.conversations[0].url.as_deref(),
        Some("file:///t/s1.jsonl")
    );
    assert_eq!(lines(&b.conversations[0].ranges), []);
    assert_eq!(records[1].files[0].conversations[0].url, None);
    assert_ne!(records[0].id, records[1].id);
}
