//! The record of model calls: one line per call in a file per month.
//!
//! Only the collector writes it, and its saved state has the length of each file: what a
//! killed collector has written beyond that is cut off and written again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhook_util::fs::{open_in_private_dir, private_file_options};
use serde::{Deserialize, Serialize};

const FILE_NAME_PREFIX: &str = "calls-";
const FILE_NAME_SUFFIX: &str = ".jsonl";
const MAX_LINE_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Cached tokens included.
    #[serde(rename = "in")]
    pub input: u64,
    /// Reasoning included.
    #[serde(rename = "out")]
    pub output: u64,
    pub cache_read: u64,
    /// For any time.
    pub cache_creation: u64,
    /// Those of them that were written for an hour, which costs more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_creation_hour: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde fixes the signature"
)]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TokenCounts {
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
        self.cache_creation_hour = self
            .cache_creation_hour
            .saturating_add(other.cache_creation_hour);
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_creation: self.cache_creation.max(other.cache_creation),
            cache_creation_hour: self.cache_creation_hour.max(other.cache_creation_hour),
        }
    }

    /// What is new since an earlier count of the same call.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cache_read: self.cache_read.saturating_sub(earlier.cache_read),
            cache_creation: self.cache_creation.saturating_sub(earlier.cache_creation),
            cache_creation_hour: self
                .cache_creation_hour
                .saturating_sub(earlier.cache_creation_hour),
        }
    }
}

/// Tokens of one call of a model. A call may have several lines, which add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Identifies the call in its session.
    pub id: String,
    /// Microseconds since 1970.
    pub time_us: i64,
    pub agent: String,
    #[serde(default)]
    pub session: String,
    #[serde(default)]
    pub model: String,
    #[serde(flatten)]
    pub tokens: TokenCounts,
}

#[derive(Debug, Clone)]
pub struct UsageLedger {
    folder: PathBuf,
}

/// The length of each file.
pub(crate) type LedgerLengths = BTreeMap<String, u64>;

impl UsageLedger {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Cuts off what a killed collector has written and not counted.
    pub(crate) fn restore(&self, lengths: &LedgerLengths) -> io::Result<()> {
        for name in self.file_names() {
            let length = lengths.get(&name).copied().unwrap_or_default();
            let path = self.folder.join(&name);
            if std::fs::metadata(&path)?.len() > length {
                File::options().write(true).open(&path)?.set_len(length)?;
            }
        }
        Ok(())
    }

    /// The length of each file, where no state says it. A line that a killed collector has
    /// begun gets an end.
    pub(crate) fn whole_lines(&self) -> io::Result<LedgerLengths> {
        let mut lengths = LedgerLengths::new();
        for name in self.file_names() {
            let path = self.folder.join(&name);
            let mut file = File::options().read(true).append(true).open(&path)?;
            let mut last = [b'\n'];
            if file.metadata()?.len() > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            if last != [b'\n'] {
                file.write_all(b"\n")?;
            }
            lengths.insert(name, file.metadata()?.len());
        }
        Ok(lengths)
    }

    pub(crate) fn append(
        &self,
        calls: &[ModelCall],
        lengths: &mut LedgerLengths,
    ) -> io::Result<()> {
        let mut texts: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for call in calls {
            let text = texts.entry(file_name(call.time_us)).or_default();
            serde_json::to_writer(&mut *text, call)?;
            text.push(b'\n');
        }
        for (name, text) in texts {
            let mut options = private_file_options();
            options.append(true).create(true);
            let mut file = open_in_private_dir(&options, &self.folder.join(&name))?;
            file.write_all(&text)?;
            lengths.insert(name, file.metadata()?.len());
        }
        Ok(())
    }

    /// Calls `visit` with every line since a time.
    pub fn for_each(&self, since_us: Option<i64>, mut visit: impl FnMut(ModelCall)) {
        let first = since_us.map(file_name).unwrap_or_default();
        for name in self.file_names().into_iter().filter(|name| *name >= first) {
            let mut position = 0;
            self.visit_file(&name, &mut position, &mut |call: ModelCall| {
                if since_us.is_none_or(|since| call.time_us >= since) {
                    visit(call);
                }
                true
            });
        }
    }

    /// Calls `visit` with the lines after a position, and moves it, until `visit` returns
    /// `false`.
    pub(crate) fn for_each_new(
        &self,
        positions: &mut LedgerLengths,
        mut visit: impl FnMut(ModelCall) -> bool,
    ) {
        for name in self.file_names() {
            let position = positions.entry(name.clone()).or_default();
            if !self.visit_file(&name, position, &mut visit) {
                return;
            }
        }
    }

    /// Returns `false` if `visit` did.
    fn visit_file(
        &self,
        name: &str,
        position: &mut u64,
        visit: &mut dyn FnMut(ModelCall) -> bool,
    ) -> bool {
        let Ok(mut file) = File::open(self.folder.join(name)) else {
            return true;
        };
        if file.seek(SeekFrom::Start(*position)).is_err() {
            return true;
        }
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(size) if size > 0 && line.ends_with(b"\n") => *position += size as u64,
                _ => return true,
            }
            if line.len() <= MAX_LINE_BYTES
                && let Ok(call) = serde_json::from_slice(&line)
                && !visit(call)
            {
                return false;
            }
        }
    }

    /// Oldest first.
    fn file_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(FILE_NAME_PREFIX) && name.ends_with(FILE_NAME_SUFFIX))
            .collect();
        names.sort();
        names
    }
}

/// `calls-2026-11.jsonl`
fn file_name(time_us: i64) -> String {
    let time = anyhook_store::rfc3339_micros(time_us);
    let month = time.get(..7).unwrap_or("1970-01");
    format!("{FILE_NAME_PREFIX}{month}{FILE_NAME_SUFFIX}")
}
