//! What the daemon costs, as ratios: hook calls against a bare handler of the same
//! framework, ingest against plain batched inserts, memory over many requests.
//!
//! `cargo run --release -p anyhook-daemon --example load [REQUESTS [ANYHOOK]]` prints one JSON
//! object. With the path of an `anyhook` its real engine is measured, too. Baseline and
//! candidates are processes of their own and take turns, so that what disturbs one disturbs the
//! others; the best round counts.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a measuring program"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhook_daemon::{
    AgentName, Daemon, DaemonConfig, HookHost, HookReply, HookRequest, PreparedCall,
};
use anyhook_model::{Answer, Decision, HookEvent, HookResponse, HookRun, Record};
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

    fn prepare(self: Arc<Self>, _: HookRequest) -> Box<dyn PreparedCall> {
        Box::new(Call(self.response.decision))
    }
}

struct Call(Option<Decision>);

impl PreparedCall for Call {
    fn is_quiet(&self) -> bool {
        false
    }

    fn undecoded(&self) -> Option<&[u8]> {
        None
    }

    fn run(self: Box<Self>) -> HookReply {
        HookReply {
            answer: Answer {
                stdout: "{}".to_owned(),
                ..Answer::default()
            },
            decision: self.0,
            record: None,
        }
    }
}

const ROUNDS: usize = 20;

/// The place of this among the targets.
const NOTHING_MATCHES: usize = 3;

fn main() {
    if let Some(target) = std::env::args().nth(1).as_deref().and_then(Target::named) {
        target.serve();
    }
    let requests: usize = std::env::args()
        .nth(1)
        .map_or(20_000, |count| count.parse().unwrap());
    // As Claude Code sends it.
    let body = json!({"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/",
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "ls -la", "description": "list"}, "tool_use_id": "toolu_1"})
    .to_string();
    let reads = body.replace("Bash", "Read");
    let [bare, noop, deciding] = [Target::Bare, Target::Noop, Target::Deciding].map(Serving::start);
    let real = std::env::args().nth(2).map(|path| Real::start(&path));
    let mut sums = [const { Sum::new() }; 6];
    let mut with_store = 0.0_f64;
    let mut early = None;
    for _ in 0..ROUNDS {
        let served = real.as_ref().map(|real| real.serving.address);
        // Processes are started a hundred times slower.
        let (many, few) = (requests / ROUNDS, requests / ROUNDS / 50);
        let targets = [
            (Some(bare.address), "/echo", &body, many),
            (Some(noop.address), "/hooks/claude", &body, many),
            (Some(deciding.address), "/hooks/claude", &body, many),
            (served, "/hooks/claude", &body, many),
            (served.map(|_| bare.address), "/start", &reads, few),
            (served, "/hooks/claude", &reads, few),
        ];
        for (n, ((address, path, body, count), sum)) in
            targets.into_iter().zip(&mut sums).enumerate()
        {
            let Some(address) = address else { continue };
            let (took, times) = measure(address, path, body, count);
            let done = times.len() as f64;
            sum.add(done / took, times);
            // What the daemon still has to do must not disturb the next.
            if let Some(real) = real.as_ref().filter(|real| real.serving.address == address) {
                let took = took + real.settle();
                if n == NOTHING_MATCHES {
                    with_store = with_store.max(done / took);
                }
            }
        }
        early = early.or_else(|| real.as_ref().map(Real::resident_kib));
    }
    let late = real.as_ref().map(Real::resident_kib);
    let (plain, ingest) = inserts();
    let [echo, noop, deciding, engine, started, hooked] = sums;
    let engine = real.map(|_| {
        json!({
            "nothing_matches": engine.to_json(),
            "nothing_matches_to_echo": engine.rate / echo.rate,
            "nothing_matches_with_store_to_echo": with_store / echo.rate,
            "bare_start": started.to_json(),
            "hook_decides": hooked.to_json(),
            "hook_decides_to_bare_start": hooked.rate / started.rate,
            "resident_kib": {"after_a_round": early, "at_the_end": late},
        })
    });
    println!(
        "{}",
        json!({
            "requests": requests,
            "echo": echo.to_json(),
            "noop": noop.to_json(),
            "deciding": deciding.to_json(),
            "noop_to_echo": noop.rate / echo.rate,
            "deciding_to_echo": deciding.rate / echo.rate,
            "plain_inserts_per_second": plain,
            "ingest_per_second": ingest,
            "ingest_to_plain": ingest / plain,
            "engine": engine,
        })
    );
}

/// What a hook does that decides.
const DECIDES: &str = r#"echo '{"decision":"deny","reason":"no"}'"#;

/// A server to measure, ended with its value.
struct Serving {
    child: Child,
    address: SocketAddr,
}

