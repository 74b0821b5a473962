//! `anyhook export otlp` when the receiver is away, slow or picky, and when the exporter is
//! killed: every span arrives, none twice under another id.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhook_testkit::{Scratch, wait_until};
use serde_json::json;

use crate::receiver::{Answer, Receiver, attributes};
use crate::sessions::{BIN, agents, anyhook, record_sessions};

fn spans_of_sessions() -> usize {
    5 * agents().count()
}

fn span_ids(receiver: &Receiver) -> BTreeSet<Vec<u8>> {
    let spans = receiver.received().spans;
    spans.into_iter().map(|span| span.span_id).collect()
}

/// A process that ends with the test.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The exporter as a process of its own.
fn start(scratch: &Scratch, args: &[&str]) -> Exporter {
    let mut command = Command::new(BIN);
    command
        .args(["export", "otlp"])
        .args(args)
        .env_clear()
        .env("HOME", scratch.home())
        .env("ANYHOOK_CONFIG_DIR", scratch.config())
        .env("ANYHOOK_STATE_DIR", scratch.state())
        .env("ANYHOOK_MANAGED_DIR", scratch.managed())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Exporter(command.spawn().unwrap())
}

#[test]
fn a_receiver_that_is_down_gets_everything_when_it_is_back() {
    let scratch = record_sessions();
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{address}");
    // One try after the other fails; without --follow it says so.
    let output = anyhook(&scratch, &["export", "otlp", "--endpoint", &url]);
    assert_eq!(output.exit, Some(1), "{output:?}");
    assert!(output.stderr.contains("is not available"), "{output:?}");
    let _exporter = start(&scratch, &["--endpoint", &url, "--follow"]);
    std::thread::sleep(Duration::from_millis(300));
    let receiver = Receiver::start_at(address, |_, _, _| Answer::Accept);
    wait_until("all spans have arrived", || {
        span_ids(&receiver).len() == spans_of_sessions()
    });
}

#[test]
fn a_busy_receiver_is_asked_again_when_it_wants() {
    let scratch = record_sessions();
    let receiver = Receiver::start_with(|_, received, _| match received.requests {
        1 => Answer::RetryAfter(429, 1),
        2 => Answer::Status(503),
        _ => Answer::Accept,
    });
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("trying again in 1.0 s"),
        "{output:?}"
    );
    assert_eq!(receiver.received().spans.len(), spans_of_sessions());
}

#[test]
fn one_span_that_is_refused_does_not_cost_the_others() {
    let scratch = record_sessions();
    let receiver = Receiver::start_with(|_, _, spans| {
        let is_bad = spans
            .iter()
            .any(|span| span.name == "execute_tool apply_patch");
        if is_bad {
            Answer::Status(400)
        } else {
            Answer::Accept
        }
    });
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("rejected 1 item of the traces"),
        "{output:?}"
    );
    assert_eq!(receiver.received().spans.len(), spans_of_sessions() - 1);
    // It is not sent again and again.
    let requests = receiver.received().requests;
    assert_eq!(anyhook(&scratch, &args).exit, Some(0));
    assert_eq!(receiver.received().requests, requests);
}

#[test]
fn a_partial_success_is_told_and_not_repeated() {
    let scratch = record_sessions();
    let receiver = Receiver::start_with(|path, _, _| match path {
        "/v1/traces" => Answer::Partial(2),
        _ => Answer::Accept,
    });
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert!(
        output
            .stderr
            .contains("rejected 2 items of the traces: too old"),
        "{output:?}"
    );
    assert_eq!(receiver.received().spans.len(), spans_of_sessions());
}

#[test]
fn a_receiver_that_refuses_everything_costs_nothing() {
    let scratch = record_sessions();
    for status in [400, 401, 403, 404, 415] {
        let receiver = Receiver::start_with(move |_, _, _| Answer::Status(status));
        let url = receiver.url();
        let args = ["export", "otlp", "--cursor", "one", "--endpoint", &url];
        let output = anyhook(&scratch, &args);
        assert_eq!(output.exit, Some(1), "{status}: {output:?}");
        let said = format!("status {status}");
        assert!(output.stderr.contains(&said), "{output:?}");
    }
    let receiver = Receiver::start();
    let url = receiver.url();
    let idle = ["export", "otlp", "--cursor", "one", "--close-turns"];
    let output = anyhook(&scratch, &[&idle[..], &["--endpoint", &url]].concat());
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert_eq!(receiver.received().spans.len(), spans_of_sessions());
}

