//! End-to-end checks in the real agents: a fake model on loopback, and a runner that runs shipped clients against
//! it, headless and offline. Test-only; no other crate of the project may depend on it.
//!
//! Facts about clients are data (`clients.toml`, `clients/<slug>/`); no module here names a client.

pub mod bridge;
pub mod cache;
pub mod captures;
pub mod client;
mod command;
pub mod error;
pub mod expect;
pub mod fake_model;
pub mod hook;
pub mod isolation;
pub mod job;
pub mod page;
pub mod placeholder;
mod pool;
pub mod proof;
pub mod report;
pub mod sandbox;
pub mod scenario;
pub mod script;
pub mod session;
pub mod shape;
pub mod situation;
pub mod smoke;
pub mod tools;
pub mod wire;
