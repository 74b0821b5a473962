//! Queries of the journal without a database, for machines that run no daemon.
//!
//! Gives the same results as [`Store`](crate::Store). Stores nothing.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::journal::{self, BatchLimit, JournalFile};
use crate::query::{EventFilter, Stats};
use crate::row::EventRow;
use crate::stats_counter::StatsCounter;

/// The newest events, newest first.
pub fn newest(dir: &Path, filter: &EventFilter, limit: usize) -> Result<Vec<EventRow>> {
    Ok(JournalFollower::after_newest(dir, filter, limit)?.0)
}

/// Calls `visit` with every event, in the order of the journal, until it returns `false`.
pub fn for_each(
    dir: &Path,
    filter: &EventFilter,
    mut visit: impl FnMut(EventRow) -> bool,
) -> Result<()> {
    for file in journal::files(dir)? {
        let mut goes_on = true;
        visit_rows(&file, 0, |row| {
            if goes_on && filter.matches(&row) {
                goes_on = visit(row);
            }
        })?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

pub fn stats(dir: &Path, filter: &EventFilter, buckets: usize) -> Result<Stats> {
    let mut counter = StatsCounter::default();
    for_each(dir, filter, |row| {
        counter.add(&row);
        true
    })?;
    Ok(counter.into_stats(filter, buckets))
}

/// Continues where it stopped, also after the file was rotated.
#[derive(Debug)]
pub struct JournalFollower {
    dir: PathBuf,
    filter: EventFilter,
    /// How far each file was read.
    positions: HashMap<String, u64>,
}

impl JournalFollower {
    /// The newest events, newest first, and a follower for what comes after them.
    pub fn after_newest(
        dir: &Path,
        filter: &EventFilter,
        limit: usize,
    ) -> Result<(Vec<EventRow>, Self)> {
        let mut positions = HashMap::new();
        let mut newest: Vec<EventRow> = Vec::new();
        for file in journal::files(dir)?.into_iter().rev() {
            let wanted = limit.saturating_sub(newest.len());
            let mut end = file.len;
            if wanted > 0 {
                let mut last = VecDeque::new();
                end = visit_rows(&file, 0, |row| {
                    if filter.matches(&row) {
                        if last.len() == wanted {
                            last.pop_front();
                        }
                        last.push_back(row);
                    }
                })?;
                newest.extend(last.into_iter().rev());
            }
            positions.insert(file.key, end);
        }
        // Processes write at the same time: a line may come before an older one.
        newest.sort_by_key(|row| std::cmp::Reverse(row.summary.time_us));
        let follower = Self {
            dir: dir.to_owned(),
            filter: filter.clone(),
            positions,
        };
        Ok((newest, follower))
    }

    /// Events since the last call, oldest first.
    pub fn poll(&mut self) -> Result<Vec<EventRow>> {
        let mut found = Vec::new();
        let files = journal::files(&self.dir)?;
        self.positions
            .retain(|key, _| files.iter().any(|file| file.key == *key));
        for file in files {
            let from = self.positions.get(&file.key).copied().unwrap_or_default();
            if from >= file.len {
                continue;
            }
            let end = visit_rows(&file, from, |row| {
                if self.filter.matches(&row) {
                    found.push(row);
                }
            })?;
            self.positions.insert(file.key, end);
        }
        Ok(found)
    }
}

/// Calls `visit` for every event of a file from a position on; returns where they end.
fn visit_rows(file: &JournalFile, from: u64, mut visit: impl FnMut(EventRow)) -> Result<u64> {
    let mut pos = from;
    loop {
        let batch = file.read_lines(pos, BatchLimit::default())?;
        batch.rows().for_each(&mut visit);
        if batch.end == pos {
            return Ok(pos);
        }
        pos = batch.end;
    }
}
