//! Project tasks: `cargo xtask <task>`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task reports to the person who runs it"
)]

mod bench;
mod cross;
mod dist;
mod docs;
mod opentelemetry;
mod reference;
mod run;
mod sdk;
mod suite;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test            run all tests
cargo xtask docs [--check]  generate pages of docs/ and the models in sdk/ from the tables
cargo xtask bench [NAME…]   measure speed, as ratios within one run;
                            store: --events N, --store ADDRESS
cargo xtask order           trace `anyhook run` and write crates/anyhook/run.order (needs valgrind)
cargo xtask dist [--check]  write archives and packages to dist/, and try to install them
cargo xtask e2e [AGENT…]    test with the real agents from npm, against a fake model
cargo xtask cross [TARGET…] build for windows, macos and linux-musl, or one of them
cargo xtask wine [TEST…]    run the tests on Windows, under Wine";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match arguments.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("", [].as_slice()),
    };
    let result = match task {
        "test" => suite::run_tests(rest),
        "docs" => docs::run(rest),
        "bench" => bench::run(rest),
        "order" => bench::order::make(),
        "dist" => dist::run_dist(rest),
        "e2e" => suite::run_e2e(rest),
        "cross" => cross::run_cross(rest),
        "wine" => cross::run_wine(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {task}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root folder of the workspace.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
