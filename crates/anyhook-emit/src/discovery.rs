//! `.openhook.json`: where it is, and what of it is to be run for which event.
//!
//! Whether the file is trusted, and the running itself, is the caller's matter:
//! [`find`] gives the text to ask consent for, [`dispatch`] hands each delivery
//! to a [`Deliver`]. A consumer that fails is reported and touches nothing else.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use openhook::discovery::{FILE_NAME, Read as Reading};
use openhook::{Discovery, Envelope};
use serde::{Deserialize, Serialize};

/// A discovery file larger than this is not read.
const SIZE_LIMIT: u64 = 1024 * 1024;

/// How long a consumer may take that sets no limit of its own.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// No consumer is waited for longer, whatever it asks for.
const MOST: Duration = Duration::from_secs(24 * 3600);

/// A discovery file that applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub path: PathBuf,
    /// The folder that it lies in: commands run there.
    pub root: PathBuf,
    /// As it was read: what consent is given for.
    pub text: String,
    pub reading: Reading,
}

/// A file that is there and cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    pub path: PathBuf,
    pub error: io::Error,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{} cannot be read: {}",
            self.path.display(),
            self.error
        )
    }
}

impl std::error::Error for Unreadable {}

/// The nearest discovery file from a folder upward. The search ends at the
/// root of a repository, and at the home folder.
pub fn find(cwd: &Path, home: Option<&Path>) -> Result<Option<Found>, Unreadable> {
    for folder in cwd.ancestors() {
        let path = folder.join(FILE_NAME);
        match read(&path) {
            Ok(text) => {
                return Ok(Some(Found {
                    reading: Discovery::read(&text),
                    root: folder.to_owned(),
                    path,
                    text,
                }));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) => {}
            Err(error) => return Err(Unreadable { path, error }),
        }
        if folder.join(".git").exists() || Some(folder) == home {
            break;
        }
    }
    Ok(None)
}

fn read(path: &Path) -> io::Result<String> {
    // A pipe in its place would never end, not even in its opening.
    let data = std::fs::metadata(path)?;
    if !data.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if data.len() > SIZE_LIMIT {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(SIZE_LIMIT)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// One envelope for one consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Which of the file's hooks it is, counted from 0. Deliveries of one
    /// asynchronous hook are to be run one after the other as well.
    pub hook: usize,
    /// For the shell.
    pub command: String,
    pub event_type: String,
    /// For its stdin: one line with its end.
    pub envelope_json: String,
    /// Nobody waits for its end.
    pub is_async: bool,
    pub timeout: Duration,
}

/// Who gets what: envelopes in their order, and for each the hooks in theirs.
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
    seconds.map_or(DEFAULT_TIMEOUT, |seconds| {
        Duration::try_from_secs_f64(seconds).map_or(MOST, |timeout| timeout.min(MOST))
    })
}

/// Runs consumers.
pub trait Deliver {
    /// Gives the envelope to the command. The error is for people: what went
    /// wrong and with which exit code.
    fn deliver(&mut self, delivery: &Delivery) -> Result<(), String>;
}

/// A consumer that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub command: String,
    pub event_type: String,
    pub message: String,
}

/// Delivers one after the other. A failure is noted, and the rest goes on.
pub fn dispatch(deliveries: &[Delivery], runner: &mut dyn Deliver) -> Vec<Failure> {
    deliveries
        .iter()
        .filter_map(|delivery| {
            let message = runner.deliver(delivery).err()?;
            Some(Failure {
                command: delivery.command.clone(),
                event_type: delivery.event_type.clone(),
                message,
            })
        })
        .collect()
}
