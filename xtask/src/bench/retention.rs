//! Hook calls and ingests while `serve` deletes 30 % of a large store: how long they take,
//! and whether each of them is stored.
//!
//! `--store FILE` takes a store that `cargo xtask bench store --only fill` has made, and
//! deletes from it; without it one is made (`--events N`).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Setup;
use super::daemon::DaemonProcess;
use crate::run::{cargo, run as run_command};

const DEFAULT_EVENTS: &str = "1000000";
/// The generated events are of 90 days: 30 % are older.
const KEPT_DAYS: &str = "63d";
const DEFAULT_SECONDS: &str = "60";
const CALLS_PER_SECOND: u64 = 200;
const INGESTS_PER_SECOND: u64 = 50;
/// Threads that share the calls.
const CALLERS: u64 = 8;
const MAX_P99_RATIO: f64 = 2.0;
const STORE_TIMEOUT: Duration = Duration::from_mins(2);

type Outcome<T> = Result<T, String>;

pub(super) fn run(setup: &Setup) -> Outcome<()> {
    let option = |name: &str, default: &str| {
        let at = setup.options.iter().position(|option| option == name);
        let value = at.and_then(|at| setup.options.get(at + 1));
        value.map_or_else(|| default.to_owned(), String::clone)
    };
    let setup = setup.beside("retention");
    fs::create_dir_all(&setup.folder).map_err(|error| error.to_string())?;
    let made = setup.folder.join("filled.db");
    let made = made.to_string_lossy();
    let store = option("--store", &made);
    if store == made {
        let mut fill = cargo();
        fill.args(["run", "--release", "--package", "anyhook-store"]);
        fill.args(["--example", "growth", "--", "--only", "fill", "--store"]);
        fill.args([&store, "--events", &option("--events", DEFAULT_EVENTS)]);
        run_command(&mut fill)?;
    }
    let seconds = option("--seconds", DEFAULT_SECONDS);
    let seconds = seconds.parse().map_err(|_| "--seconds N".to_owned())?;
    let length = Duration::from_secs(seconds);

    let (before, stored, _) = phase(&setup, &store, "before", &[], length)?;
    let (during, left, is_over) =
        phase(&setup, &store, "during", &["--retain", KEPT_DAYS], length)?;
    let deleted = stored.saturating_sub(left);
    let end = if is_over { "all of it" } else { "and goes on" };
    println!("{stored} events, {deleted} deleted in {seconds} s, {end}");
    println!("{:<34} {:>9} {:>9} {:>9}", "ms", "p50", "p99", "max");
    for (name, times) in [
        ("hook calls", &before.calls),
        ("hook calls, while it deletes", &during.calls),
        ("ingests", &before.ingests),
        ("ingests, while it deletes", &during.ingests),
    ] {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| percentile(times, share));
        println!("{name:<34} {p50:>9.2} {p99:>9.2} {max:>9.2}");
    }
    let ratio = percentile(&during.calls, 0.99) / percentile(&before.calls, 0.99);
    let verdict = if ratio <= MAX_P99_RATIO {
        "at most"
    } else {
        "ABOVE"
    };
    println!("p99 of hook calls {ratio:.2} times that without, {verdict} {MAX_P99_RATIO}");
    Ok(())
}

/// Milliseconds of every call, in order.
struct Times {
    calls: Vec<f64>,
    ingests: Vec<f64>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a few thousand times"
)]
fn percentile(times: &[f64], share: f64) -> f64 {
    let rank = (times.len() as f64 * share).ceil() as usize;
    times.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// Calls a daemon at a fixed rate. Returns the times, the events in the store at the end that
/// were there before, and whether retention had nothing left to do.
fn phase(
    setup: &Setup,
    store: &str,
    name: &str,
    more: &[&str],
    length: Duration,
) -> Outcome<(Times, u64, bool)> {
    let daemon = Daemon::start(setup, store, more)?;
    let (calls, ingests) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let session = |kind: &str| format!("{kind}-{name}");
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (daemon, calls, session) = (&daemon, &calls, session("call"));
                let each = move || {
                    let number = calls.fetch_add(1, Ordering::Relaxed);
                    daemon.hook_call(&session, number)
                };
                scope.spawn(move || at_rate(caller, CALLERS, CALLS_PER_SECOND, length, each))
            })
            .collect();
        let sender = scope.spawn(|| {
            let session = session("ingest");
            at_rate(0, 1, INGESTS_PER_SECOND, length, || {
                let number = ingests.fetch_add(1, Ordering::Relaxed);
                daemon.ingest(&session, number)
            })
        });
        let mut calls = Vec::new();
        for thread in threads {
            calls.extend(joined(thread)?);
        }
        let mut ingests = joined(sender)?;
        calls.sort_by(f64::total_cmp);
        ingests.sort_by(f64::total_cmp);
        Ok::<_, String>(Times { calls, ingests })
    })?;
    if !more.is_empty() {
        let before = daemon.stored()?;
        std::thread::sleep(Duration::from_secs(2));
        is_over.store(daemon.stored()? >= before, Ordering::Relaxed);
    }
    let mut own = 0;
    for (kind, sent) in [("call", &calls), ("ingest", &ingests)] {
        let sent = sent.load(Ordering::Relaxed);
        daemon.wait_for_session(&session(kind), sent)?;
        println!("{sent} {kind}s {name}: each is stored");
        own += sent;
    }
    let stored = daemon.stored()?.saturating_sub(own);
    Ok((times, stored, is_over.into_inner()))
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Outcome<T>>) -> Outcome<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err("a thread has panicked".to_owned()))
}

