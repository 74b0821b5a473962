//! The daemon: hooks of every agent over HTTP, the stream of events, the page.
//!
//! Owns the HTTP surface and what keeps it safe. Runs no hook and knows no agent:
//! both come through [`HookHost`]. Keeps no event: that is the store's. Prints nothing.

mod api;
mod app;
mod body;
mod config;
mod guard;
mod hooks;
mod host;
mod ingest;
mod metrics;
mod page;
mod refusal;
mod routes;
mod server;
mod ship;
mod stream;
mod tail;
mod token;
pub mod wrapper;

pub use config::{Config, DEFAULT_PORT, JournalSource, Limits};
pub use guard::Access;
pub use hooks::{CWD_HEADER, EXIT_HEADER, STDERR_HEADER, UNATTENDED_HEADER};
pub use host::{AgentName, HookHost, HookReply, HookRequest};
pub use ingest::MACHINE_HEADER;
pub use routes::{ROUTES, Route};
pub use server::{Daemon, DaemonError, Stopper};
pub use ship::{Ship, ShipError, Shipped};
pub use token::{source_file, token_file};
