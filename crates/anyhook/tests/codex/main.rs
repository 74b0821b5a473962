//! `anyhook codex` as its users have it: the real binary between a client and a
//! server, hooks from a project's manifest, the journal afterwards.
//!
//! Called with `play …` this binary is the server itself. Servers, transcripts
//! and the offline model are those of the library's tests.

#![cfg(test)]

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
        anyhook_testkit::codex::run_fake_server(part);
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
