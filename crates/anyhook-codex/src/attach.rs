//! A further client of a running app-server, which stays attached: it connects,
//! and connects again with growing pauses when the server goes away.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Error as SocketError;
use tokio_util::sync::CancellationToken;

use crate::decide::{Decide, Hooks};
use crate::endpoint::Endpoint;
use crate::session::{self, Why};

#[derive(Debug, Clone)]
pub struct AttachOptions {
    pub endpoint: Endpoint,
    /// For a server that was started with `--ws-auth`.
    pub bearer: Option<String>,
    /// Whether no other client answers. The server asks all its clients at once
    /// and takes the first answer, so by default a request without a decision is
    /// left to the others; with this it is declined, because nobody is there.
    pub answer_all: bool,
    pub backoff: Backoff,
    /// How often a quiet connection is tried.
    pub ping_every: Duration,
    /// Silence after which it counts as dead, and the time that connecting,
    /// greeting and sending may take.
    pub patience: Duration,
    /// How long notices may still be heard at the end.
    pub drain: Duration,
    /// Failures in a row after which to end; `None` tries for ever.
    pub give_up_after: Option<u32>,
}

impl AttachOptions {
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            bearer: None,
            answer_all: false,
            backoff: Backoff::default(),
            ping_every: Duration::from_secs(15),
            patience: Duration::from_secs(40),
            drain: Duration::from_secs(5),
            give_up_after: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub most: Duration,
    /// A connection that lasted this long makes the next pause the first again.
    pub steady: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            most: Duration::from_secs(30),
            steady: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    /// The pause after so many failures in a row (from 1): doubled each time up
    /// to the most, of which `random` takes up to half away, so that many
    /// clients of one server do not come back together.
    pub fn pause(&self, failures: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        let whole = self.first.saturating_mul(doubled).min(self.most);
        let part = u32::try_from(random % 1001).unwrap_or_default();
        whole.saturating_sub(whole / 2 * part / 1000)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Connecting,
    /// What the server says of itself.
    Attached {
        server: String,
    },
    Lost {
        why: String,
        pause: Duration,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachEnded {
    /// How many times there was a connection.
    pub connections: u32,
    /// Notices that no hook heard for want of room.
    pub dropped_events: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("cannot wait for a socket: {0}")]
    Runtime(std::io::Error),
    #[error("{endpoint} refuses the connection (HTTP {status}); does it want a token?")]
    Refused { endpoint: String, status: u16 },
    #[error("{endpoint}: gave up after {failures} failures; the last: {last}")]
    GaveUp {
        endpoint: String,
        failures: u32,
        last: String,
    },
}

/// Stays attached until `cancel`. `tell` hears of each change.
pub async fn attach(
    options: AttachOptions,
    decide: Arc<dyn Decide>,
    cancel: CancellationToken,
    tell: impl Fn(Status) + Send + Sync,
) -> Result<AttachEnded, AttachError> {
    let hooks = Hooks::new(decide);
    let mut connections = 0;
    let result = stay(&options, &hooks, &cancel, &tell, &mut connections).await;
    let drain = options.drain;
    let dropped = tokio::task::spawn_blocking(move || hooks.finish(drain)).await;
    result.map(|()| AttachEnded {
        connections,
        dropped_events: dropped.unwrap_or_default(),
    })
}

/// [`attach`] for a caller without a runtime.
pub fn attach_blocking(
    options: AttachOptions,
    decide: Arc<dyn Decide>,
    cancel: CancellationToken,
    tell: impl Fn(Status) + Send + Sync,
) -> Result<AttachEnded, AttachError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AttachError::Runtime)?
        .block_on(attach(options, decide, cancel, tell))
}

async fn stay(
    options: &AttachOptions,
    hooks: &Hooks,
    cancel: &CancellationToken,
    tell: &(impl Fn(Status) + Send + Sync),
    connections: &mut u32,
) -> Result<(), AttachError> {
    let endpoint = || options.endpoint.to_string();
    let mut failures = 0;
    loop {
        tell(Status::Connecting);
        let connect = options.endpoint.connect(options.bearer.as_deref());
        let Some(connected) = unless(cancel, tokio::time::timeout(options.patience, connect)).await
        else {
            return Ok(());
        };
        let why = match connected {
            Ok(Ok(socket)) => {
                let began = Instant::now();
                let attached = |server: String| {
                    *connections += 1;
                    tell(Status::Attached { server });
                };
                match session::run(socket, options, hooks, cancel, attached).await {
                    Why::Cancelled => return Ok(()),
                    Why::Lost(why) => {
                        if began.elapsed() >= options.backoff.steady {
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
            Err(_) => "no connection in time".into(),
        };
        failures += 1;
        if options.give_up_after.is_some_and(|most| failures >= most) {
            return Err(AttachError::GaveUp {
                endpoint: endpoint(),
                failures,
                last: why,
            });
        }
        let pause = options
            .backoff
            .pause(failures, RandomState::new().hash_one(failures));
        tell(Status::Lost { why, pause });
        if unless(cancel, tokio::time::sleep(pause)).await.is_none() {
            return Ok(());
        }
    }
}

/// `None` when cancelled first.
pub(crate) async fn unless<F: Future>(cancel: &CancellationToken, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        output = future => Some(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_within_bounds() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            most: Duration::from_secs(2),
            steady: Duration::from_secs(1),
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