#[test]
fn a_receiver_that_takes_only_traces_gets_traces() {
    let scratch = record_sessions();
    let receiver = Receiver::start_with(|path, _, _| match path {
        "/v1/traces" => Answer::Accept,
        _ => Answer::Status(405),
    });
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert!(output.stderr.contains("does not take logs"), "{output:?}");
    assert_eq!(receiver.received().spans.len(), spans_of_sessions());
}

#[test]
fn a_receiver_that_took_logs_before_is_waited_for() {
    let scratch = record_sessions();
    let receiver = Receiver::start_with(|path, received, _| match path {
        // The first traces and logs are taken; then something in front of it answers.
        _ if matches!(received.requests, 4..7) => Answer::Status(404),
        _ => Answer::Accept,
    });
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    assert_eq!(anyhook(&scratch, &args).exit, Some(0));
    let before = receiver.received();
    assert_eq!(before.requests, 3);
    let line = journal_line("later", "2026-11-18T00:00:00Z");
    let path = scratch.state().join("journal/events.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, journal + &line).unwrap();
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert!(output.stderr.contains("status 404"), "{output:?}");
    assert!(!output.stderr.contains("does not take"), "{output:?}");
    assert_eq!(receiver.received().logs.len(), before.logs.len() + 1);
}

/// An event outside of turns.
fn journal_line(id: &str, time: &str) -> String {
    let line = json!({
        "v": 1, "id": id, "kind": "event", "agent": "claude-code", "time": time, "duration_ms": 1.0,
        "event": {"event": "notification", "native_event": "Notification", "source": "claude-code",
                  "session_id": "s", "data": {}},
        "response": {}, "hooks": [],
    });
    format!("{line}\n")
}

#[test]
fn a_journal_that_lost_its_end_or_its_files_is_read_again() {
    let scratch = Scratch::new().unwrap();
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("events.jsonl");
    let lines = |ids: &[&str]| -> String {
        ids.iter()
            .map(|id| journal_line(id, "2026-11-18T00:00:00Z"))
            .collect()
    };
    let receiver = Receiver::start();
    let url = receiver.url();
    let export = || {
        let output = anyhook(&scratch, &["export", "otlp", "--endpoint", &url]);
        assert_eq!(output.exit, Some(0), "{output:?}");
        let logs = receiver.received().logs;
        let ids: BTreeSet<String> = logs
            .iter()
            .map(|log| attributes(&log.attributes)["log.record.uid"].to_string())
            .collect();
        (ids.len(), output.stderr)
    };
    std::fs::write(&path, lines(&["a", "b", "c", "d"])).unwrap();
    assert_eq!(export().0, 4);
    // After a power failure, when the position was on the disk and the events were not.
    std::fs::write(&path, lines(&["a", "b", "e"])).unwrap();
    let (count, stderr) = export();
    assert_eq!(count, 5, "{stderr}");
    assert!(!stderr.contains("were removed"), "{stderr}");
    // Everything that was known is gone.
    std::fs::write(&path, lines(&["f", "g"])).unwrap();
    let (count, stderr) = export();
    assert_eq!(count, 7, "{stderr}");
    assert!(stderr.contains("were removed"), "{stderr}");
}

#[test]
fn what_is_open_is_bounded_whatever_agents_write() {
    let scratch = Scratch::new().unwrap();
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "x".repeat(16_000);
    let mut journal = String::new();
    for session in 0..400 {
        let line = json!({
            "v": 1, "id": format!("p{session}"), "kind": "event", "agent": "claude-code",
            "time": "2026-11-18T00:00:00Z", "duration_ms": 1.0,
            "event": {"event": "before_prompt", "native_event": "UserPromptSubmit",
                      "source": "claude-code", "session_id": format!("s{session}"),
                      "data": {"prompt": text}},
            "response": {}, "hooks": [],
        });
        writeln!(journal, "{line}").unwrap();
    }
    std::fs::write(folder.join("events.jsonl"), journal).unwrap();
    let receiver = Receiver::start();
    let url = receiver.url();
    let args = ["export", "otlp", "--content", "full", "--cursor", "x"];
    let args = [&args[..], &["--turn-idle", "9999d", "--endpoint", &url]].concat();
    assert_eq!(anyhook(&scratch, &args).exit, Some(0));
    let state = scratch.state().join("export/otlp-x.json");
    let size = std::fs::metadata(state).unwrap().len();
    assert!(size < 5 * 1024 * 1024, "{size} bytes");
    assert_eq!(
        anyhook(&scratch, &[&args[..], &["--close-turns"]].concat()).exit,
        Some(0)
    );
    assert_eq!(span_ids(&receiver).len(), 400);
}

#[test]
fn a_receiver_that_hangs_is_asked_again() {
    let scratch = record_sessions();
    scratch
        .file(
            scratch.config().join("config.yaml"),
            "otlp: {timeout_seconds: 1}\n",
        )
        .unwrap();
    let receiver = Receiver::start_with(|_, received, _| match received.requests {
        1 => Answer::Hang,
        _ => Answer::Accept,
    });
    let url = receiver.url();
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    assert_eq!(receiver.received().spans.len(), spans_of_sessions());
}

#[test]
fn two_exports_do_not_share_a_position() {
    let scratch = record_sessions();
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{address}");
    let args = ["export", "otlp", "--cursor", "x", "--endpoint", &url];
    let _first = start(&scratch, &["--cursor", "x", "--endpoint", &url, "--follow"]);
    let lock = scratch.state().join("export/otlp-x.json.lock");
    wait_until("the first export runs", || lock.exists());
    wait_until("the second export is refused", || {
        let output = anyhook(&scratch, &args);
        output.stderr.contains("another export uses the position")
    });
}

/// A journal of calls in many sessions, four lines each: prompt, before, after, stop. Each
/// turn calls the model once.
fn write_journal(scratch: &Scratch, events: usize) {
    let mut text = String::new();
    let mut calls = String::new();
    for n in 0..events {
        let turn = n / 4;
        let (event, native) = [
            ("before_prompt", "UserPromptSubmit"),
            ("before_tool_execute", "PreToolUse"),
            ("after_tool_execute", "PostToolUse"),
            ("agent_stop", "Stop"),
        ][n % 4];
        let seconds = 1_790_000_000 + n;
        if n % 4 == 1 {
            let call = json!({
                "id": format!("m{turn}"), "time_us": seconds * 1_000_000, "agent": "claude-code",
                "session": format!("s{}", turn % 7), "model": "claude-sonnet-4-5",
                "in": 10, "out": 1, "cache_read": 0, "cache_creation": 0,
            });
            writeln!(calls, "{call}").unwrap();
        }
        let line = json!({
            "v": 1, "id": format!("record-{n}"), "kind": "event", "agent": "claude-code",
            "time": jiff_time(seconds), "duration_ms": 2.5,
            "event": {
                "event": event, "native_event": native, "source": "claude-code",
                "session_id": format!("s{}", turn % 7),
                "data": {"tool_name": "file_read", "native_tool_name": "Read",
                         "tool_call_id": format!("t{turn}"), "tool_input": {"path": "/a"}},
            },
            "response": {},
            "hooks": [{"hook": "guard", "manifest": "/m", "outcome": "allow", "duration_ms": 1.0}],
        });
        writeln!(text, "{line}").unwrap();
    }
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("events.jsonl"), text).unwrap();
    let folder = scratch.state().join("usage");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("calls-2026-09.jsonl"), calls).unwrap();
}

