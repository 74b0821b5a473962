//! Hooks for Codex's app-server protocol.
//!
//! Two ways in: [`Proxy`] stands between a client and the server that it starts,
//! [`attach`] is a further client of a server that runs already. Both turn what
//! the server says into canonical events ([`map`]) and answer its approval
//! requests with what the hooks decide ([`approval`]). The hooks themselves are
//! behind [`Decide`]; no other part of anyhook is known here.

pub mod approval;
mod attach;
mod bounded;
mod decide;
mod endpoint;
mod items;
pub mod map;
mod process;
mod proxy;
mod pump;
mod request;
mod session;
mod shell;
mod tools;
pub mod wire;

pub use approval::{Verdict, losses};
pub use attach::{AttachEnded, AttachError, AttachOptions, Backoff, Status, attach};
pub use decide::Decide;
pub use endpoint::{Endpoint, EndpointError};
pub use proxy::{Proxy, ProxyEnded, ProxyError, ProxyOptions, Stop};
