//! Hooks for Codex's app-server protocol.
//!
//! Two ways in: [`Proxy`] stands between a client and the server that it starts,
//! [`attach`] is a further client of a server that runs already. Both turn what
//! the server says into canonical events ([`map`]) and answer its approval
//! requests with what the hooks decide ([`approval`]). The hooks themselves are
//! behind [`Decide`]; no other part of anyhook is known here. [`state`] lets
//! others see which bridges run.

pub mod approval;
mod attach;
mod bounded;
mod decide;
mod endpoint;
mod items;
pub mod map;
mod process;
mod proxy;
pub mod pump;
mod request;
mod session;
mod shell;
pub mod state;
mod tools;
pub mod wire;

pub use approval::{Verdict, losses};
pub use attach::{
    AttachEnded, AttachError, AttachOptions, Backoff, Status, attach, attach_blocking,
};
pub use decide::{Decide, Ruling};
pub use endpoint::{Endpoint, EndpointError};
pub use proxy::{Proxy, ProxyEnded, ProxyError, ProxyOptions, Stop};
pub use tokio_util::sync::CancellationToken;
