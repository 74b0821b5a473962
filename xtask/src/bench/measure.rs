//! Times whole processes.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command to time, with its standard input.
pub(super) struct Case<'a> {
    pub name: &'a str,
    pub make: Box<dyn Fn() -> Command + 'a>,
    pub stdin: Vec<u8>,
}

impl<'a> Case<'a> {
    pub(super) fn new(name: &'a str, make: impl Fn() -> Command + 'a) -> Self {
        Self {
            name,
            make: Box::new(make),
            stdin: Vec::new(),
        }
    }

    pub(super) fn with_stdin(mut self, stdin: &[u8]) -> Self {
        self.stdin = stdin.to_vec();
        self
    }

    pub(super) fn run_once(&self) -> Result<Duration, String> {
        let mut command = (self.make)();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", self.name))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A program may exit without reading its input.
            let _ = pipe.write_all(&self.stdin);
        }
        child
            .wait()
            .map_err(|error| format!("{}: {error}", self.name))?;
        Ok(start.elapsed())
    }
}

/// The best and the median time of a case, in milliseconds.
pub(super) struct Times {
    pub best_ms: f64,
    pub median_ms: f64,
}

/// Runs the cases in turn, `rounds` times each.
pub(super) fn measure(cases: &[Case<'_>], rounds: usize) -> Result<Vec<Times>, String> {
    let mut all: Vec<Vec<f64>> = cases.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for _ in 0..rounds {
        for (case, times) in cases.iter().zip(&mut all) {
            times.push(case.run_once()?.as_secs_f64() * 1000.0);
        }
    }
    Ok(all
        .into_iter()
        .map(|mut times| {
            times.sort_by(f64::total_cmp);
            Times {
                best_ms: times.first().copied().unwrap_or_default(),
                median_ms: times.get(times.len() / 2).copied().unwrap_or_default(),
            }
        })
        .collect())
}

/// Prints each case as a ratio to the first. `limits`: the highest ratio allowed, by case.
pub(super) fn report(cases: &[Case<'_>], times: &[Times], limits: &[(&str, f64)]) {
    let base = times.first().map_or(1.0, |time| time.best_ms);
    let base_median = times.first().map_or(1.0, |time| time.median_ms);
    println!("{:<46} {:>9} {:>9} {:>9}", "", "best ms", "ratio", "median");
    for (case, time) in cases.iter().zip(times) {
        let ratio = time.best_ms / base;
        let limit = limits
            .iter()
            .find(|(name, _)| *name == case.name)
            .map(|(_, limit)| *limit);
        let verdict = match limit {
            Some(limit) if ratio <= limit => format!("  within {limit}"),
            Some(limit) => format!("  OVER {limit}"),
            None => String::new(),
        };
        println!(
            "{:<46} {:>9.3} {:>9.2} {:>9.2}{verdict}",
            case.name,
            time.best_ms,
            ratio,
            time.median_ms / base_median
        );
    }
}

/// The peak memory in the text of `/proc/PID/status`.
pub(super) fn peak_memory_mib(status: &str) -> Result<f64, String> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    let kib = kib.ok_or_else(|| format!("no peak memory in `{status}`"))?;
    Ok(kib / 1024.0)
}