impl Serving {
    fn start(target: Target) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::run(Command::new(program).arg(target.name()))
    }

    /// The first line of its output is a JSON object with its `url`.
    fn run(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let output: serde_json::Value = serde_json::from_str(&line).unwrap();
        let url = output["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").parse().unwrap();
        Self { child, address }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The real binary, with twenty hooks of which none matches a command, and one that
/// decides about reading.
struct Real {
    serving: Serving,
    token: String,
    _dir: tempfile::TempDir,
}

impl Real {
    fn start(path: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut hooks: Vec<_> = (0..20)
            .map(|n| {
                json!({"name": format!("other-{n}"), "event": "before_tool_execute",
                    "matcher": "web_fetch", "handler": {"type": "command", "command": "true"}})
            })
            .collect();
        hooks.push(
            json!({"name": "guard", "event": "before_tool_execute", "blocking": true,
            "matcher": "file_read", "handler": {"type": "command", "command": DECIDES}}),
        );
        let manifest = json!({"spec": "hooks/1.0", "hooks": hooks});
        std::fs::write(dir.path().join("hooks.json"), manifest.to_string()).unwrap();
        let mut command = Command::new(path);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .env("ANYHOOK_CONFIG_DIR", dir.path())
            .env("ANYHOOK_STATE_DIR", dir.path().join("state"))
            .env("ANYHOOK_MANAGED_DIR", dir.path().join("managed"))
            .env("HOME", dir.path());
        Self {
            serving: Serving::run(&mut command),
            token: std::fs::read_to_string(dir.path().join("state/token")).unwrap(),
            _dir: dir,
        }
    }

    /// Waits until the store holds every event that was answered; returns how long that took.
    fn settle(&self) -> f64 {
        let begun = Instant::now();
        loop {
            let metrics = self.metrics();
            let count = |name: &str| -> u64 {
                let lines = metrics.lines();
                let values = lines.filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
                values.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
            };
            let stored = count("anyhook_ingested_events_total{result=\"new\"");
            if stored >= count("anyhook_hook_requests_total{") {
                return begun.elapsed().as_secs_f64();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.serving.address).unwrap();
        let token = self.token.trim();
        let request = format!(
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// 0 where the system does not say.
    fn resident_kib(&self) -> u64 {
        std::fs::read_to_string(format!("/proc/{}/status", self.serving.child.id()))
            .unwrap_or_default()
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or_default()
    }
}

/// The daemon that this program can run.
#[derive(Clone, Copy)]
enum Target {
    Bare,
    Noop,
    Deciding,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "serve-bare",
            Self::Noop => "serve-noop",
            Self::Deciding => "serve-deciding",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Bare, Self::Noop, Self::Deciding]
            .into_iter()
            .find(|target| target.name() == name)
    }

    fn serve(self) -> ! {
        match self {
            Self::Bare => bare(),
            Self::Noop => daemon(HookResponse::default()),
            Self::Deciding => daemon(HookResponse::deny("no")),
        }
        std::process::exit(0);
    }
}

fn say(address: SocketAddr) {
    println!("{}", json!({"url": format!("http://{address}")}));
}

/// The same framework, the same connection handling, nothing else.
fn bare() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        say(listener.local_addr().unwrap());
        let echo = |body: axum::Json<serde_json::Value>| async { body };
        let router = axum::Router::new()
            .route("/echo", axum::routing::post(echo))
            .route("/start", axum::routing::post(start));
        axum::serve(listener, router).await.unwrap();
    });
}

/// The daemon with a host that runs nothing.
fn daemon(response: HookResponse) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&dir.path().join("store.db")).unwrap());
    // Who ends this process does not wait until it has cleaned up.
    std::fs::remove_dir_all(dir.path()).unwrap();
    let mut config = DaemonConfig::new("token-of-the-measuring-program");
    config.listen = ([127, 0, 0, 1], 0).into();
    let daemon = Daemon::bind(config, store, Arc::new(Host { response })).unwrap();
    say(daemon.local_addr());
    daemon.run().unwrap();
}

/// Starts what the hook starts, gives it the body, and answers with its output.
async fn start(body: axum::body::Bytes) -> Vec<u8> {
    let started = tokio::task::spawn_blocking(move || {
        let mut child = Command::new("sh")
            .args(["-c", DECIDES])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It need not read.
        let _ = child.stdin.take().unwrap().write_all(&body);
        child.wait_with_output().unwrap().stdout
    });
    started.await.unwrap()
}

/// All rounds of one target.
struct Sum {
    /// Of the best round.
    rate: f64,
    times: Vec<Duration>,
}

impl Sum {
    const fn new() -> Self {
        Self {
            rate: 0.0,
            times: Vec::new(),
        }
    }

    fn add(&mut self, rate: f64, times: Vec<Duration>) {
        self.rate = self.rate.max(rate);
        self.times.extend(times);
        self.times.sort_unstable();
    }

    fn to_json(&self) -> serde_json::Value {
        let ms = |percent: usize| self.times[self.times.len() * percent / 100].as_secs_f64() * 1e3;
        json!({"per_second": self.rate, "p50_ms": ms(50), "p99_ms": ms(99)})
    }
}

/// How long all requests took, in seconds, and how long each.
fn measure(address: SocketAddr, path: &str, body: &str, requests: usize) -> (f64, Vec<Duration>) {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let each = requests / CLIENTS;
    let begun = Instant::now();
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| client(address, request.as_bytes(), each)))
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    let took = begun.elapsed().as_secs_f64();
    (took, times)
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
                        row.summary.id,
                        row.summary.time_us,
                        row.summary.kind,
                        row.summary.agent,
                        row.summary.event,
                        row.summary.unified,
                        row.summary.session_id,
                        row.summary.tool,
                        row.summary.duration_ms,
                        i64::try_from(row.body.len()).unwrap(),
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
