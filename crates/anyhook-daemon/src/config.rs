//! How a daemon is set up. Every default is the careful one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhook_store::Retention;

pub const DEFAULT_PORT: u16 = 8765;

#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// Names under which this daemon may be called, beside `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Ask for the token on loopback hooks too.
    pub require_token: bool,
    /// Lets a caller read and ingest. See [`crate::token_file`].
    pub token: String,
    pub journal: Option<JournalSource>,
    pub retention: Retention,
    pub limits: Limits,
    /// Stop, with drain, on SIGINT and SIGTERM.
    pub signals: bool,
}

/// The journal that this daemon carries into its store.
#[derive(Debug, Clone)]
pub struct JournalSource {
    pub dir: PathBuf,
    /// Names this journal among all that go into the same store. See [`crate::source_file`].
    pub source: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub body_bytes: usize,
    /// For the head of a request, and for the next request on a kept connection.
    pub head_timeout: Duration,
    /// For the body of a request.
    pub body_timeout: Duration,
    pub connections: usize,
    /// Of which so many may be streams.
    pub streams: usize,
    /// Events whose hooks run at the same time; more wait.
    pub hooks: usize,
    /// How long a stop waits for requests that are under way.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 * 1024 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
            connections: 512,
            streams: 64,
            hooks: 192,
            drain: Duration::from_secs(30),
        }
    }
}

impl Config {
    pub fn new(token: impl Into<String>) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into(),
            hosts: Vec::new(),
            require_token: false,
            token: token.into(),
            journal: None,
            retention: Retention::default(),
            limits: Limits::default(),
            signals: false,
        }
    }
}
