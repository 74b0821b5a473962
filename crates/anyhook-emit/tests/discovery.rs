//! Discovery files: found, planned, delivered; consumers that fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhook_emit::discovery::{DEFAULT_TIMEOUT, Deliver, Delivery, deliveries, dispatch, find};
use anyhook_emit::{Parts, make};
use openhook::{Discovery, Envelope};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const FILE: &str = r#"{"openhook":"0.1","hooks":[{"command":"true"}]}"#;

#[test]
fn the_nearest_file_up_to_the_repository() {
    let scratch = tempfile::tempdir().unwrap();
    let base = scratch.path();
    write(&base.join(".openhook.json"), "above");
    write(&base.join("repo/.git/HEAD"), "");
    write(&base.join("repo/pkg/src/main.rs"), "");
    let from = base.join("repo/pkg/src");
    assert!(find(&from, None).unwrap().is_none());
    write(&base.join("repo/.openhook.json"), FILE);
    let found = find(&from, None).unwrap().unwrap();
    assert_eq!(found.root, base.join("repo"));
    assert_eq!(found.text, FILE);
    assert_eq!(found.reading.discovery.unwrap().hooks.len(), 1);
    write(&base.join("repo/pkg/.openhook.json"), "{");
    let found = find(&from, None).unwrap().unwrap();
    assert_eq!(found.root, base.join("repo/pkg"));
    assert!(found.reading.discovery.is_none());
    assert!(!found.reading.findings.is_empty());
}

#[test]
fn the_search_ends_at_home_and_refuses_what_is_no_file() {
    let scratch = tempfile::tempdir().unwrap();
    let base = scratch.path();
    write(&base.join(".openhook.json"), FILE);
    fs::create_dir_all(base.join("home/project")).unwrap();
    let project = base.join("home/project");
    assert!(find(&project, Some(&base.join("home"))).unwrap().is_none());
    assert!(find(&project, None).unwrap().is_some());
    fs::create_dir_all(project.join(".openhook.json")).unwrap();
    let error = find(&project, None).unwrap_err();
    assert!(error.to_string().contains("it is not a file"), "{error}");
}

fn envelope(kind: &str) -> Envelope {
    let parts = Parts {
        event_type: kind.to_owned(),
        source: "my-agent".to_owned(),
        session_id: "s".to_owned(),
        data: [("path".to_owned(), "a.rs".into())].into_iter().collect(),
        time: Some("2026-02-23T10:15:30Z".to_owned()),
        ..Parts::default()
    };
    let made = make(parts, 0, "");
    assert!(made.is_sound());
    made.envelope
}

fn discovery(text: &str) -> Discovery {
    Discovery::read(text).discovery.unwrap()
}

#[test]
fn envelopes_in_order_and_hooks_in_order() {
    let discovery = discovery(
        r#"{"openhook":"0.1","hooks":[
            {"command":"one","events":["tool.end"],"async":true},
            {"command":"two","timeout":0.5},
            {"command":"three","events":["file.write"],"timeout":1e300}]}"#,
    );
    let envelopes = [
        envelope("tool.end"),
        envelope("file.write"),
        envelope("doc.write"),
    ];
    let planned = deliveries(&discovery, &envelopes);
    let shown: Vec<_> = planned
        .iter()
        .map(|one| {
            (
                one.command.as_str(),
                one.event_type.as_str(),
                one.hook,
                one.is_async,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("one", "tool.end", 0, true),
            ("two", "tool.end", 1, false),
            ("two", "file.write", 1, false),
            ("three", "file.write", 2, false),
            ("two", "doc.write", 1, false),
        ]
    );
    assert_eq!(planned[0].timeout, DEFAULT_TIMEOUT);
    assert_eq!(planned[1].timeout, Duration::from_millis(500));
    assert_eq!(planned[3].timeout, Duration::from_secs(24 * 3600));
    assert_eq!(
        Envelope::parse(&planned[0].envelope_json).unwrap(),
        envelopes[0]
    );
}

/// Runs real processes; without time limits, which are the real runner's.
struct Shell<'a>(&'a Path);

impl Deliver for Shell<'_> {
    fn deliver(&mut self, delivery: &Delivery) -> Result<(), String> {
        let mut child = Command::new("sh")
            .args(["-c", &delivery.command])
            .current_dir(self.0)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut stdin = child.stdin.take().unwrap();
        // A consumer that does not read is no failure.
        let _ = stdin.write_all(delivery.envelope_json.as_bytes());
        drop(stdin);
        let status = child.wait().unwrap();
        status
            .success()
            .then_some(())
            .ok_or_else(|| status.to_string())
    }
}

#[cfg(unix)]
#[test]
fn a_consumer_that_fails_keeps_nobody_from_hearing() {
    let scratch = tempfile::tempdir().unwrap();
    let discovery = discovery(
        r#"{"openhook":"0.1","hooks":[
            {"command":"exit 3"},
            {"command":"no-such-program-here","events":["tool.end"]},
            {"command":"cat >> heard.jsonl"}]}"#,
    );
    let envelopes = [envelope("tool.end"), envelope("session.end")];
    let failures = dispatch(
        &deliveries(&discovery, &envelopes),
        &mut Shell(scratch.path()),
    );
    let failed: Vec<_> = failures
        .iter()
        .map(|failure| (failure.command.as_str(), failure.event_type.as_str()))
        .collect();
    assert_eq!(
        failed,
        [
            ("exit 3", "tool.end"),
            ("no-such-program-here", "tool.end"),
            ("exit 3", "session.end"),
        ]
    );
    assert!(failures[0].message.contains('3'));
    let heard = fs::read_to_string(scratch.path().join("heard.jsonl")).unwrap();
    let heard: Vec<Envelope> = heard
        .lines()
        .map(|line| Envelope::parse(line).unwrap())
        .collect();
    assert_eq!(heard, envelopes);
}
