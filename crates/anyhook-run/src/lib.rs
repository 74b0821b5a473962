//! The hot path: an agent calls, the right hooks run, the answer leaves.
//!
//! What is absent here is the point: no argument parser, no async runtime, no
//! database, no Unicode regex, and no printing outside [`entry`]. Waiting for
//! processes is event-driven. Everything is a value of the caller's
//! ([`Engine`] and its options), nothing is global, so that
//! the daemon can use the same path from many threads.

pub mod agent;
pub mod beside;
pub mod call;
pub mod clock;
mod compiled;
pub mod dialect;
pub mod discover;
pub mod duplicate;
pub mod engine;
pub mod entry;
pub mod evaluator;
pub mod exec;
pub mod failure;
mod files;
pub mod handler;
pub mod http;
pub mod journal;
pub mod json;
mod lock;
pub mod memory;
pub mod native;
pub mod openhook;
pub mod places;
pub mod plan;
pub mod policy;
pub mod redact;
pub mod server;
pub mod settings;
pub mod supervise;
pub mod surroundings;
pub mod trust;

pub use engine::{Engine, Handled, Options};
