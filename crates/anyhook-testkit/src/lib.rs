//! Test support of anyhook; no product crate may depend on it outside
//! `[dev-dependencies]`.
//!
//! [`oracle`] answers "what would this agent do with that answer?" from the
//! recorded facts alone. It shares neither code nor tables with the adapters:
//! a mistake made there must not be able to hide here.
//!
//! [`Scratch`] is a project and a home of their own for tests that run a real
//! binary; [`cases`] reads folders of test cases; [`Golden`] compares what is
//! found with what was recorded; [`whole_lines`] reads a journal while others
//! write it.

pub mod cases;
mod golden;
mod lines;
pub mod oracle;
mod scratch;

pub use golden::Golden;
pub use lines::whole_lines;
pub use scratch::{Invocation, Ran, Scratch};
