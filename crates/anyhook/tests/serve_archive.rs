//! `serve --archive`: what leaves retention is in the archive first.

#![cfg(test)]

mod serve_support;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhook_testkit::{Scratch, files_below};
use serde_json::{Value, json};
use serve_support::{Daemon, within};

const LONG: Duration = Duration::from_secs(60);

/// Events that are older than any retention of these tests keeps.
fn append(scratch: &Scratch, numbers: std::ops::Range<u32>) {
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let options = options.create(true).append(true);
    let mut file = options.open(folder.join("events.jsonl")).unwrap();
    for n in numbers {
        let record = json!({
            "v": 1, "id": format!("event-{n}"), "kind": "event", "agent": "codex",
            "time": format!("2021-03-0{}T10:00:{:02}.000Z", 1 + n % 3, n % 60),
            "event": {"event": "before_prompt", "source": "codex", "session_id": "s"},
            "duration_ms": 1.5
        });
        writeln!(file, "{record}").unwrap();
    }
}

/// The state that says what is in the archive.
fn exported(archive: &Path) -> i64 {
    let state = files_below(&archive.join("_anyhook"));
    let state = state
        .iter()
        .find(|it| it.extension().is_some_and(|end| end == "json"));
    let text = state.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let state: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    state["exported"].as_i64().unwrap_or_default()
}

fn days(archive: &Path) -> BTreeSet<String> {
    let files = files_below(&archive.join("events/v=1"));
    let day = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        path.parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    files.iter().map(day).collect()
}

fn stored(daemon: &Daemon) -> usize {
    let page = daemon.get("/events?limit=1000");
    page["events"].as_array().unwrap().len()
}

#[test]
fn what_is_too_old_is_archived_and_then_deleted() {
    let scratch = Scratch::new().unwrap();
    let archive = scratch.root().join("archive");
    let args = ["--retain", "1d", "--archive", archive.to_str().unwrap()];
    for (from, until) in [(0, 30), (30, 35)] {
        append(&scratch, from..until);
        let daemon = Daemon::start(&scratch, &[]);
        daemon.events("limit=100", (until - from) as usize);
        daemon.kill();
        assert_eq!(exported(&archive), i64::from(from));
        // It archives what is in its store when it starts, and then once an hour.
        let daemon = Daemon::start(&scratch, &args);
        assert!(within(LONG, || exported(&archive) == i64::from(until)));
        assert!(within(LONG, || stored(&daemon) == 0), "{}", stored(&daemon));
        let health = daemon.get("/healthz");
        assert_eq!(health["store"]["archive_failure"], Value::Null, "{health}");
        daemon.kill();
    }
    let expected = ["day=2021-03-01", "day=2021-03-02", "day=2021-03-03"];
    assert!(days(&archive).iter().eq(expected), "{:?}", days(&archive));
}

#[test]
fn nothing_is_deleted_while_the_archive_fails() {
    let scratch = Scratch::new().unwrap();
    let archive = scratch.root().join("archive");
    append(&scratch, 0..10);
    let daemon = Daemon::start(&scratch, &[]);
    daemon.events("limit=100", 10);
    daemon.kill();
    let args = ["--archive", archive.to_str().unwrap()];
    let daemon = Daemon::start(&scratch, &args);
    assert!(within(LONG, || exported(&archive) == 10));
    daemon.kill();
    // A damaged state: it is not known what is in the archive.
    for path in files_below(&archive.join("_anyhook")) {
        if path.extension().is_some_and(|end| end == "json") {
            std::fs::write(path, "{").unwrap();
        }
    }
    let daemon = Daemon::start(&scratch, &["--retain", "1d", args[0], args[1]]);
    let failure = || daemon.get("/healthz")["store"]["archive_failure"].clone();
    assert!(within(LONG, || failure().is_string()), "{:?}", failure());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(stored(&daemon), 10);
}
