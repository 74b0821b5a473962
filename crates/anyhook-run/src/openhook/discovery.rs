//! `.openhook.json`: where it is, and which of its consumers get which envelope.
//!
//! The caller decides whether the file is trusted, by the text that [`find`]
//! returns, and runs the [`Delivery`] values of [`deliveries`].

use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_util::fs::read_text;
use openhook::discovery::{FILE_NAME, ParsedDiscovery};
use openhook::{Discovery, Envelope};
use serde::{Deserialize, Serialize};

/// A larger discovery file is not read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The timeout of a consumer that sets none.
pub const DEFAULT_CONSUMER_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest timeout that a consumer can set.
const MAX_CONSUMER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The discovery file that applies.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveryFile {
    pub path: PathBuf,
    /// The folder of the file, in which commands run.
    pub root: PathBuf,
    /// The text that consent covers.
    pub text: String,
}

impl DiscoveryFile {
    pub fn parse(&self) -> ParsedDiscovery {
        Discovery::parse(&self.text)
    }
}

/// A discovery file that exists and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {error}", path.display())]
pub struct UnreadableDiscoveryFile {
    pub path: PathBuf,
    pub error: io::Error,
}

/// The nearest discovery file from a folder upward. The search ends at the
/// root of a repository, and at the home folder.
pub fn find(
    cwd: &Path,
    home: Option<&Path>,
) -> Result<Option<DiscoveryFile>, UnreadableDiscoveryFile> {
    for folder in cwd.ancestors() {
        let path = folder.join(FILE_NAME);
        match read_text(&path, MAX_FILE_BYTES) {
            Ok(text) => {
                return Ok(Some(DiscoveryFile {
                    root: folder.to_owned(),
                    path,
                    text,
                }));
            }
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
            Err(error) => return Err(UnreadableDiscoveryFile { path, error }),
        }
        if folder.join(".git").exists() || Some(folder) == home {
            break;
        }
    }
    Ok(None)
}

/// One envelope for one consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The index of the consumer in the file. Deliveries to one consumer run one
    /// after the other, also if it is asynchronous.
    pub hook: usize,
    /// A shell command.
    pub command: String,
    pub event_type: String,
    /// One line with its newline, for stdin.
    pub envelope_json: String,
    /// Its end is not awaited.
    pub is_async: bool,
    pub timeout: Duration,
}

/// In the order of the envelopes, and for each in the order of the consumers.
pub fn deliveries(discovery: &Discovery, envelopes: &[Envelope]) -> Vec<Delivery> {
    let mut planned = Vec::new();
    for envelope in envelopes {
        let mut line = None;
        for (hook, subscriber) in discovery.hooks.iter().enumerate() {
            if !subscriber.subscribes(&envelope.event_type) {
                continue;
            }
            let line = line.get_or_insert_with(|| envelope.to_json_line());
            planned.push(Delivery {
                hook,
                command: subscriber.command.clone(),
                event_type: envelope.event_type.clone(),
                envelope_json: line.clone(),
                is_async: subscriber.is_async,
                timeout: timeout(subscriber.timeout),
            });
        }
    }
    planned
}

fn timeout(seconds: Option<f64>) -> Duration {
    seconds.map_or(DEFAULT_CONSUMER_TIMEOUT, |seconds| {
        let timeout = Duration::try_from_secs_f64(seconds);
        timeout.map_or(MAX_CONSUMER_TIMEOUT, |it| it.min(MAX_CONSUMER_TIMEOUT))
    })
}
