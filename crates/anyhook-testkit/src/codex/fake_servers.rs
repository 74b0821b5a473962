//! App servers with all kinds of behaviour, run by the test's own binary as
//! `play …`.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{BufRead, Read, Write, stdin, stdout};
use std::path::Path;
use std::process::{Command, exit};
use std::time::Duration;

use serde_json::Value;

use super::transcript::{Line, Transcript, is_answer};

/// Runs the server that these arguments name; does not return.
pub fn run_fake_server(args: &[&str]) -> ! {
    match args {
        ["server", transcript, log] => play_transcript(Path::new(transcript), Path::new(log)),
        ["echo"] => echo(),
        ["exit", code, message] => {
            eprint!("{message}");
            exit(code.parse().unwrap());
        }
        ["stubborn", pids] => stubborn(Path::new(pids)),
        ["sleeper"] => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        ["lines", file, log] => send_lines(Path::new(file), Path::new(log)),
        other => panic!("unknown server: {other:?}"),
    }
}

/// Sends the server's lines of a transcript, waits for the client's lines in
/// between, and logs each line it receives.
fn play_transcript(transcript: &Path, log: &Path) -> ! {
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    let mut early: VecDeque<Value> = VecDeque::new();
    let mut input = stdin().lock();
    let mut out = stdout().lock();
    for line in Transcript::read(transcript).lines {
        match line {
            Line::Server(message) => {
                writeln!(out, "{message}").unwrap();
                out.flush().unwrap();
            }
            Line::Client(expected) => {
                let fits = |got: &Value| {
                    if is_answer(&expected) {
                        is_answer(got) && got["id"] == expected["id"]
                    } else {
                        got["method"] == expected["method"]
                    }
                };
                if let Some(at) = early.iter().position(fits) {
                    early.remove(at);
                    continue;
                }
                loop {
                    let mut got = String::new();
                    if input.read_line(&mut got).unwrap() == 0 {
                        eprintln!("the client left before {expected}");
                        exit(3);
                    }
                    log.write_all(got.as_bytes()).unwrap();
                    let got: Value = serde_json::from_str(&got).unwrap();
                    if fits(&got) {
                        break;
                    }
                    early.push_back(got);
                }
            }
        }
    }
    let mut rest = Vec::new();
    input.read_to_end(&mut rest).unwrap();
    log.write_all(&rest).unwrap();
    exit(0);
}

/// Sends back what it receives.
fn echo() -> ! {
    let mut input = stdin().lock();
    let mut out = stdout().lock();
    let mut buffer = vec![0; 8192];
    loop {
        match input.read(&mut buffer).unwrap() {
            0 => exit(0),
            read => {
                out.write_all(&buffer[..read]).unwrap();
                out.flush().unwrap();
            }
        }
    }
}

/// Starts a child, and ignores both the end of its input and SIGTERM.
fn stubborn(pids: &Path) -> ! {
    let me = std::env::current_exe().unwrap();
    let mut child = Command::new("sh")
        .arg("-c")
        .arg("trap '' TERM; exec \"$0\" play sleeper")
        .arg(me)
        .spawn()
        .unwrap();
    std::fs::write(pids, format!("{}\n{}\n", std::process::id(), child.id())).unwrap();
    child.wait().unwrap();
    panic!("the child ended before its parent");
}

/// Sends the lines of a file, then logs what it receives, and finally creates a
/// file that marks its end.
fn send_lines(file: &Path, log: &Path) -> ! {
    let mut out = stdout().lock();
    out.write_all(&std::fs::read(file).unwrap()).unwrap();
    out.flush().unwrap();
    let ended = log.with_extension("ended");
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    for line in stdin().lock().split(b'\n') {
        let mut line = line.unwrap();
        line.push(b'\n');
        log.write_all(&line).unwrap();
    }
    std::fs::write(ended, "").unwrap();
    exit(0);
}
