//! The daemon's settings. Every default is the safe one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhook_store::Retention;

pub use anyhook_util::challenge::DEFAULT_PORT;

use crate::archiving::ArchiveConfig;

#[derive(Debug, Clone)]
pub struct DaemonConfig {
    pub listen: SocketAddr,
    /// Where this user's own programs reach the daemon too. Unix only.
    pub socket: Option<PathBuf>,
    /// Accepted `Host` names, in addition to `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Hook calls from loopback need the token too.
    pub require_token: bool,
    /// Gives a caller access to reading and ingesting. See [`crate::token_file`].
    pub token: String,
    pub journal: Option<JournalSource>,
    pub retention: Retention,
    pub archive: ArchiveConfig,
    pub limits: DaemonLimits,
    /// SIGINT and SIGTERM stop the daemon after running requests have finished.
    pub signals: bool,
}

/// The journal that this daemon ingests into its store.
#[derive(Debug, Clone)]
pub struct JournalSource {
    pub dir: PathBuf,
    /// Identifies this journal among all that are ingested into the same store. See [`crate::source_file`].
    pub source: String,
}

#[derive(Debug, Clone, Copy)]
pub struct DaemonLimits {
    pub body_bytes: usize,
    /// For the headers of a request, and for the next request on a kept-alive connection.
    pub head_timeout: Duration,
    /// For the body of a request.
    pub body_timeout: Duration,
    /// Of each listener, in addition to `streams`.
    pub connections: usize,
    pub streams: usize,
    /// Calls whose hooks run at the same time; further calls wait.
    pub hooks: usize,
    /// How long a call waits for others to end, and how long finding its hooks may take.
    pub hook_start_timeout: Duration,
    /// Requests that read the store at the same time; further requests wait.
    pub store_reads: usize,
    /// For a request that reads the store.
    pub store_timeout: Duration,
    /// Bodies that are ingested at the same time have at most this many bytes together, or
    /// one body of the largest size; further requests wait.
    pub ingest_bytes: usize,
    /// For a request that ingests.
    pub ingest_timeout: Duration,
    /// How long a stop waits for running requests.
    pub drain: Duration,
}

impl Default for DaemonLimits {
    fn default() -> Self {
        Self {
            body_bytes: 16 * 1024 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
            connections: 512,
            streams: 1000,
            hooks: 192,
            hook_start_timeout: Duration::from_secs(10),
            store_reads: 32,
            store_timeout: Duration::from_secs(30),
            ingest_bytes: 16 * 1024 * 1024,
            // A shipper gives up after a minute.
            ingest_timeout: Duration::from_secs(55),
            drain: Duration::from_secs(30),
        }
    }
}

impl DaemonConfig {
    pub fn new(token: impl Into<String>) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into(),
            socket: None,
            hosts: Vec::new(),
            require_token: false,
            token: token.into(),
            journal: None,
            retention: Retention::default(),
            archive: ArchiveConfig::default(),
            limits: DaemonLimits::default(),
            signals: false,
        }
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.listen.ip().is_loopback()
    }
}
