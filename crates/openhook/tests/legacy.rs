//! Native payloads, one per file: recorded ones, and ones of the documentation.

#![cfg(test)]

mod common;

use common::{files, json, name};
use openhook::{Finding, legacy};
use serde_json::{Value, json};

#[test]
fn every_payload_is_guessed_as_expected() {
    for path in files("legacy", ".json") {
        let case = json(&path);
        let guess = legacy::guess_envelope(&case["payload"], "some-agent");
        let got = guess.as_ref().map_or(Value::Null, |guess| {
            json!({
                "type": guess.event.event_type, "exact": guess.event.exact,
                "session_id": guess.session_id, "time": guess.time, "cwd": guess.cwd,
                "data": guess.data,
            })
        });
        assert_eq!(got, case["expect"], "{}", name(&path));
        if let Some(guess) = guess {
            let again = legacy::guess_envelope(&case["payload"], "some-agent").unwrap();
            assert_eq!(again.id, guess.id);
            let envelope = guess.into_envelope("2026-01-01T00:00:00Z").unwrap();
            assert!(
                !envelope.findings().iter().any(Finding::is_error),
                "{}",
                name(&path)
            );
            assert_eq!(
                legacy::session_id(&case["payload"]).as_deref(),
                case["expect"]["session_id"].as_str()
            );
        }
    }
}

#[test]
fn every_name_of_the_introduction_is_known() {
    for key in [
        "sessionId",
        "session_id",
        "sessionID",
        "conversation_id",
        "taskId",
        "thread-id",
        "thread_id",
        "trajectory_id",
    ] {
        assert_eq!(
            legacy::session_id(&json!({ key: "x" })).as_deref(),
            Some("x"),
            "{key}"
        );
    }
    for (native, expected) in [
        ("Stop", "session.end"),
        ("stop", "session.end"),
        ("SessionEnd", "session.end"),
        ("userPromptSubmitted", "prompt.submit"),
        ("agent-turn-complete", "session.end"),
    ] {
        let guess = legacy::event_type(&json!({ "hook_event_name": native })).unwrap();
        assert_eq!(guess.event_type, expected, "{native}");
    }
}

/// The same payload from another agent, or another payload, is another event.
#[test]
fn ids_tell_events_apart() {
    let payload = json!({"hook_event_name": "Stop", "session_id": "s"});
    let other = json!({"hook_event_name": "Stop", "session_id": "t"});
    let id = |payload, source| legacy::guess_envelope(payload, source).unwrap().id;
    assert_ne!(id(&payload, "a"), id(&payload, "b"));
    assert_ne!(id(&payload, "a"), id(&other, "a"));
}
