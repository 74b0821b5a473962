//! The bridge over real processes, pipes and sockets.
//!
//! Called with `play …` this binary is one of the actors itself: the server made
//! from a transcript, an echo, a stubborn server, or the proxy under test.

#![cfg(test)]

mod attach;
mod faults;
mod hooks;
mod odd;
mod order;
mod play;
mod real;
mod replay;
mod schema;
mod socket;
mod sockets;
mod stream;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("play") {
        play::act(&args.collect::<Vec<_>>());
    }
    let mut arguments = Arguments::from_args();
    // The actors need the two cores more than the tests do.
    arguments.test_threads = arguments.test_threads.or(Some(4));
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(replay::trials());
    trials.extend(attach::trials());
    trials.extend(sockets::trials());
    trials.extend(schema::trials());
    trials.extend(stream::trials());
    trials.extend(order::trials());
    trials.extend(odd::trials());
    trials.extend(faults::trials());
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
