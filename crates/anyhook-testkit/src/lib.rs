//! Test support of anyhook; no product crate may depend on it outside
//! `[dev-dependencies]`.
//!
//! [`reference_model`] answers "what would this agent do with that answer?" from
//! recorded facts alone. It shares neither code nor tables with the adapters: a
//! mistake made there must not be able to hide here.
//!
//! [`Scratch`] is an isolated project and home for tests that run a real binary;
//! [`cases`] reads folders of test cases; [`Golden`] compares results with recorded
//! ones; [`files_below`] lists the files of a folder; [`whole_lines`] reads a journal
//! while others write it; [`struct_fields`] lists what a type deserializes; [`codex`]
//! and [`postgres`] provide the servers that several crates test with.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test support: a panic fails the test that caused it"
)]

pub mod cases;
pub mod codex;
mod files;
mod golden;
mod lines;
pub mod postgres;
pub mod reference_model;
mod scratch;
mod struct_fields;
mod wait;

pub use files::files_below;
pub use golden::Golden;
pub use lines::whole_lines;
pub use scratch::{Invocation, ProcessOutput, Scratch};
pub use struct_fields::struct_fields;
pub use wait::{TEST_TIMEOUT, wait_for, wait_until};
