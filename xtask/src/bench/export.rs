//! `anyhook export otlp` into a local sink: events per second, compared with copying the
//! journal, and peak memory at a small and a large backlog.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Setup;
use super::openhook::{mebibytes, peak_memory_mib};

const EVENT_COUNT: u32 = 100_000;
const BACKLOG_COUNT: u32 = 1_000_000;
const ROUNDS: usize = 3;
/// What the journal keeps in one file.
const EVENTS_PER_FILE: u32 = 20_000;
const MIN_EVENTS_PER_SECOND: f64 = 20_000.0;
const MAX_PEAK_MIB: f64 = 64.0;

pub(super) fn run(setup: &Setup) -> Result<(), String> {
    let sink = Sink::start().map_err(|error| error.to_string())?;
    let small = setup.beside("export");
    let bytes = write_journal(&small, EVENT_COUNT).map_err(|error| error.to_string())?;
    let (mut copy, mut export) = (f64::MAX, f64::MAX);
    for round in 0..ROUNDS {
        let started = Instant::now();
        copy_journal(&small).map_err(|error| error.to_string())?;
        copy = copy.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let cursor = format!("round-{round}");
        super::run_command(&mut export_command(&small, &sink, &cursor))?;
        export = export.min(started.elapsed().as_secs_f64());
    }
    let rate = f64::from(EVENT_COUNT) / export;
    println!(
        "{EVENT_COUNT} events, {:.1} MiB, {:.1} MiB compressed to the sink in {} requests",
        mebibytes(bytes),
        mebibytes(sink.bytes.load(Ordering::Relaxed) / ROUNDS as u64),
        sink.requests.load(Ordering::Relaxed) / ROUNDS as u64,
    );
    println!(
        "export {:.0} ms, {rate:.0} events/s, {}; {:.1} times as long as writing the same bytes",
        export * 1000.0,
        verdict(rate >= MIN_EVENTS_PER_SECOND, MIN_EVENTS_PER_SECOND),
        export / copy
    );
    let large = setup.beside("backlog");
    write_journal(&large, BACKLOG_COUNT).map_err(|error| error.to_string())?;
    for (name, setup) in [(EVENT_COUNT, &small), (BACKLOG_COUNT, &large)] {
        let peak = peak_memory_mib(export_command(setup, &sink, "memory"))?;
        let verdict = verdict(peak <= MAX_PEAK_MIB, MAX_PEAK_MIB);
        println!("{name} events waiting: peak {peak:.1} MiB, {verdict}");
    }
    Ok(())
}

fn verdict(is_met: bool, limit: f64) -> String {
    let word = if is_met { "within" } else { "NOT within" };
    format!("{word} {limit}")
}

fn export_command(setup: &Setup, sink: &Sink, cursor: &str) -> std::process::Command {
    let mut command = setup.command();
    command.args(["export", "otlp", "--close-turns", "--cursor", cursor]);
    command.args(["--endpoint", &sink.url]);
    command
}

fn copy_journal(setup: &Setup) -> io::Result<()> {
    let mut copy = File::create(setup.folder.join("copy.jsonl"))?;
    let mut entries: Vec<_> = fs::read_dir(setup.folder.join("state/journal"))?.collect();
    entries.sort_by_key(|entry| entry.as_ref().map(fs::DirEntry::file_name).ok());
    for entry in entries {
        io::copy(&mut File::open(entry?.path())?, &mut copy)?;
    }
    copy.flush()
}

/// Turns of eight events in many sessions, as the dispatcher records them; returns the size.
fn write_journal(setup: &Setup, events: u32) -> io::Result<u64> {
    let folder = setup.folder.join("state/journal");
    fs::create_dir_all(&folder)?;
    let mut size = 0;
    for first in (0..events).step_by(EVENTS_PER_FILE as usize) {
        let is_last = first + EVENTS_PER_FILE >= events;
        let name = if is_last {
            "events.jsonl".to_owned()
        } else {
            format!("events-{:08}.jsonl", first / EVENTS_PER_FILE)
        };
        let path = folder.join(name);
        let mut out = BufWriter::new(File::create(&path)?);
        for number in first..(first + EVENTS_PER_FILE).min(events) {
            write_record(&mut out, number)?;
        }
        out.flush()?;
        size += fs::metadata(path)?.len();
    }
    Ok(size)
}

fn write_record(out: &mut impl io::Write, number: u32) -> io::Result<()> {
    let turn = number / 8;
    let (event, native) = match number % 8 {
        0 => ("before_prompt", "UserPromptSubmit"),
        7 => ("agent_stop", "Stop"),
        part if part % 2 == 1 => ("before_tool_execute", "PreToolUse"),
        _ => ("after_tool_execute", "PostToolUse"),
    };
    let call = number.div_ceil(2);
    let (session, second) = (turn % 50, number % 60);
    let (minute, hour, day) = (
        number / 60 % 60,
        number / 3600 % 24,
        1 + number / 86_400 % 28,
    );
    writeln!(
        out,
        r#"{{"v":1,"id":"019a0000-0000-7000-8000-{number:012x}","time":"2026-02-{day:02}T{hour:02}:{minute:02}:{second:02}.123456Z","kind":"event","agent":"claude-code","event":{{"event":"{event}","source":"claude-code","native_event":"{native}","session_id":"session-{session}","cwd":"/home/user/project","machine_id":"laptop","data":{{"tool_name":"shell","native_tool_name":"Bash","tool_call_id":"toolu_{call}","tool_input":{{"command":"cargo test --workspace --all-features -- --nocapture"}},"permission_mode":"default"}},"metadata":{{"native":{{"transcript_path":"/home/user/.claude/projects/x/{session}.jsonl"}}}}}},"response":{{}},"hooks":[{{"hook":"git","manifest":"/home/user/.config/anyhook/hooks.yaml","outcome":"allow","duration_ms":0.4}}],"answer":{{"stdout":"","stderr":"","exit":0}},"duration_ms":2.1}}"#
    )
}

/// Reads requests and answers that everything was accepted.
struct Sink {
    url: String,
    bytes: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
}

impl Sink {
    /// Runs until the process ends.
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let sink = Self {
            url: format!("http://{}", listener.local_addr()?),
            bytes: Arc::default(),
            requests: Arc::default(),
        };
        let (bytes, requests) = (Arc::clone(&sink.bytes), Arc::clone(&sink.requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (bytes, requests) = (Arc::clone(&bytes), Arc::clone(&requests));
                std::thread::spawn(move || serve(&stream, &bytes, &requests));
            }
        });
        Ok(sink)
    }
}

/// Serves a connection until it is closed.
fn serve(stream: &TcpStream, bytes: &AtomicU64, requests: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let lower = line.trim().to_ascii_lowercase();
            if let Some(text) = lower.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap_or_default();
            }
            if lower.is_empty() {
                break;
            }
        }
        io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
        bytes.fetch_add(length, Ordering::Relaxed);
        requests.fetch_add(1, Ordering::Relaxed);
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        (&mut &*stream).write_all(head.as_bytes())?;
    }
}