fn jiff_time(seconds: usize) -> String {
    anyhook_util::time::rfc3339_millis(i64::try_from(seconds).unwrap() * 1000).unwrap()
}

/// Kills the exporter at different moments until it has sent everything.
fn kill_and_restart(events: usize, kills: u32) {
    let scratch = Scratch::new().unwrap();
    write_journal(&scratch, events);
    let receiver = Receiver::start();
    let url = receiver.url();
    for round in 0..kills {
        let exporter = start(&scratch, &["--endpoint", &url, "--follow"]);
        // From right after the start to several batches later.
        std::thread::sleep(Duration::from_millis(u64::from(5 + 13 * (round % 11))));
        drop(exporter);
    }
    let args = ["export", "otlp", "--close-turns", "--endpoint", &url];
    let output = anyhook(&scratch, &args);
    assert_eq!(output.exit, Some(0), "{output:?}");
    // A turn, a tool call, a call of the model, and a hook for each event.
    let received = receiver.received();
    let mut spans = BTreeMap::new();
    for span in received.spans {
        let id = span.span_id.clone();
        if let Some(known) = spans.insert(id, span.clone()) {
            assert_eq!(known, span, "the same id is another span");
        }
    }
    assert_eq!(spans.len(), events / 4 * 3 + events);
    let logs: BTreeSet<String> = received
        .logs
        .iter()
        .map(|log| attributes(&log.attributes)["log.record.uid"].to_string())
        .collect();
    assert_eq!(logs.len(), events);
}

#[test]
fn a_killed_exporter_loses_and_doubles_nothing() {
    kill_and_restart(4000, 6);
}

#[test]
#[ignore = "takes minutes: the long form of the test above, run by hand and before a release"]
fn an_exporter_that_is_killed_fifty_times_loses_and_doubles_nothing() {
    kill_and_restart(20_000, 50);
}
