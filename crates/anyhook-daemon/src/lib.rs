//! The daemon: hooks of every agent over HTTP, a stream of events, a web page.
//!
//! Owns the HTTP interface and its access checks. Runs no hook and knows no agent: both
//! come through [`HookHost`]. Stores no event itself: the store does. Prints nothing.

#![deny(clippy::disallowed_methods)]

mod api;
mod api_error;
mod app;
mod approvals;
mod archiving;
mod body;
mod challenge;
mod client;
mod config;
mod connections;
mod guard;
mod hooks;
mod host;
mod ingest;
mod journal_ingest;
mod live_feed;
mod metrics;
mod page;
mod routes;
mod server;
mod ship;
mod slots;
#[cfg(unix)]
mod socket;
mod stream;
mod token;
mod wrapped;

/// The HTTP API, as the daemon serves it at `/openapi.json`.
pub const OPENAPI_JSON: &str = include_str!("../assets/openapi.json");

pub use archiving::{ArchiveConfig, Archiver};
pub use client::page_link;
pub use config::{DEFAULT_PORT, DaemonConfig, DaemonLimits, JournalSource};
pub use guard::Access;
pub use host::{
    AgentName, FailureReply, HookHost, HookReply, HookRequest, HostSetup, OpenQuestion,
    PreparedCall,
};
pub use routes::{ROUTES, Route};
pub use server::{Daemon, DaemonError, Stopper};
pub use ship::{JournalShipper, ShipError, ShipSummary};
pub use token::{source_file, token_file};
pub use wrapped::{NativeAnswer, WrappedForm};