/// Calls at fixed times, of which `first` of every `all` are this thread's.
fn at_rate(
    first: u64,
    all: u64,
    per_second: u64,
    length: Duration,
    each: impl Fn() -> Outcome<()>,
) -> Outcome<Vec<f64>> {
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut number = first;
    loop {
        let due = Duration::from_nanos(number * 1_000_000_000 / per_second);
        if due >= length {
            return Ok(times);
        }
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let called = Instant::now();
        each()?;
        times.push(called.elapsed().as_secs_f64() * 1e3);
        number += all;
    }
}

/// What is sent to a running `anyhook serve`.
struct Daemon {
    process: DaemonProcess,
    token: String,
}

impl Daemon {
    fn start(setup: &Setup, store: &str, more: &[&str]) -> Outcome<Self> {
        let process = DaemonProcess::start(setup, &[&["--store", store], more].concat())?;
        let token = fs::read_to_string(setup.folder.join("state/token"));
        let token = token.map_err(|error| format!("the daemon's token: {error}"))?;
        Ok(Self {
            process,
            token: token.trim().to_owned(),
        })
    }

    fn address(&self) -> &str {
        self.process.url.trim_start_matches("http://")
    }

    fn hook_call(&self, session: &str, number: u64) -> Outcome<()> {
        let payload = format!(
            r#"{{"session_id":"{session}","cwd":"/","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"echo {number}"}},"tool_use_id":"toolu_{session}_{number}"}}"#
        );
        self.send("POST", "/hooks/claude-code", "application/json", &payload)?;
        Ok(())
    }

    fn ingest(&self, session: &str, number: u64) -> Outcome<()> {
        let line = format!(
            r#"{{"v":1,"id":"{session}-{number}","time":"2030-01-01T00:00:00.000Z","kind":"event","agent":"codex","event":{{"event":"before_prompt","source":"codex","session_id":"{session}","data":{{"prompt":"step {number}"}}}},"duration_ms":0.5}}"#
        );
        self.send("POST", "/ingest", "application/x-ndjson", &line)?;
        Ok(())
    }

    fn json(&self, path: &str) -> Outcome<Value> {
        let body = self.send("GET", path, "application/json", "")?;
        serde_json::from_str(&body).map_err(|error| format!("{path}: {error}"))
    }

    fn stored(&self) -> Outcome<u64> {
        let stats = self.json("/stats")?;
        let events = stats.get("events").and_then(Value::as_u64);
        events.ok_or_else(|| "/stats has no `events`".to_owned())
    }

    /// Until a session has that many events; one more is an error as well.
    fn wait_for_session(&self, session: &str, events: u64) -> Outcome<()> {
        let begun = Instant::now();
        loop {
            let found = self.json(&format!("/sessions/{session}?limit=1"));
            let found = found.map(|found| found.pointer("/session/events").and_then(Value::as_u64));
            if matches!(found, Ok(Some(found)) if found == events) {
                return Ok(());
            }
            if begun.elapsed() > STORE_TIMEOUT {
                return Err(format!("{session}: {events} were sent, stored {found:?}"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn send(&self, method: &str, path: &str, form: &str, body: &str) -> Outcome<String> {
        let exchange = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address())?;
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: {form}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                self.address(),
                self.token,
                body.len()
            );
            stream.write_all((head + body).as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = exchange().map_err(|error| format!("{path}: {error}"))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => Err(format!("{path}: {answer}")),
        }
    }
}
