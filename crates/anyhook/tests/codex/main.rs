//! `anyhook codex` as its users have it: the real binary between a client and a
//! server, hooks from a project's manifest, the journal afterwards.
//!
//! Called with `play …` this binary is the server itself. Servers, transcripts
//! and the offline model are those of `anyhook-codex`'s own tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

#[path = "../../../anyhook-codex/tests/bridge/answers.rs"]
mod answers;
#[path = "../../../anyhook-codex/tests/bridge/kit.rs"]
#[allow(dead_code, reason = "shared, and not all of it is used here")]
mod kit;
#[path = "../../../anyhook-codex/tests/bridge/model.rs"]
mod model;
#[path = "../../../anyhook-codex/tests/bridge/servers.rs"]
mod servers;
#[path = "../../../anyhook-codex/tests/bridge/transcript.rs"]
#[allow(dead_code, reason = "shared, and not all of it is used here")]
mod transcript;

mod attach;
mod project;
mod proxy;
mod real;
mod replay;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["play", part @ ..] = words.as_slice() {
        servers::act(part);
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(4));
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(replay::trials());
    trials.extend(proxy::trials());
    trials.extend(attach::trials());
    trials.extend(real::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test by its name; a panic fails it.
fn trial(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}
