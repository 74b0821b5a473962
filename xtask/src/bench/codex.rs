//! `anyhook codex proxy` against `cat` in its place: an echo as the server, and
//! this process as the client, with one process between them each way or both.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Setup;

const MESSAGES: u32 = 100_000;
const ROUNDS: usize = 7;
const ROUND_TRIPS: usize = 5_000;

/// A relay and the echo behind it.
struct Line {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Line {
    fn start(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input,
                output,
            }),
            _ => Err("there are no pipes".into()),
        }
    }

    /// The time from the first byte sent to the last one back.
    fn carry(self, stream: &[u8]) -> Result<Duration, String> {
        let Self {
            mut child,
            mut input,
            mut output,
        } = self;
        // The first line waits for the processes to start.
        let mut line = *b"{}\n";
        exchange(&mut input, &mut output, &mut line)?;
        let started = Instant::now();
        let mut back = vec![0; stream.len()];
        let carried = std::thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(stream));
            let read = output.read_exact(&mut back);
            let written = writer.join();
            read.is_ok() && matches!(written, Ok(Ok(())))
        });
        let took = started.elapsed();
        child.wait().map_err(|error| error.to_string())?;
        if carried && back == stream {
            Ok(took)
        } else {
            Err("what came back is not what was sent".into())
        }
    }

    /// The times of single messages there and back, sorted, in microseconds.
    fn round_trips(mut self, message: &[u8]) -> Result<Vec<f64>, String> {
        let mut back = message.to_vec();
        let mut times = Vec::with_capacity(ROUND_TRIPS);
        for trip in 0..ROUND_TRIPS + ROUND_TRIPS / 10 {
            let started = Instant::now();
            exchange(&mut self.input, &mut self.output, &mut back)?;
            if trip >= ROUND_TRIPS / 10 {
                times.push(started.elapsed().as_secs_f64() * 1e6);
            }
        }
        drop(self.input);
        self.child.wait().map_err(|error| error.to_string())?;
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}

fn exchange(
    input: &mut ChildStdin,
    output: &mut ChildStdout,
    message: &mut [u8],
) -> Result<(), String> {
    let done = input
        .write_all(message)
        .and_then(|()| output.read_exact(message));
    done.map_err(|error| error.to_string())
}

fn delta(number: u32) -> String {
    let params = json!({"threadId": "01a1e0ae-2a9f-7000-8000-000000000000", "turnId": "01a1e0ae-2b23-7000-8000-000000000000",
                        "itemId": "msg_1", "delta": format!("word {number} ")});
    format!(
        "{}\n",
        json!({"method": "item/agentMessage/delta", "params": params, "emittedAtMs": 1_794_770_873_096_u64})
    )
}

/// The end of a command: an event for hooks and a line for the journal.
fn command_done(number: u32) -> String {
    let item = json!({"type": "commandExecution", "id": format!("call_{number}"), "command": "/bin/bash -lc 'cargo test'", "cwd": "/",
                      "status": "completed", "commandActions": [], "aggregatedOutput": "ok\n".repeat(100), "exitCode": 0, "durationMs": 50});
    format!(
        "{}\n",
        json!({"method": "item/completed", "params": {"item": item, "threadId": "t", "turnId": "u", "completedAtMs": 1_794_770_873_096_u64}})
    )
}

pub fn run(setup: &Setup) -> Result<(), String> {
    let through_cat = || {
        let mut command = Command::new("sh");
        command.args(["-c", "cat | cat | cat"]);
        command
    };
    let through_proxy = || {
        let mut command = setup.command();
        command.current_dir(setup.scratch.path());
        command.args(["codex", "proxy", "--", "cat"]);
        command
    };
    let text: String = (0..MESSAGES).map(delta).collect();
    // As many events as a long turn has, among the words of the model.
    let mixed: String = (0..MESSAGES)
        .map(|number| match number % 1000 {
            0 => command_done(number),
            _ => delta(number),
        })
        .collect();
    println!(
        "{:<34} {:>12} {:>14} {:>7}",
        "messages per second", "through cat", "through proxy", "ratio"
    );
    for (name, stream) in [
        ("words of the model", text),
        ("with 1 event in 1000", mixed),
    ] {
        let (mut cat, mut proxy) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            let took = Line::start(through_cat())?.carry(stream.as_bytes())?;
            cat = cat.min(took.as_secs_f64());
            let took = Line::start(through_proxy())?.carry(stream.as_bytes())?;
            proxy = proxy.min(took.as_secs_f64());
        }
        let rate = |seconds: f64| f64::from(MESSAGES) / seconds;
        println!(
            "{name:<34} {:>12.0} {:>14.0} {:>7.2}",
            rate(cat),
            rate(proxy),
            cat / proxy
        );
    }

    let message = delta(0);
    let cat = Line::start(through_cat())?.round_trips(message.as_bytes())?;
    let proxy = Line::start(through_proxy())?.round_trips(message.as_bytes())?;
    println!(
        "\n{:<34} {:>12} {:>14} {:>7}",
        "there and back, microseconds", "through cat", "through proxy", "added"
    );
    for (name, percent) in [("median", 50), ("p99", 99)] {
        let at = |times: &[f64]| {
            let time = times.get(times.len() * percent / 100);
            time.copied().unwrap_or_default()
        };
        let (cat, proxy) = (at(&cat), at(&proxy));
        println!("{name:<34} {cat:>12.1} {proxy:>14.1} {:>7.1}", proxy - cat);
    }
    Ok(())
}
