//! The hot path: an agent calls, the selected hooks run, the answer is sent.
//!
//! The folders are the steps of an event, in order:
//!
//! | folder | step |
//! |---|---|
//! | [`agent`] | decode the agent's payload, render its answer |
//! | [`config`] | find the manifests, policies and approvals that apply here |
//! | [`run`] | start each hook, write its input, read its answer |
//! | [`record`] | append to the journal, with secrets redacted |
//! | [`openhook`] | send the event to OpenHook consumers |
//!
//! [`entry`] is `anyhook run`, [`call`] handles one call from decoded event to
//! journal record, [`engine`] owns the order of the steps.
//!
//! Absent on purpose: an argument parser, an async runtime, a database, a Unicode
//! regex, and printing outside [`entry`]. Waiting for processes is event-driven.
//! Nothing is global: all state is in [`Engine`] and its options, so that the
//! daemon uses the same path from many threads.

#![deny(clippy::disallowed_methods)]

pub mod agent;
pub mod call;
pub mod config;
pub mod daemon_client;
pub mod engine;
pub mod entry;
#[cfg(target_os = "linux")]
mod fcntl;
pub mod openhook;
pub mod record;
pub mod run;

pub use engine::{Engine, EventOptions, EventOutcome};
