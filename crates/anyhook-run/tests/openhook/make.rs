//! Envelopes from a user's parts and from payloads of unknown agents.

#![cfg(test)]

use anyhook_run::openhook::{EnvelopeParts, UnknownPayloadError, from_unknown, make_envelope};
use serde_json::json;

fn parts() -> EnvelopeParts {
    EnvelopeParts {
        event_type: "tool.end".to_owned(),
        source: "my-agent".to_owned(),
        session_id: "s".to_owned(),
        data: json!({"tool_name": "Bash", "status": "success"})
            .as_object()
            .unwrap()
            .clone(),
        ..EnvelopeParts::default()
    }
}

#[test]
fn every_violation_is_said() {
    let made = make_envelope(
        EnvelopeParts {
            event_type: "ToolEnd".to_owned(),
            source: "My Agent".to_owned(),
            time: Some("2026-02-23T10:15:30".to_owned()),
            context: Some("not a uri".to_owned()),
            ..parts()
        },
        0,
        "",
    );
    let codes: Vec<&str> = made.findings.iter().map(|finding| finding.code).collect();
    for code in [
        "bad-source",
        "bad-type",
        "time-without-zone",
        "context-not-uri",
    ] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
    assert!(!made.is_sound());
    let made = make_envelope(
        EnvelopeParts {
            data: json!({"status": "fine"}).as_object().unwrap().clone(),
            ..parts()
        },
        0,
        "",
    );
    assert_eq!(made.findings[0].code, "unknown-value");
}

#[test]
fn every_call_makes_a_new_id() {
    let id = |parts: EnvelopeParts, nonce| make_envelope(parts, 5, nonce).envelope.id;
    assert_ne!(id(parts(), "1"), id(parts(), "2"));
    let at = || EnvelopeParts {
        time: Some("2026-02-23T10:15:30Z".to_owned()),
        ..parts()
    };
    assert_ne!(id(at(), "1"), id(at(), "2"));
    let own = EnvelopeParts {
        id: Some("550e8400-e29b-41d4-a716-446655440000".to_owned()),
        ..parts()
    };
    assert_eq!(id(own.clone(), "1"), own.id.unwrap());
}

#[test]
fn places_are_told_both_ways() {
    let with = |cwd: &str, context: Option<&str>| {
        let parts = EnvelopeParts {
            cwd: Some(cwd.to_owned()),
            context: context.map(str::to_owned),
            ..parts()
        };
        make_envelope(parts, 5, "").envelope.context
    };
    assert_eq!(with("/a b", None).as_deref(), Some("file:///a%20b"));
    assert_eq!(with("relative", None), None);
    assert_eq!(with("/a", Some("https://x")).as_deref(), Some("https://x"));
}

#[test]
fn payloads_of_unknown_agents() {
    let payload =
        json!({"taskId": "t1", "hookName": "TaskStart", "timestamp": "2026-02-23T10:15:30Z"});
    let sent = from_unknown(payload, "some-agent", 0).unwrap();
    assert_eq!(sent.session_id, "t1");
    assert_eq!(sent.event_type, "session.start");
    let envelope = sent.to_value();
    assert_eq!(from_unknown(envelope, "other", 0).unwrap(), sent);
    let none = from_unknown(json!({"a": 1}), "some-agent", 0);
    assert_eq!(none, Err(UnknownPayloadError::Unrecognised));
    let bad = from_unknown(json!({"hook_event_name": "Stop"}), "Some Agent", 0);
    assert!(matches!(bad, Err(UnknownPayloadError::Invalid(_))));
}
