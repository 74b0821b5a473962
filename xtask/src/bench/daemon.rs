//! The daemon compared with a bare handler of its web framework, its store with
//! plain inserts, and `run --server` with `run`.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Setup;
use super::measure::{Case, measure, report};

const REQUEST_COUNT: &str = "200000";
/// The daemon must reach at least half the throughput of its baseline.
const MIN_THROUGHPUT_RATIO: f64 = 0.5;
/// Allowed memory growth between the first fifth of the requests and the last.
const MAX_MEMORY_GROWTH_RATIO: f64 = 1.5;

const PAYLOAD: &str = r#"{"session_id":"bench","transcript_path":"/tmp/t.jsonl","cwd":"/","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo hi","description":"say hi"},"tool_use_id":"toolu_01"}"#;

pub(super) fn run(setup: &Setup) -> Result<(), String> {
    measure_load(setup)?;
    measure_dispatcher(setup)?;
    measure_ingest_memory(&setup.beside("ingest"))
}

fn measure_load(setup: &Setup) -> Result<(), String> {
    let output = crate::run::cargo()
        .args(["run", "--quiet", "--release", "--package", "anyhook-daemon"])
        .args(["--example", "load", "--", REQUEST_COUNT])
        .arg(&setup.anyhook)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    let results: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the load program printed invalid JSON: {error}"))?;
    let number = |at: &str| {
        let value = results.pointer(at).and_then(Value::as_f64);
        value.ok_or_else(|| format!("the load program did not report {at}"))
    };
    println!(
        "{:<46} {:>9} {:>9} {:>9}",
        "8 connections", "per s", "p50 ms", "p99 ms"
    );
    for (name, at) in [
        ("echo, the same framework", "/echo"),
        ("the daemon, hooks say nothing", "/noop"),
        ("the daemon, hooks decide", "/deciding"),
        (
            "serve, 20 hooks, nothing matches",
            "/engine/nothing_matches",
        ),
        ("a bare handler that starts the hook", "/engine/bare_start"),
        (
            "serve, 21 hooks, one runs and decides",
            "/engine/hook_decides",
        ),
    ] {
        println!(
            "{name:<46} {:>9.0} {:>9.2} {:>9.2}",
            number(&format!("{at}/per_second"))?,
            number(&format!("{at}/p50_ms"))?,
            number(&format!("{at}/p99_ms"))?
        );
    }
    for (name, at) in [
        ("hooks say nothing, to echo", "/noop_to_echo"),
        ("hooks decide, to echo", "/deciding_to_echo"),
        (
            "serve, nothing matches, to echo",
            "/engine/nothing_matches_to_echo",
        ),
        (
            "a hook runs, to the bare start",
            "/engine/hook_decides_to_bare_start",
        ),
        ("ingest, to plain inserts", "/ingest_to_plain"),
    ] {
        let ratio = number(at)?;
        let verdict = if ratio >= MIN_THROUGHPUT_RATIO {
            "at least"
        } else {
            "BELOW"
        };
        println!("{name:<46} {ratio:>9.2}  {verdict} {MIN_THROUGHPUT_RATIO}");
    }
    let ratio = number("/engine/nothing_matches_with_store_to_echo")?;
    println!(
        "{:<46} {ratio:>9.2}",
        "the same, until the store has it all, to echo"
    );
    let early = number("/engine/resident_kib/after_a_round")? / 1024.0;
    let late = number("/engine/resident_kib/at_the_end")? / 1024.0;
    let verdict = if late <= early * MAX_MEMORY_GROWTH_RATIO {
        "flat"
    } else {
        "GROWS"
    };
    println!("memory {early:.1} MiB, after {REQUEST_COUNT} requests {late:.1} MiB  {verdict}");
    Ok(())
}

const INGEST_SENDERS: usize = 50;
const INGEST_ROUNDS: usize = 4;
const INGEST_LINES: usize = 1000;
const MAX_INGEST_MIB: f64 = 150.0;

