//! The journal itself, asked without a database: for machines that run no daemon.
//!
//! Answers what [`Store`](crate::Store) answers. Keeps nothing.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::journal::{self, BatchLimit, JournalFile};
use crate::query::{EventFilter, Stats};
use crate::row::EventRow;
use crate::tally::Tally;

/// The newest events, newest first.
pub fn newest(dir: &Path, filter: &EventFilter, limit: usize) -> Result<Vec<EventRow>> {
    Ok(Follow::after_newest(dir, filter, limit)?.0)
}

/// Every event, in the order of the journal, until `take` says `false`.
pub fn each(
    dir: &Path,
    filter: &EventFilter,
    mut take: impl FnMut(EventRow) -> bool,
) -> Result<()> {
    for file in journal::files(dir)? {
        let mut goes_on = true;
        rows(&file, 0, |row| {
            if goes_on && filter.matches(&row) {
                goes_on = take(row);
            }
        })?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

pub fn stats(dir: &Path, filter: &EventFilter, buckets: usize) -> Result<Stats> {
    let mut tally = Tally::default();
    each(dir, filter, |row| {
        tally.add(&row);
        true
    })?;
    Ok(tally.stats(filter, buckets))
}

/// Reads on where it stopped, whatever file that is by now.
#[derive(Debug)]
pub struct Follow {
    dir: PathBuf,
    filter: EventFilter,
    /// How far each file was read.
    known: HashMap<String, u64>,
}

impl Follow {
    /// The newest events, newest first, and what follows them.
    pub fn after_newest(
        dir: &Path,
        filter: &EventFilter,
        limit: usize,
    ) -> Result<(Vec<EventRow>, Self)> {
        let mut known = HashMap::new();
        let mut newest: Vec<EventRow> = Vec::new();
        for file in journal::files(dir)?.into_iter().rev() {
            let wanted = limit.saturating_sub(newest.len());
            let mut end = file.len;
            if wanted > 0 {
                let mut last = VecDeque::new();
                end = rows(&file, 0, |row| {
                    if filter.matches(&row) {
                        if last.len() == wanted {
                            last.pop_front();
                        }
                        last.push_back(row);
                    }
                })?;
                newest.extend(last.into_iter().rev());
            }
            known.insert(file.key, end);
        }
        // Processes write side by side: a line may stand before an older one.
        newest.sort_by_key(|row| std::cmp::Reverse(row.time_us));
        let follow = Self {
            dir: dir.to_owned(),
            filter: filter.clone(),
            known,
        };
        Ok((newest, follow))
    }

    /// What has come since, oldest first.
    pub fn poll(&mut self) -> Result<Vec<EventRow>> {
        let mut found = Vec::new();
        let files = journal::files(&self.dir)?;
        self.known
            .retain(|key, _| files.iter().any(|file| file.key == *key));
        for file in files {
            let from = self.known.get(&file.key).copied().unwrap_or_default();
            if from >= file.len {
                continue;
            }
            let end = rows(&file, from, |row| {
                if self.filter.matches(&row) {
                    found.push(row);
                }
            })?;
            self.known.insert(file.key, end);
        }
        Ok(found)
    }
}

/// The whole lines of a file from a position on; where they end.
fn rows(file: &JournalFile, from: u64, mut take: impl FnMut(EventRow)) -> Result<u64> {
    let mut at = from;
    loop {
        let batch = file.read(at, BatchLimit::default())?;
        batch
            .lines
            .iter()
            .filter_map(|line| EventRow::from_line(line))
            .for_each(&mut take);
        if batch.end == at {
            return Ok(at);
        }
        at = batch.end;
    }
}
