//! Whatever events say, envelopes conform, and a second delivery is recognised.

use std::collections::HashSet;

use anyhook_model::HookEvent;
use anyhook_run::openhook::{EnvelopeOptions, envelopes_with};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::fake_machine::FakeMachine;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("x".to_owned()),
        Just("/p/a.txt".to_owned()),
        Just("a.txt".to_owned()),
        Just("2026-02-23T10:15:30.123Z".to_owned()),
        "\\PC{0,12}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let keys = prop_oneof![
            Just("path".to_owned()),
            Just("content".to_owned()),
            Just("edits".to_owned()),
            Just("files".to_owned()),
            Just("operation".to_owned()),
            Just("move_to".to_owned()),
            Just("new".to_owned()),
            Just("type".to_owned()),
            text(),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Mostly of the right shape, since most events are.
fn data() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop::sample::select(vec![
        "tool_name",
        "native_tool_name",
        "tool_call_id",
        "tool_output",
        "tool_kinds",
        "status",
        "error",
        "duration_ms",
        "prompt",
        "transcript_path",
        "reason",
        "model",
        "mcp",
        "agent_id",
        "start_source",
        "input_tokens",
    ]);
    let word = prop::sample::select(vec![
        "file_write",
        "file_edit",
        "shell",
        "delete",
        "success",
        "error",
        "clear",
        "compact",
        "claude-a",
        "c1",
    ]);
    let value = prop_oneof![word.prop_map(Value::from), value()];
    let input = prop_oneof![
        value.clone(),
        (text(), text()).prop_map(|(path, content)| json!({"path": path, "content": content})),
        (text(), text(), text()).prop_map(|(path, old, new)| {
            json!({"path": path, "edits": [{"old": old, "new": new}]})
        }),
        prop::collection::vec((text(), text()), 0..4).prop_map(|files| {
            let files: Vec<Value> = files
                .into_iter()
                .map(|(path, to)| json!({"path": path, "operation": "update", "move_to": to}))
                .collect();
            json!({ "files": files })
        }),
    ];
    let entries = prop::collection::vec((key, value), 0..8);
    (entries, prop::option::of(input)).prop_map(|(entries, input)| {
        let mut data: Map<String, Value> = entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        if let Some(input) = input {
            data.insert("tool_input".to_owned(), input);
        }
        data
    })
}

fn event() -> impl Strategy<Value = HookEvent> {
    let name = prop::sample::select(vec![
        "session_start",
        "session_end",
        "before_prompt",
        "before_tool_execute",
        "after_tool_execute",
        "tool_use_failure",
        "agent_stop",
        "notification",
        "",
    ]);
    let source = prop_oneof![Just("my-agent".to_owned()), text()];
    let session = prop::option::of(prop_oneof![Just("s1".to_owned()), text()]);
    (
        name,
        source,
        session,
        prop::option::of(text()),
        prop::option::of(text()),
        data(),
        data(),
    )
        .prop_map(
            |(name, source, session_id, timestamp, cwd, data, metadata)| HookEvent {
                event: name.to_owned(),
                source,
                native_event: format!("native-{name}"),
                session_id,
                timestamp,
                cwd,
                data,
                metadata,
                ..HookEvent::default()
            },
        )
}

fn options() -> impl Strategy<Value = EnvelopeOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(synthesize_start, synthesize_end)| EnvelopeOptions {
        synthesize_start,
        synthesize_end,
        ..EnvelopeOptions::default()
    })
}

fn machine() -> FakeMachine {
    let machine = FakeMachine::starting_at(1_771_841_730_000);
    machine.write("/p/a.txt", "one\nx\n");
    machine.write("x", "{\"message\":{\"model\":\"m\"}}\n");
    machine.remove("a.txt");
    machine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_envelope_conforms(events in prop::collection::vec(event(), 1..6), options in options()) {
        let machine = machine();
        for event in &events {
            for envelope in envelopes_with(event, &machine, options) {
                let errors: Vec<_> = envelope
                    .findings()
                    .into_iter()
                    .filter(openhook::Finding::is_error)
                    .collect();
                prop_assert!(errors.is_empty(), "{errors:?} in {envelope:?}");
            }
        }
    }

    #[test]
    fn no_text_of_a_prompt_gets_out(secret in "[a-z]{12}") {
        let event = HookEvent {
            event: "before_prompt".to_owned(),
            source: "a".to_owned(),
            data: json!({ "prompt": secret }).as_object().unwrap().clone(),
            metadata: json!({ "native": { "prompt": secret } }).as_object().unwrap().clone(),
            ..HookEvent::default()
        };
        let sent = envelopes_with(&event, &FakeMachine::default(), EnvelopeOptions::default());
        prop_assert_eq!(sent.len(), 1);
        prop_assert!(!sent[0].to_json_line().contains(&secret));
    }

    /// Nothing new at the second delivery, and what comes is what came.
    #[test]
    fn the_same_event_twice_has_the_same_ids(
        events in prop::collection::vec(event(), 1..6),
        options in options(),
    ) {
        let machine = machine();
        for event in &events {
            let ids = || -> HashSet<String> {
                envelopes_with(event, &machine, options)
                    .into_iter()
                    .map(|envelope| envelope.id)
                    .collect()
            };
            let (first, second) = (ids(), ids());
            prop_assert!(second.is_subset(&first), "{first:?} {second:?}");
            prop_assert_eq!(first.is_empty(), second.is_empty());
        }
    }

    /// One event never gives two envelopes with one id.
    #[test]
    fn ids_are_unique_within_an_event(event in event(), options in options()) {
        let sent = envelopes_with(&event, &machine(), options);
        let ids: HashSet<&str> = sent.iter().map(|envelope| envelope.id.as_str()).collect();
        prop_assert_eq!(ids.len(), sent.len());
    }
}
