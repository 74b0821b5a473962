//! What the daemon costs, as ratios: hook calls against a bare handler of the same
//! framework, ingest against plain batched inserts, memory over many requests.
//!
//! `cargo run --release -p anyhook-daemon --example load [REQUESTS]` prints one JSON object.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a measuring program"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhook_daemon::{AgentName, Config, Daemon, HookHost, HookReply, HookRequest};
use anyhook_model::{Answer, HookEvent, HookResponse, HookRun, Record};
use anyhook_store::{EventRow, SqliteStore, Store};
use serde_json::json;

const CLIENTS: usize = 8;

/// Decides without running anything: what is left is the daemon.
struct Host {
    response: HookResponse,
}

impl HookHost for Host {
    fn agents(&self) -> Vec<AgentName> {
        vec![AgentName {
            slug: "claude-code".to_owned(),
            aliases: vec!["claude".to_owned()],
        }]
    }

    fn handle(&self, _: HookRequest) -> HookReply {
        HookReply {
            answer: Answer {
                stdout: "{}".to_owned(),
                ..Answer::default()
            },
            response: self.response.clone(),
            ..HookReply::default()
        }
    }
}

fn main() {
    let requests: usize = std::env::args()
        .nth(1)
        .map_or(20_000, |count| count.parse().unwrap());
    let body = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/p",
        "tool_name": "Bash", "tool_input": {"command": "ls -la"}})
    .to_string();
    let echo = measure(bare(), "/echo", &body, requests);
    let (noop, flat) = daemon(HookResponse::default(), &body, requests);
    let (deciding, _) = daemon(HookResponse::deny("no"), &body, requests);
    let (plain, ingest) = inserts();
    println!(
        "{}",
        json!({
            "requests": requests,
            "echo": echo.to_json(),
            "noop": noop.to_json(),
            "deciding": deciding.to_json(),
            "noop_to_echo": noop.rate / echo.rate,
            "deciding_to_echo": deciding.rate / echo.rate,
            "resident_kib": {"after_a_tenth": flat.0, "at_the_end": flat.1},
            "plain_inserts_per_second": plain,
            "ingest_per_second": ingest,
            "ingest_to_plain": ingest / plain,
        })
    );
}

/// The same framework, the same connection handling, nothing else.
fn bare() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let echo = |body: axum::Json<serde_json::Value>| async { body };
            let router = axum::Router::new().route("/echo", axum::routing::post(echo));
            axum::serve(listener, router).await.unwrap();
        });
    });
    address
}

fn daemon(response: HookResponse, body: &str, requests: usize) -> (Measured, (u64, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&dir.path().join("store.db")).unwrap());
    let mut config = Config::new("token-of-the-measuring-program");
    config.listen = ([127, 0, 0, 1], 0).into();
    let daemon = Daemon::bind(config, store, Arc::new(Host { response })).unwrap();
    let (address, stopper) = (daemon.local_addr(), daemon.stopper());
    let thread = std::thread::spawn(move || daemon.run().unwrap());
    measure(address, "/hooks/claude", body, requests / 10);
    let early = resident_kib();
    let measured = measure(address, "/hooks/claude", body, requests);
    let late = resident_kib();
    stopper.stop();
    thread.join().unwrap();
    (measured, (early, late))
}

struct Measured {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

impl Measured {
    fn to_json(&self) -> serde_json::Value {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        json!({"per_second": self.rate, "p50_ms": ms(self.p50), "p99_ms": ms(self.p99)})
    }
}

fn measure(address: SocketAddr, path: &str, body: &str, requests: usize) -> Measured {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let each = requests / CLIENTS;
    let begun = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| client(address, request.as_bytes(), each)))
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    let took = begun.elapsed().as_secs_f64();
    times.sort_unstable();
    Measured {
        rate: times.len() as f64 / took,
        p50: times[times.len() / 2],
        p99: times[times.len() * 99 / 100],
    }
}

/// One kept connection, one request after another.
fn client(address: SocketAddr, request: &[u8], count: usize) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    (0..count)
        .map(|_| {
            let begun = Instant::now();
            stream.write_all(request).unwrap();
            let mut filled = 0;
            loop {
                filled += stream.read(&mut buffer[filled..]).unwrap();
                if complete(&buffer[..filled]) {
                    break;
                }
            }
            begun.elapsed()
        })
        .collect()
}

fn complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    assert!(head.starts_with("HTTP/1.1 200"), "{text}");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}

/// Rows per second: the same columns and indexes by plain statements, and journal lines by the store.
fn inserts() -> (f64, f64) {
    const BATCHES: usize = 20;
    const ROWS: usize = 1000;
    let lines: Vec<Vec<String>> = (0..BATCHES)
        .map(|batch| {
            (0..ROWS)
                .map(|row| line(&format!("{batch}-{row}")))
                .collect()
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain.db");
    drop(SqliteStore::open(&path).unwrap());
    let mut raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "synchronous", "FULL").unwrap();
    let parsed: Vec<Vec<EventRow>> = lines
        .iter()
        .map(|batch| {
            batch
                .iter()
                .filter_map(|line| EventRow::from_line(line))
                .collect()
        })
        .collect();
    let begun = Instant::now();
    for batch in &parsed {
        let transaction = raw.transaction().unwrap();
        {
            let mut event = transaction
                .prepare_cached(
                    "INSERT INTO anyhook_events (id, time_us, kind, agent, event, type, session_id, tool, duration_ms, hooks, bytes, text, body) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?11, ?12)",
                )
                .unwrap();
            let mut run = transaction
                .prepare_cached(
                    "INSERT INTO anyhook_runs VALUES (?1, 0, 'guard', 'm', 'allow', 1.0)",
                )
                .unwrap();
            for row in batch {
                event
                    .execute(rusqlite::params![
                        row.id,
                        row.time_us,
                        row.kind,
                        row.agent,
                        row.event,
                        row.unified,
                        row.session_id,
                        row.tool,
                        row.duration_ms,
                        row.bytes(),
                        row.text,
                        row.body
                    ])
                    .unwrap();
                run.execute([transaction.last_insert_rowid()]).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    let plain = (BATCHES * ROWS) as f64 / begun.elapsed().as_secs_f64();

    let store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
    let begun = Instant::now();
    for batch in &lines {
        let rows: Vec<_> = batch
            .iter()
            .filter_map(|line| EventRow::from_line(line))
            .collect();
        Store::insert(&store, &rows, None).unwrap();
    }
    let ingest = (BATCHES * ROWS) as f64 / begun.elapsed().as_secs_f64();
    (plain, ingest)
}

fn line(id: &str) -> String {
    let record = Record {
        v: 1,
        id: id.to_owned(),
        time: "2026-03-01T10:00:00Z".to_owned(),
        agent: "claude-code".to_owned(),
        event: HookEvent {
            event: "before_tool_execute".to_owned(),
            source: "claude-code".to_owned(),
            native_event: "PreToolUse".to_owned(),
            session_id: Some("s".to_owned()),
            data:
                json!({"tool_name": "shell", "tool_input": {"command": "cargo test --workspace"}})
                    .as_object()
                    .unwrap()
                    .clone(),
            ..HookEvent::default()
        },
        hooks: vec![HookRun::default()],
        ..Record::default()
    };
    serde_json::to_string(&record).unwrap()
}

/// 0 where the system does not say.
fn resident_kib() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}
