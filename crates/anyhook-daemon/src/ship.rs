//! `ship`: sends a machine's journal to a daemon elsewhere.
//!
//! At least once: a position moves only after the daemon has said that it has the
//! lines, and the daemon keeps each id once. Blocks; brings no runtime.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_store::journal::{self, BatchLimit};
use anyhook_store::{Ingested, StoreError};
use serde_json::Value;
use ureq::tls::{RootCerts, TlsConfig};

use crate::ingest::MACHINE_HEADER;

const WAIT_MIN: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);
const CALL: Duration = Duration::from_secs(60);

/// A journal, and where it goes.
#[derive(Debug, Clone)]
pub struct Ship {
    pub journal: PathBuf,
    /// Keeps how far each file was sent.
    pub state: PathBuf,
    /// The daemon's address, without a path.
    pub to: String,
    pub token: String,
    /// Goes with records that name no machine.
    pub machine: Option<String>,
    pub batch: BatchLimit,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shipped {
    pub batches: u64,
    pub events: Ingested,
}

#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// Worth another try.
    #[error("`{to}` does not answer: {reason}")]
    Away {
        to: String,
        reason: String,
        retry_after: Option<Duration>,
    },
    /// Another try would end the same way.
    #[error("`{to}` refuses ({status}): {message}")]
    Refused {
        to: String,
        status: u16,
        message: String,
    },
    #[error(transparent)]
    Journal(#[from] StoreError),
    #[error("`{path}` cannot be kept: {source}")]
    State { path: PathBuf, source: io::Error },
}

type Positions = BTreeMap<String, u64>;

impl Ship {
    /// Sends what is in the journal now.
    pub fn round(&self) -> Result<Shipped, ShipError> {
        let mut positions = self.load();
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(CALL))
            .http_status_as_error(false)
            .max_redirects(0)
            // A company's own authority is known to its machines only.
            .tls_config(
                TlsConfig::builder()
                    .root_certs(RootCerts::PlatformVerifier)
                    .build(),
            )
            .build()
            .new_agent();
        let mut shipped = Shipped::default();
        let files = journal::files(&self.journal)?;
        // Files that are gone need no position.
        let known = positions.len();
        positions.retain(|key, _| files.iter().any(|file| file.key == *key));
        if positions.len() != known {
            self.save(&positions)?;
        }
        for file in files {
            let mut pos = positions.get(&file.key).copied().unwrap_or_default();
            let mut limit = self.batch;
            while pos < file.len {
                let batch = file.read(pos, limit)?;
                if batch.end == pos {
                    break;
                }
                if !batch.lines.is_empty() {
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
                self.save(&positions)?;
            }
        }
        Ok(shipped)
    }

    /// Sends until told to end. `wait` sleeps, and says whether to go on; `note` hears of
    /// every round that sent something or failed.
    pub fn follow(
        &self,
        mut wait: impl FnMut(Duration) -> bool,
        mut note: impl FnMut(&Result<Shipped, ShipError>),
    ) -> Result<(), ShipError> {
        let mut pause = WAIT_MIN;
        loop {
            let done = self.round();
            if !matches!(&done, Ok(shipped) if shipped.batches == 0) {
                note(&done);
            }
            let rest = match done {
                Ok(_) => {
                    pause = WAIT_MIN;
                    LOOK
                }
                Err(ShipError::Away { retry_after, .. }) => {
                    let rest = retry_after.unwrap_or_else(|| jittered(pause));
                    pause = (pause * 2).min(WAIT_MAX);
                    rest.min(WAIT_MAX)
                }
                Err(error) => return Err(error),
            };
            if !wait(rest) {
                return Ok(());
            }
        }
    }

    fn send(&self, agent: &ureq::Agent, lines: &[String]) -> Result<Ingested, ShipError> {
        let away = |reason: String, retry_after| ShipError::Away {
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
            .map_err(|error| away(error.to_string(), None))?;
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let text = response
            .body_mut()
            .read_to_string()
            .map_err(|error| away(error.to_string(), None))?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let count = |key| body.get(key).and_then(Value::as_u64).unwrap_or_default();
        match status {
            // 422: none of these lines is a record, and none will become one.
            200 | 422 if body.get("new").is_some() => Ok(Ingested {
                new: count("new"),
                duplicate: count("duplicate"),
                refused: count("refused"),
            }),
            408 | 425 | 429 | 500.. => Err(away(format!("status {status}"), retry_after)),
            _ => Err(ShipError::Refused {
                to: self.to.clone(),
                status,
                message: body
                    .pointer("/error/message")
                    .and_then(Value::as_str)
                    .unwrap_or("this is no anyhook daemon")
                    .to_owned(),
            }),
        }
    }

    /// A state that cannot be read means sending again, which does no harm.
    fn load(&self) -> Positions {
        std::fs::read_to_string(&self.state)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn save(&self, positions: &Positions) -> Result<(), ShipError> {
        let failed = |source| ShipError::State {
            path: self.state.clone(),
            source,
        };
        replace(&self.state, positions).map_err(failed)
    }
}

fn replace(path: &Path, positions: &Positions) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let mut file = std::fs::File::create(&beside)?;
    serde_json::to_writer(&mut file, positions)?;
    file.flush()?;
    file.sync_all()?;
    std::fs::rename(beside, path)
}

/// Between half and the whole of a pause, so that machines do not come back in step.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness the pause is merely not spread.
    let _ = getrandom::fill(&mut byte);
    let [byte] = byte;
    pause.mul_f64(0.5 + f64::from(byte) / 510.0)
}
