//! `anyhook run` as agents call it: real processes, real files.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod detached;
mod faults;
mod odd;
mod order;
mod places;
mod policy;
mod remote;
mod scratch;
mod trust;
