//! Runs one hook: writes its input in its dialect, runs its process or request,
//! and turns its answer into an outcome.

pub mod dialect;
pub mod evaluator;
pub mod exec;
pub mod guard;
pub mod handler;
pub mod http;
pub mod spend;
pub mod supervise;
