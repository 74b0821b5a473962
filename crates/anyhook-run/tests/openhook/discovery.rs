//! Discovery files: found, planned, delivered; consumers that fail.

#![cfg(test)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhook_run::openhook::discovery::{DEFAULT_CONSUMER_TIMEOUT, deliveries, find};
use anyhook_run::openhook::{EnvelopeParts, make_envelope};
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
    assert_eq!(found.parse().discovery.unwrap().hooks.len(), 1);
    write(&base.join("repo/pkg/.openhook.json"), "{");
    let found = find(&from, None).unwrap().unwrap();
    assert_eq!(found.root, base.join("repo/pkg"));
    assert!(found.parse().discovery.is_none());
    assert!(!found.parse().findings.is_empty());
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
    assert!(
        error.to_string().contains("it is a folder, not a file"),
        "{error}"
    );
}

fn envelope(kind: &str) -> Envelope {
    let parts = EnvelopeParts {
        event_type: kind.to_owned(),
        source: "my-agent".to_owned(),
        session_id: "s".to_owned(),
        data: [("path".to_owned(), "a.rs".into())].into_iter().collect(),
        time: Some("2026-02-23T10:15:30Z".to_owned()),
        ..EnvelopeParts::default()
    };
    let made = make_envelope(parts, 0, "");
    assert!(made.is_sound());
    made.envelope
}

fn discovery(text: &str) -> Discovery {
    Discovery::parse(text).discovery.unwrap()
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
    assert_eq!(planned[0].timeout, DEFAULT_CONSUMER_TIMEOUT);
    assert_eq!(planned[1].timeout, Duration::from_millis(500));
    assert_eq!(planned[3].timeout, Duration::from_secs(24 * 3600));
    assert_eq!(
        Envelope::parse(&planned[0].envelope_json).unwrap(),
        envelopes[0]
    );
}

#[cfg(unix)]
#[test]
fn a_consumer_that_fails_keeps_no_other_from_receiving() {
    use anyhook_model::{HookEvent, RunOutcome};
    use anyhook_run::config::discover::Dirs;
    use anyhook_run::config::policy::Rulebook;
    use anyhook_run::openhook::consumers::Consumers;
    use anyhook_run::{Engine, EventOptions};

    let scratch = tempfile::tempdir().unwrap();
    let project = scratch.path().join("project");
    write(
        &project.join(".openhook.json"),
        r#"{"openhook":"0.1","hooks":[
            {"command":"exit 3"},
            {"command":"no-such-program-here","events":["tool.end"]},
            {"command":"cat >> heard.jsonl"}]}"#,
    );
    let dirs = Dirs {
        config: scratch.path().join("config"),
        state: scratch.path().join("state"),
        managed: scratch.path().join("managed"),
        home: None,
        problems: Vec::new(),
    };
    let engine = Engine::new(dirs, true);
    let (consumers, notices) = Consumers::find(&engine, Some(&project));
    assert_eq!(notices, [""; 0]);
    let envelopes = [envelope("tool.end"), envelope("session.end")];
    let runs = consumers
        .unwrap()
        .plan_deliveries(&envelopes, "session_end", &Rulebook::default())
        .deliver(
            &engine,
            &HookEvent::default(),
            EventOptions::default(),
            "record",
        );
    let failed: Vec<_> = runs
        .iter()
        .filter(|run| run.outcome != RunOutcome::Allow)
        .map(|run| {
            let message = run.message.as_deref().unwrap();
            (run.hook.as_str(), message.split('`').nth(1).unwrap())
        })
        .collect();
    assert_eq!(
        failed,
        [
            ("#1", "tool.end"),
            ("#2", "tool.end"),
            ("#1", "session.end"),
        ]
    );
    assert_eq!(runs[0].exit, Some(3));
    let heard = fs::read_to_string(project.join("heard.jsonl")).unwrap();
    let heard: Vec<Envelope> = heard
        .lines()
        .map(|line| Envelope::parse(line).unwrap())
        .collect();
    assert_eq!(heard, envelopes);
}
