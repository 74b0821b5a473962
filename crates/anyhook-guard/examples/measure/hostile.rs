//! How long an answer to hostile text takes.

use std::time::Duration;

use crate::hostile_texts::hostile_texts;
use crate::labelled;
use crate::scripts::{shell_event, standard_guards};
use anyhook_guard::GuardInput;

/// An answer after this time is too late.
const LIMIT: Duration = Duration::from_millis(50);

/// Each text is judged that often; the shortest time counts, since other programs
/// of the machine only add to it. Where the system tells it, the time is that of the
/// processor, which a busy machine does not stretch.
const RUNS: usize = 3;

pub(crate) fn measure() {
    let guards = standard_guards();
    let context = labelled::context();
    let mut times: Vec<(Duration, String)> = Vec::new();
    for (name, text) in hostile_texts() {
        for shell in ["bash", "powershell", "cmd"] {
            let event = shell_event(&text, shell);
            let shortest = (0..RUNS).map(|_| {
                let started = now();
                let input = GuardInput::new(&event, &context);
                for guard in &guards {
                    guard.judge_input(&input);
                }
                now().saturating_sub(started)
            });
            let shortest = shortest.min().unwrap_or_default();
            times.push((shortest, format!("{shell}: {name}")));
        }
    }
    times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    for (time, name) in times.iter().take(15) {
        println!("{:8.2} ms  {name}", time.as_secs_f64() * 1000.0);
    }
    let slow = times.iter().filter(|(time, _)| *time > LIMIT).count();
    println!(
        "{} texts, all standard guards each: {slow} over {} ms",
        times.len(),
        LIMIT.as_millis()
    );
}

/// The time that this thread has had a processor.
#[cfg(unix)]
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

/// The time of a clock.
#[cfg(not(unix))]
fn now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}
