//! Proof in the real agents: a fake model on loopback, and a runner that drives shipped clients against it,
//! headless and offline. Test-only; no other crate of the project may depend on it.
//!
//! What is known of a client is data (`clients.toml`, `clients/<slug>/`); no module here names one.

pub mod bridge;
pub mod cache;
pub mod captures;
pub mod client;
pub mod error;
pub mod expect;
pub mod fake_model;
pub mod hook;
pub mod inside;
pub mod isolation;
pub mod page;
pub mod placeholder;
pub mod proof;
pub mod report;
pub mod scenario;
pub mod scratch;
pub mod script;
pub mod session;
pub mod shape;
pub mod smoke;
pub mod tools;
pub mod wire;
