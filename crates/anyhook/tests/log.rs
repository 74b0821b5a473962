//! `log`, `tail`, `stats` and `replay` on a journal that was made for them, with
//! and without a store.

#![cfg(test)]

mod serve_support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhook_testkit::Scratch;
use serde_json::{Value, json};
use serve_support::{Daemon, anyhook, command, within};

const ROTATED: &str = "events-20260301T100000000-1-0.jsonl";

fn record(n: u32) -> Value {
    let is_denied = n.is_multiple_of(4);
    let agent = if n.is_multiple_of(3) {
        "codex"
    } else {
        "claude-code"
    };
    json!({
        "v": 1, "id": format!("01900000-0000-7000-8000-{n:012}"), "kind": "event",
        "time": format!("2026-03-01T10:{:02}:{:02}.000Z", n / 60, n % 60), "agent": agent,
        "event": {
            "event": "before_tool_execute", "source": agent, "native_event": "PreToolUse",
            "session_id": format!("s{}", n % 2), "cwd": "/nowhere",
            "data": {"tool_name": "shell", "tool_input": {"command": format!("echo {n}\nmore")}}
        },
        "decision": if is_denied { json!("deny") } else { Value::Null },
        "response": if is_denied { json!({"decision": "deny", "reason": format!("no {n}\u{1b}[2J")}) } else { json!({}) },
        "hooks": [{
            "hook": "guard", "manifest": "/p/.anyhook/hooks.yaml",
            "outcome": if is_denied { "deny" } else { "allow" }, "duration_ms": f64::from(n)
        }],
        "answer": {"stdout": "{\"x\":1}\n", "exit": 0},
        "duration_ms": f64::from(n) * 100.0
    })
}

