//! Hooks for Codex's app-server protocol.
//!
//! Two ways in: [`Proxy`] runs between a client and the server that it starts,
//! [`attach`] is an additional client of a running server. Both turn messages of the
//! server into canonical events ([`map`]) and answer its approval requests with what
//! the hooks decide ([`approval`]). The hooks are behind [`Decide`]; this crate knows
//! no other part of anyhook. [`state`] lists the running bridges.

#![deny(clippy::disallowed_methods)]

pub mod approval;
mod attach;
mod bounded_map;
mod connection;
mod endpoint;
mod hooks;
mod items;
pub mod map;
mod open_requests;
mod process;
mod proxy;
pub mod pump;
mod request;
mod shell;
pub mod state;
mod tools;
pub mod wire;

pub use approval::{ApprovalVerdict, response_losses};
pub use attach::{
    AttachError, AttachOptions, AttachStatus, AttachSummary, Backoff, attach, attach_blocking,
};
pub use endpoint::{Endpoint, EndpointError};
pub use hooks::{Decide, Ruling};
pub use proxy::{Proxy, ProxyError, ProxyOptions, ProxyStopper, ProxySummary};
pub use tokio_util::sync::CancellationToken;
