//! `ship`: sends this machine's journal to another machine's daemon.
//!
//! Delivers at least once: a position advances only after the daemon has confirmed the
//! lines, and the daemon stores each id once. Blocks; needs no runtime.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhook_store::journal::{self, BatchLimit};
use anyhook_store::{IngestCounts, StoreError};
use anyhook_util::fs::replace_durably;
use anyhook_util::time::jittered;
use serde_json::Value;

use crate::client::{self, ProofError};
use crate::ingest::MACHINE_HEADER;

const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends one journal to one daemon.
#[derive(Debug, Clone)]
pub struct JournalShipper {
    pub journal: PathBuf,
    /// The file with the position in each journal file.
    pub state: PathBuf,
    /// The daemon's address, without a path.
    pub to: String,
    pub token: String,
    /// For records that name no machine.
    pub machine: Option<String>,
    pub batch: BatchLimit,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShipSummary {
    pub batches: u64,
    pub events: IngestCounts,
}

#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// A retry may succeed.
    #[error("`{to}` is not available: {reason}")]
    Unavailable {
        to: String,
        reason: String,
        retry_after: Option<Duration>,
    },
    /// A retry would fail the same way.
    #[error("`{to}` refused the request ({status}): {message}")]
    Refused {
        to: String,
        status: u16,
        message: String,
    },
    #[error("nothing was sent to `{to}`: the server there does not know the token")]
    Untrusted { to: String },
    #[error(transparent)]
    Journal(#[from] StoreError),
    #[error("could not write `{path}`: {source}")]
    State { path: PathBuf, source: io::Error },
}

type Positions = BTreeMap<String, u64>;

impl JournalShipper {
    /// Sends what the journal contains now.
    pub fn ship_once(&self) -> Result<ShipSummary, ShipError> {
        let mut positions = self.load_positions();
        let agent = client::http_agent(REQUEST_TIMEOUT);
        let mut shipped = ShipSummary::default();
        let files = journal::files(&self.journal)?;
        // Deleted files need no position.
        let known = positions.len();
        positions.retain(|key, _| files.iter().any(|file| file.key == *key));
        if positions.len() != known {
            self.save_positions(&positions)?;
        }
        let mut is_trusted = self.has_certificate();
        for file in files {
            let mut pos = positions.get(&file.key).copied().unwrap_or_default();
            let mut limit = self.batch;
            while pos < file.len {
                let batch = file.read_lines(pos, limit)?;
                if batch.end == pos {
                    break;
                }
                if !batch.lines.is_empty() {
                    if !is_trusted {
                        self.challenge(&agent)?;
                        is_trusted = true;
                    }
                    match self.send(&agent, &batch.lines) {
                        Ok(done) => {
                            shipped.events += done;
                            shipped.batches += 1;
                        }
                        Err(ShipError::Refused { status: 413, .. }) if batch.lines.len() > 1 => {
                            limit.lines = batch.lines.len() / 2;
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
                shipped.events.refused += batch.refused;
                pos = batch.end;
                positions.insert(file.key.clone(), pos);
                self.save_positions(&positions)?;
            }
        }
        Ok(shipped)
    }

    /// Whether the daemon is there and takes the token.
    pub fn check_access(&self) -> Result<(), ShipError> {
        let agent = client::http_agent(REQUEST_TIMEOUT);
        if !self.has_certificate() {
            self.challenge(&agent)?;
        }
        self.send(&agent, &[]).map(drop)
    }

    /// Sends until `wait`, which sleeps, returns false. `note` gets the result of every round
    /// that sent something or failed.
    pub fn follow(
        &self,
        mut wait: impl FnMut(Duration) -> bool,
        mut note: impl FnMut(&Result<ShipSummary, ShipError>),
    ) -> Result<(), ShipError> {
        let mut retry_delay = MIN_RETRY_DELAY;
        loop {
            let done = self.ship_once();
            if !matches!(&done, Ok(shipped) if shipped.batches == 0) {
                note(&done);
            }
            let delay = match done {
                Ok(_) => {
                    retry_delay = MIN_RETRY_DELAY;
                    JOURNAL_POLL_INTERVAL
                }
                Err(ShipError::Unavailable { retry_after, .. }) => {
                    let delay = retry_after.unwrap_or_else(|| jittered(retry_delay));
                    retry_delay = (retry_delay * 2).min(MAX_RETRY_DELAY);
                    delay.min(MAX_RETRY_DELAY)
                }
                Err(error) => return Err(error),
            };
            if !wait(delay) {
                return Ok(());
            }
        }
    }

    fn has_certificate(&self) -> bool {
        let scheme = self.to.split("://").next();
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
    }

    /// Lets the daemon prove that it knows the token before it is sent there.
    fn challenge(&self, agent: &ureq::Agent) -> Result<(), ShipError> {
        let to = self.to.clone();
        client::check_proof(agent, &self.to, &self.token).map_err(|error| match error {
            ProofError::Untrusted => ShipError::Untrusted { to },
            ProofError::Unavailable(reason) => ShipError::Unavailable {
                to,
                reason,
                retry_after: None,
            },
        })
    }

    fn send(&self, agent: &ureq::Agent, lines: &[String]) -> Result<IngestCounts, ShipError> {
        let unavailable = |reason: String, retry_after| ShipError::Unavailable {
            to: self.to.clone(),
            reason,
            retry_after,
        };
        let mut request = agent
            .post(format!("{}/ingest", self.to.trim_end_matches('/')))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/x-ndjson");
        if let Some(machine) = &self.machine {
            request = request.header(MACHINE_HEADER, machine);
        }
        let mut response = request
            .send(lines.join("\n"))
            .map_err(|error| unavailable(error.to_string(), None))?;
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let text = response
            .body_mut()
            .read_to_string()
            .map_err(|error| unavailable(error.to_string(), None))?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let count = |key| body.get(key).and_then(Value::as_u64).unwrap_or_default();
        match status {
            // 422: none of these lines is a record, and a retry does not change that.
            200 | 422 if body.get("new").is_some() => Ok(IngestCounts {
                new: count("new"),
                duplicate: count("duplicate"),
                refused: count("refused"),
            }),
            408 | 425 | 429 | 500.. => Err(unavailable(format!("status {status}"), retry_after)),
            _ => Err(ShipError::Refused {
                to: self.to.clone(),
                status,
                message: body
                    .pointer("/error/message")
                    .and_then(Value::as_str)
                    .unwrap_or("the response is not from an anyhook daemon")
                    .to_owned(),
            }),
        }
    }

    /// With an unreadable state everything is sent again, which does no harm.
    fn load_positions(&self) -> Positions {
        std::fs::read_to_string(&self.state)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn save_positions(&self, positions: &Positions) -> Result<(), ShipError> {
        let saved = serde_json::to_vec(positions)
            .map_err(io::Error::from)
            .and_then(|text| replace_durably(&self.state, &text));
        saved.map_err(|source| ShipError::State {
            path: self.state.clone(),
            source,
        })
    }
}