fn append(scratch: &Scratch, file: &str, text: &str) {
    let folder = scratch.state().join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .append(true)
        .open(folder.join(file))
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Twenty events in a rotated file, ten in the current one.
fn made() -> Scratch {
    let scratch = Scratch::new().unwrap();
    for n in 0..30 {
        let file = if n < 20 { ROTATED } else { "events.jsonl" };
        append(&scratch, file, &format!("{}\n", record(n)));
    }
    append(&scratch, "events.jsonl", "{\"torn");
    scratch
}

fn lines(scratch: &Scratch, args: &[&str]) -> Vec<Value> {
    let ran = anyhook(scratch, args, "");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn ids(found: &[Value]) -> Vec<u32> {
    found
        .iter()
        .map(|event| {
            event["id"]
                .as_str()
                .unwrap()
                .split_at(24)
                .1
                .parse()
                .unwrap()
        })
        .collect()
}

#[test]
fn log_filters_and_orders() {
    let scratch = made();
    let ask = |more: &[&str]| {
        let mut args = vec!["log", "--json"];
        args.extend(more);
        ids(&lines(&scratch, &args))
    };
    let both = || {
        assert_eq!(ask(&["-n", "3"]), [29, 28, 27]);
        assert_eq!(ask(&["-n", "12"]).len(), 12);
        assert_eq!(
            ask(&["--decision", "deny", "--agent", "codex"]),
            [24, 12, 0]
        );
        assert_eq!(ask(&["--text", "ECHO 17"]), [17]);
        assert_eq!(
            ask(&["--event", "BEFORE_TOOL", "--session", "s1", "-n", "2"]),
            [29, 27]
        );
        assert_eq!(
            ask(&[
                "--since",
                "2026-03-01T10:00:05Z",
                "--until",
                "2026-03-01T10:00:07Z"
            ]),
            [6, 5]
        );
        assert!(ask(&["--since", "1h"]).is_empty());
        let stats = lines_of_stats(&scratch);
        assert_eq!(stats["events"], 30);
        assert_eq!(stats["denials"], 8);
        stats
    };
    let from_journal = both();
    // A daemon makes a store; what is asked comes from there, and says the same.
    drop(Daemon::start(&scratch, &[]));
    append(&scratch, "events.jsonl", "\n");
    assert_eq!(both(), from_journal);
    append(&scratch, "events.jsonl", &format!("{}\n", record(30)));
    assert_eq!(ask(&["-n", "1"]), [30], "the store is brought up to date");
}

fn lines_of_stats(scratch: &Scratch) -> Value {
    anyhook(scratch, &["stats", "--json"], "").json().unwrap()
}

#[test]
fn log_for_people() {
    let scratch = made();
    let ran = anyhook(&scratch, &["log", "-n", "2"], "");
    assert_eq!(
        ran.stdout,
        "2026-03-01 10:00:29  claude-code    -          2.9s  before_tool_execute  shell echo 29  00000029\n\
         2026-03-01 10:00:28  claude-code    deny       2.8s  before_tool_execute  shell echo 28 (no 28\\u{1b}[2J)  00000028\n"
    );
    let ran = anyhook(&scratch, &["log", "000028"], "");
    for part in [
        "decision  deny",
        "reason    no 28\\u{1b}[2J",
        "hook      guard: deny, 28ms, /p/.anyhook/hooks.yaml",
        "stdout    {\"x\":1}",
        "\"command\": \"echo 28\\nmore\"",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    for (id, why) in [
        ("nothing", "no event has the id"),
        ("8", "several event ids end with"),
    ] {
        let ran = anyhook(&scratch, &["log", id], "");
        assert_eq!(ran.exit, Some(1));
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    let ran = anyhook(&scratch, &["log", "--decision", "maybe"], "");
    assert_eq!(ran.exit, Some(2));
    let empty = Scratch::new().unwrap();
    let ran = anyhook(&empty, &["log"], "");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), ""));
}

#[test]
fn stats_for_people() {
    let ran = anyhook(&made(), &["stats"], "");
    let squeezed: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "30 events in 4 sessions: 8 denied, 0 asked, 0 anyhook failures",
        "claude-code 20 5 0 1.4s 2.8s 2.9s 2.9s",
        "guard codex 10 3 0 12ms 27ms 27ms 27ms /p/.anyhook/hooks.yaml",
        "before_tool_execute 30 8",
    ] {
        assert!(
            squeezed.iter().any(|it| it == line),
            "{line}\n{}",
            ran.stdout
        );
    }
}

struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(scratch: &Scratch, args: &[&str]) -> Self {
        let mut child = command(scratch, args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    fn next(&self) -> u32 {
        let line = self.lines.recv_timeout(Duration::from_secs(20)).unwrap();
        ids(&[serde_json::from_str(&line).unwrap()])[0]
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn tail_follows_rotation() {
    let scratch = made();
    assert_eq!(
        ids(&lines(&scratch, &["tail", "--json", "-n", "2"])),
        [28, 29]
    );
    let tail = Following::start(&scratch, &["tail", "-f", "--json", "-n", "1"]);
    assert_eq!(tail.next(), 29);
    // The torn line ends, as no record.
    append(&scratch, "events.jsonl", &format!("\n{}\n", record(30)));
    assert_eq!(tail.next(), 30);
    append(&scratch, "events.jsonl", &format!("{}\n", record(31)));
    let folder = scratch.state().join("journal");
    let full = folder.join("events-20260301T110000000-1-0.jsonl");
    std::fs::rename(folder.join("events.jsonl"), full).unwrap();
    append(&scratch, "events.jsonl", &format!("{}\n", record(32)));
    assert_eq!((tail.next(), tail.next()), (31, 32));
    assert!(tail.lines.try_recv().is_err(), "nothing comes twice");
}

#[test]
fn tail_of_a_store_and_an_end() {
    let scratch = made();
    let store = scratch.state().join("other.db");
    let store = store.to_str().unwrap();
    let _daemon = Daemon::start(&scratch, &["--store", store]);
    let ready = || lines(&scratch, &["log", "--json", "--store", store]).len() == 30;
    assert!(within(Duration::from_secs(20), ready));
    let mut tail = Following::start(
        &scratch,
        &["tail", "-f", "--json", "-n", "1", "--store", store],
    );
    assert_eq!(tail.next(), 29);
    append(&scratch, "events.jsonl", &format!("\n{}\n", record(30)));
    assert_eq!(tail.next(), 30);
    // Nobody reads any more: it ends by itself at the next event.
    drop(std::mem::replace(&mut tail.lines, channel().1));
    let mut n = 31;
    let ended = within(Duration::from_secs(20), || {
        append(&scratch, "events.jsonl", &format!("{}\n", record(n)));
        n += 1;
        tail.child.try_wait().unwrap().is_some()
    });
    assert!(ended, "it writes to nobody");
}

fn hooks(scratch: &Scratch, text: &str) {
    scratch.file(".anyhook/hooks.yaml", text).unwrap();
}

#[test]
fn replay_against_a_changed_manifest() {
    let scratch = Scratch::new().unwrap();
    let guard = |matcher: &str, decision: &str| {
        format!(
            "spec: hooks/1.0\nhooks:\n  - name: guard\n    event: before_tool_execute\n    matcher: {matcher}\n    blocking: true\n    handler: {{ type: command, command: \"touch ran; echo '{{\\\"decision\\\":\\\"{decision}\\\",\\\"reason\\\":\\\"so\\\"}}'\" }}\n"
        )
    };
    hooks(&scratch, &guard("shell", "deny"));
    let call = |tool: &str| {
        let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": scratch.project(),
            "tool_name": tool, "tool_input": {"command": "ls", "file_path": "/x"}});
        anyhook(
            &scratch,
            &["run", "--agent", "claude"],
            &payload.to_string(),
        );
    };
    call("Bash");
    call("Read");
    let ran = scratch.project().join("ran");
    std::fs::remove_file(&ran).unwrap();
    let replay = |more: &[&str]| {
        let mut args = vec!["replay", "--json"];
        args.extend(more);
        let done = anyhook(&scratch, &args, "");
        (done.exit, done.json().unwrap())
    };
    let (exit, report) = replay(&["--run"]);
    assert_eq!((exit, &report["different"]), (Some(0), &json!([])));
    assert_eq!(report["events"], 2);
    std::fs::remove_file(&ran).unwrap();

    hooks(&scratch, &guard("file_read", "deny"));
    let (exit, report) = replay(&[]);
    assert_eq!(exit, Some(1));
    assert!(!ran.exists(), "nothing runs unless asked");
    let different = report["different"].as_array().unwrap();
    assert_eq!(different[0]["fewer"][0]["hook"], "guard", "{report}");
    assert_eq!(different[1]["more"], json!(["guard"]), "{report}");
    let shown = anyhook(&scratch, &["replay"], "");
    assert!(
        shown.stdout.contains("- guard would not run now: "),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("+ guard would run now"), "{shown:?}");
    assert!(
        shown
            .stdout
            .ends_with("2 of 2 events would be different.\n"),
        "{shown:?}"
    );

    hooks(&scratch, &guard("shell", "allow"));
    let (exit, report) = replay(&["--run", "--decision", "deny"]);
    assert_eq!(exit, Some(1));
    let decision = &report["different"][0]["decision"];
    assert_eq!(
        (&decision["then"], &decision["now"]),
        (&json!("deny"), &json!("allow")),
        "{report}"
    );

    // Another project's hooks, on the same events.
    let other = scratch
        .file("other/.anyhook/hooks.yaml", &guard("shell", "deny"))
        .unwrap();
    let other = other.parent().unwrap().parent().unwrap().to_str().unwrap();
    let (exit, report) = replay(&["--run", "--project", other]);
    assert_eq!(
        (exit, &report["different"]),
        (Some(0), &json!([])),
        "{report}"
    );
    let journal = serve_support::journal(&scratch);
    assert_eq!(journal.len(), 2, "a replay is not recorded");
}
