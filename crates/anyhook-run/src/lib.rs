//! The hot path: an agent calls, the right hooks run, the answer leaves.
//!
//! What is absent here is the point: no argument parser, no async runtime, no
//! database, no Unicode regex, and no printing outside [`entry`]. Waiting for
//! processes is event-driven. Everything is a value of the caller's
//! ([`Engine`](engine::Engine) and its options), nothing is global, so that
//! the daemon can use the same path from many threads.

pub mod clock;
pub mod discover;
pub mod exec;
mod files;
pub mod journal;
pub mod redact;
pub mod trust;
