//! An additional client of a running app-server that stays attached: it connects, and
//! reconnects with growing pauses when the server goes away.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Error as SocketError;
use tokio_util::sync::CancellationToken;

use crate::connection::{self, ConnectionEnd};
use crate::endpoint::Endpoint;
use crate::hooks::{Decide, HookWorkers};

#[derive(Debug, Clone)]
pub struct AttachOptions {
    pub endpoint: Endpoint,
    /// For a server that was started with `--ws-auth`.
    pub bearer: Option<String>,
    /// No other client answers. The server asks all its clients at once and takes the
    /// first answer, so by default a request without a decision is left to the others;
    /// with this it is declined.
    pub answer_all: bool,
    pub backoff: Backoff,
    pub ping_interval: Duration,
    /// Silence after which a connection counts as dead, and the limit for connecting,
    /// initializing and sending.
    pub timeout: Duration,
    /// How long hooks may still receive notices at the end.
    pub drain: Duration,
    /// Failures in a row after which to give up; `None` never gives up.
    pub max_failures: Option<u32>,
}

impl AttachOptions {
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            bearer: None,
            answer_all: false,
            backoff: Backoff::default(),
            ping_interval: Duration::from_secs(15),
            timeout: Duration::from_secs(40),
            drain: Duration::from_secs(5),
            max_failures: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
    /// After a connection that lasted this long, the next pause is the first again.
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            max: Duration::from_secs(30),
            reset_after: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    /// The pause after this many failures in a row (from 1): doubled each time up to the
    /// maximum, minus up to half of it by `random`, so that clients of one server do not
    /// reconnect in step.
    pub fn pause(&self, failures: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        let whole = self.first.saturating_mul(doubled).min(self.max);
        let part = u32::try_from(random % 1001).unwrap_or_default();
        whole.saturating_sub(whole / 2 * part / 1000)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachStatus {
    Connecting,
    /// `server` is the server's own name.
    Attached {
        server: String,
    },
    Lost {
        why: String,
        pause: Duration,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachSummary {
    /// The number of connections.
    pub connections: u32,
    /// Notices that were dropped because the queue was full.
    pub dropped_events: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("could not start the async runtime: {0}")]
    Runtime(std::io::Error),
    #[error("{endpoint} refused the connection (HTTP {status}); it may require a token")]
    Refused { endpoint: String, status: u16 },
    #[error("{endpoint}: gave up after {failures} failures; last error: {last}")]
    GaveUp {
        endpoint: String,
        failures: u32,
        last: String,
    },
}

/// Stays attached until `cancel`. `on_status` is called at each change.
pub async fn attach(
    options: AttachOptions,
    decide: Arc<dyn Decide>,
    cancel: CancellationToken,
    on_status: impl Fn(AttachStatus) + Send + Sync,
) -> Result<AttachSummary, AttachError> {
    let hooks = HookWorkers::new(decide);
    let mut connections = 0;
    let result = stay_attached(&options, &hooks, &cancel, &on_status, &mut connections).await;
    let drain = options.drain;
    let dropped = tokio::task::spawn_blocking(move || hooks.finish(drain)).await;
    result.map(|()| AttachSummary {
        connections,
        dropped_events: dropped.unwrap_or_default(),
    })
}

/// [`attach`] for a caller without a runtime.
pub fn attach_blocking(
    options: AttachOptions,
    decide: Arc<dyn Decide>,
    cancel: CancellationToken,
    on_status: impl Fn(AttachStatus) + Send + Sync,
) -> Result<AttachSummary, AttachError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AttachError::Runtime)?
        .block_on(attach(options, decide, cancel, on_status))
}

async fn stay_attached(
    options: &AttachOptions,
    hooks: &HookWorkers,
    cancel: &CancellationToken,
    on_status: &(impl Fn(AttachStatus) + Send + Sync),
    connections: &mut u32,
) -> Result<(), AttachError> {
    let endpoint = || options.endpoint.to_string();
    let mut failures = 0;
    loop {
        on_status(AttachStatus::Connecting);
        let connect = options.endpoint.connect(options.bearer.as_deref());
        let connect = tokio::time::timeout(options.timeout, connect);
        let Some(connected) = cancel.run_until_cancelled(connect).await else {
            return Ok(());
        };
        let why = match connected {
            Ok(Ok(socket)) => {
                let began = Instant::now();
                let attached = |server: String| {
                    *connections += 1;
                    on_status(AttachStatus::Attached { server });
                };
                match connection::run(socket, options, hooks, cancel, attached).await {
                    ConnectionEnd::Cancelled => return Ok(()),
                    ConnectionEnd::Lost(why) => {
                        if began.elapsed() >= options.backoff.reset_after {
                            failures = 0;
                        }
                        why
                    }
                }
            }
            Ok(Err(SocketError::Http(response)))
                if matches!(response.status().as_u16(), 401 | 403) =>
            {
                return Err(AttachError::Refused {
                    endpoint: endpoint(),
                    status: response.status().as_u16(),
                });
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "connecting timed out".into(),
        };
        failures += 1;
        if options.max_failures.is_some_and(|max| failures >= max) {
            return Err(AttachError::GaveUp {
                endpoint: endpoint(),
                failures,
                last: why,
            });
        }
        let pause = options
            .backoff
            .pause(failures, RandomState::new().hash_one(failures));
        on_status(AttachStatus::Lost { why, pause });
        let sleep = tokio::time::sleep(pause);
        if cancel.run_until_cancelled(sleep).await.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_within_bounds() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            max: Duration::from_secs(2),
            reset_after: Duration::from_secs(1),
        };
        let whole: Vec<_> = (1..=7)
            .map(|failures| backoff.pause(failures, 0).as_millis())
            .collect();
        assert_eq!(whole, [100, 200, 400, 800, 1600, 2000, 2000]);
        for random in [0, 1, 500, 999, 1000, u64::MAX] {
            let pause = backoff.pause(u32::MAX, random);
            assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&pause));
        }
        assert_eq!(backoff.pause(1, 1000), Duration::from_millis(50));
    }
}
