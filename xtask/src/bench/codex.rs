//! `anyhook codex proxy` compared with `cat` as the relay: the server is an echo,
//! this process is the client.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Setup;

const MESSAGE_COUNT: u32 = 100_000;
const ROUND_COUNT: usize = 7;
const ROUND_TRIP_COUNT: usize = 5_000;

/// A relay process with an echo behind it.
struct Relay {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Relay {
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
            _ => Err("the relay has no pipes".into()),
        }
    }

    /// The time from sending the first byte to receiving the last one.
    fn time_stream(self, stream: &[u8]) -> Result<Duration, String> {
        let Self {
            mut child,
            mut input,
            mut output,
        } = self;
        // The first exchange waits for the processes to start.
        let mut line = *b"{}\n";
        exchange(&mut input, &mut output, &mut line)?;
        let started = Instant::now();
        let mut received = vec![0; stream.len()];
        let completed = std::thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(stream));
            let read = output.read_exact(&mut received);
            let written = writer.join();
            read.is_ok() && matches!(written, Ok(Ok(())))
        });
        let took = started.elapsed();
        child.wait().map_err(|error| error.to_string())?;
        if completed && received == stream {
            Ok(took)
        } else {
            Err("the relay changed the stream".into())
        }
    }

    /// Round-trip times of single messages in microseconds, sorted.
    fn round_trips(mut self, message: &[u8]) -> Result<Vec<f64>, String> {
        let mut back = message.to_vec();
        let mut times = Vec::with_capacity(ROUND_TRIP_COUNT);
        for trip in 0..ROUND_TRIP_COUNT + ROUND_TRIP_COUNT / 10 {
            let started = Instant::now();
            exchange(&mut self.input, &mut self.output, &mut back)?;
            if trip >= ROUND_TRIP_COUNT / 10 {
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

/// A completed command: one hook event and one journal line.
fn command_completed(number: u32) -> String {
    let item = json!({"type": "commandExecution", "id": format!("call_{number}"), "command": "/bin/bash -lc 'cargo test'", "cwd": "/",
                      "status": "completed", "commandActions": [], "aggregatedOutput": "ok\n".repeat(100), "exitCode": 0, "durationMs": 50});
    format!(
        "{}\n",
        json!({"method": "item/completed", "params": {"item": item, "threadId": "t", "turnId": "u", "completedAtMs": 1_794_770_873_096_u64}})
    )
}

pub(super) fn run(setup: &Setup) -> Result<(), String> {
    let through_cat = || {
        let mut command = Command::new("sh");
        command.args(["-c", "cat | cat | cat"]);
        command
    };
    let through_proxy = || {
        let mut command = setup.command();
        command.current_dir(&setup.folder);
        command.args(["codex", "proxy", "--", "cat"]);
        command
    };
    let text: String = (0..MESSAGE_COUNT).map(delta).collect();
    // As many events as a long turn has, among the model's text deltas.
    let mixed: String = (0..MESSAGE_COUNT)
        .map(|number| match number % 1000 {
            0 => command_completed(number),
            _ => delta(number),
        })
        .collect();
    println!(
        "{:<34} {:>12} {:>14} {:>7}",
        "messages per second", "through cat", "through proxy", "ratio"
    );
    for (name, stream) in [("text deltas", text), ("with 1 event in 1000", mixed)] {
        let (mut cat, mut proxy) = (f64::MAX, f64::MAX);
        for _ in 0..ROUND_COUNT {
            let took = Relay::start(through_cat())?.time_stream(stream.as_bytes())?;
            cat = cat.min(took.as_secs_f64());
            let took = Relay::start(through_proxy())?.time_stream(stream.as_bytes())?;
            proxy = proxy.min(took.as_secs_f64());
        }
        let rate = |seconds: f64| f64::from(MESSAGE_COUNT) / seconds;
        println!(
            "{name:<34} {:>12.0} {:>14.0} {:>7.2}",
            rate(cat),
            rate(proxy),
            cat / proxy
        );
    }

    let message = delta(0);
    let cat = Relay::start(through_cat())?.round_trips(message.as_bytes())?;
    let proxy = Relay::start(through_proxy())?.round_trips(message.as_bytes())?;
    println!(
        "\n{:<34} {:>12} {:>14} {:>7}",
        "round trip, microseconds", "through cat", "through proxy", "added"
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