/// The peak memory of a daemon to which many machines send records at once.
fn measure_ingest_memory(setup: &Setup) -> Result<(), String> {
    let daemon = DaemonProcess::start(setup, &[])?;
    let address = daemon.url.trim_start_matches("http://");
    let token = fs::read_to_string(setup.folder.join("state/token"));
    let token = token.map_err(|error| format!("the daemon's token: {error}"))?;
    let before = peak_memory_mib(daemon.child.id())?;
    let results = std::thread::scope(|scope| {
        let send = |sender| {
            let token = token.trim();
            scope.spawn(move || ingest_rounds(address, token, sender))
        };
        let threads: Vec<_> = (0..INGEST_SENDERS).map(send).collect();
        let joined = threads.into_iter().map(|thread| {
            let failed = |_| Err("a sender has panicked".to_owned());
            thread.join().unwrap_or_else(failed)
        });
        joined.collect::<Result<Vec<usize>, String>>()
    });
    let taken: usize = results?.into_iter().sum();
    let after = peak_memory_mib(daemon.child.id())?;
    let verdict = if after <= MAX_INGEST_MIB {
        "within"
    } else {
        "OVER"
    };
    println!(
        "memory {before:.1} MiB, with {INGEST_SENDERS} senders of {INGEST_LINES} records each {after:.1} MiB ({taken} of {} batches taken at once)  {verdict} {MAX_INGEST_MIB}",
        INGEST_SENDERS * INGEST_ROUNDS
    );
    Ok(())
}

/// Sends batches of about 1.4 MB; returns how many were taken and not put off.
fn ingest_rounds(address: &str, token: &str, sender: usize) -> Result<usize, String> {
    let text = "x".repeat(1024);
    let mut taken = 0;
    for round in 0..INGEST_ROUNDS {
        let mut body = String::new();
        for line in 0..INGEST_LINES {
            let id = format!("01a1eef4-{sender:04x}-7{round:03x}-8000-{line:012x}");
            let _ = writeln!(
                body,
                r#"{{"v":1,"id":"{id}","time":"2026-01-01T00:00:00.000Z","kind":"event","agent":"claude-code","event":{{"event":"before_tool_execute","source":"claude-code","native_event":"PreToolUse","session_id":"s{sender}","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project","data":{{"tool_name":"shell","tool_input":{{"command":"echo {text}"}}}}}},"response":{{}},"answer":{{"exit":0}},"duration_ms":0.5}}"#
            );
        }
        let status = post_records(address, token, &body).map_err(|error| error.to_string())?;
        match status.as_str() {
            "200" => taken += 1,
            "429" => {}
            other => return Err(format!("the daemon answered {other} to records")),
        }
    }
    Ok(taken)
}

/// The status of the answer.
fn post_records(address: &str, token: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    // It may answer and close before it has read everything.
    let _ = write!(
        stream,
        "POST /ingest HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).unwrap_or_default();
    Ok(status.to_owned())
}

fn peak_memory_mib(process: u32) -> Result<f64, String> {
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.map_err(|error| error.to_string())?;
    super::measure::peak_memory_mib(&status)
}

/// A running `anyhook serve`, killed on drop.
pub(super) struct DaemonProcess {
    child: Child,
    pub(super) url: String,
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl DaemonProcess {
    pub(super) fn start(setup: &Setup, more: &[&str]) -> Result<Self, String> {
        let mut child = setup
            .command()
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let banner: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = banner.get("url").and_then(Value::as_str);
        let url = url.ok_or("the daemon did not start")?.to_owned();
        Ok(Self { child, url })
    }
}

fn measure_dispatcher(setup: &Setup) -> Result<(), String> {
    let config = setup.folder.join("config");
    fs::create_dir_all(&config).map_err(|error| error.to_string())?;
    let daemon = DaemonProcess::start(setup, &[])?;
    let url = daemon.url.as_str();
    let run = |more: Vec<&str>| {
        let more: Vec<String> = more.into_iter().map(str::to_owned).collect();
        move || {
            let mut command = setup.command();
            command.args(["run", "--agent", "claude-code"]).args(&more);
            command
        }
    };
    let cases = [
        Case::new("/bin/true", || Command::new("/bin/true")),
        Case::new("run", run(vec![])).with_stdin(PAYLOAD.as_bytes()),
        Case::new("run --server", run(vec!["--server", url])).with_stdin(PAYLOAD.as_bytes()),
    ];
    println!();
    let times = measure(&cases, 150)?;
    report(&cases, &times, &[]);
    Ok(())
}
