//! Chores of the project: `cargo xtask <chore>`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person who runs it"
)]

mod bench;
mod docs;
mod run;
mod suite;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test            all tests
cargo xtask docs [--check]  docs/agents/*.md and docs/matrix.md from the tables
cargo xtask bench [NAME…]   speed, as ratios in one run
cargo xtask order           crates/anyhook/run.order, for a faster start (needs valgrind)
cargo xtask e2e [AGENT…]    the real agents from npm, against a fake model";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match arguments.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("", [].as_slice()),
    };
    let done = match chore {
        "test" => suite::test(rest),
        "docs" => docs::run(rest),
        "bench" => bench::run(rest),
        "order" => bench::order::make(),
        "e2e" => suite::e2e(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {chore}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
