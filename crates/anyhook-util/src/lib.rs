//! Small helpers that several crates of the workspace share, each written once.
//!
//! Everything here is light enough for the `run` path. The core crates may use
//! only the pure modules: [`hash`], [`percent`], [`shell`] and the formatting
//! half of [`time`] (checked by `xtask/src/tidy.rs`).

#![deny(clippy::disallowed_methods)]

pub mod challenge;
pub mod env;
pub mod fs;
pub mod hash;
pub mod headers;
#[cfg(feature = "http")]
pub mod http;
pub mod paths;
pub mod percent;
pub mod shell;
pub mod sync;
pub mod system;
pub mod time;
