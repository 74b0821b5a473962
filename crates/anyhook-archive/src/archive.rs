//! Exports a store to an archive, each event once.
//!
//! The archive has a state file for each store. What an export is about to write is in it
//! before the first file is: an interrupted export writes the same events to the same files
//! again, and two exports cannot begin at the same time.

use std::collections::BTreeMap;
use std::fs::File;

use anyhook_store::{EventRow, Store, rfc3339_micros};

use crate::error::{ArchiveError, Result};
use crate::place::{Place, PlacedFile};
use crate::schema::{SCHEMA_VERSION, file_of, merged};
use crate::state::{ArchiveStateFile, Begun};

/// Events that are read at once, and in memory at most: some 60 MB.
const BATCH_EVENTS: i64 = 20_000;
const READ_EVENTS: usize = 1_000;
/// A day with this many files of a store gets one instead.
const MERGED_FILES: usize = 8;
/// Files of this size are not merged.
const MAX_MERGED_BYTES: u64 = 256 * 1024 * 1024;

/// The archive of one store in one place.
pub struct Archive {
    place: Place,
    store_id: String,
    _lock: Option<File>,
}

/// What an export has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportCounts {
    pub events: u64,
    pub files: u64,
    /// Files that others were merged into.
    pub merged: u64,
    /// Events up to this number are in the archive.
    pub exported_seq: i64,
}

impl Archive {
    /// `address`: a folder, or `s3://bucket/prefix`.
    pub fn open(address: &str, store: &dyn Store) -> Result<Self> {
        let place = Place::open(address)?;
        let store_id = store.store_id()?;
        let lock = place.lock(&format!("_anyhook/{store_id}.lock"))?;
        Ok(Self {
            place,
            store_id,
            _lock: lock,
        })
    }

    pub fn place_name(&self) -> &str {
        self.place.name()
    }

    /// Exports every event that is not in the archive yet, and merges small files.
    pub fn export(&self, store: &dyn Store) -> Result<ExportCounts> {
        // Events that are moved later have lower numbers than those that are there.
        if store.upgrade_progress()?.is_some() {
            return Err(ArchiveError::Upgrading);
        }
        let mut counts = ExportCounts::default();
        let mut file = ArchiveStateFile::load(&self.place, &self.store_id)?;
        loop {
            match file.state.begun.clone() {
                Some(Begun::Export { first, last }) => {
                    self.write_events(store, first, last, &mut counts)?;
                    file.state.exported = last;
                }
                Some(Begun::Merge { inputs, output }) => {
                    self.delete_merged(&inputs, &output)?;
                    counts.merged += 1;
                }
                None => {
                    let Some(begun) = self.next(store, file.state.exported)? else {
                        break;
                    };
                    file.state.begun = Some(begun);
                    file.save()?;
                    continue;
                }
            }
            file.state.begun = None;
            file.save()?;
        }
        counts.exported_seq = file.state.exported;
        Ok(counts)
    }

    /// What is to do next; `None` if nothing is.
    fn next(&self, store: &dyn Store, exported: i64) -> Result<Option<Begun>> {
        let last = last_of_batch(store, exported)?;
        if last > exported {
            let first = exported + 1;
            return Ok(Some(Begun::Export { first, last }));
        }
        self.next_merge()
    }

    fn write_events(
        &self,
        store: &dyn Store,
        first: i64,
        last: i64,
        counts: &mut ExportCounts,
    ) -> Result<()> {
        let mut days: BTreeMap<String, Vec<EventRow>> = BTreeMap::new();
        let mut seq = first - 1;
        'read: while seq < last {
            let rows = store.after(seq, READ_EVENTS)?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                seq = row.summary.seq;
                if seq > last {
                    break 'read;
                }
                let day = day_of(row.summary.time_us);
                days.entry(day).or_default().push(row);
            }
        }
        for (day, rows) in days {
            let mut rows: Vec<&EventRow> = rows.iter().collect();
            rows.sort_by_key(|row| (row.summary.time_us, row.summary.seq));
            let name = format!("{}-{first:019}-{last:019}.parquet", self.store_id);
            let path = format!("{}/day={day}/{name}", root());
            self.place
                .write_file(&path, file_of(&self.store_id, &rows)?)?;
            counts.events += rows.len() as u64;
            counts.files += 1;
        }
        Ok(())
    }

    /// Writes one file with what several files of a day have. They are deleted when the
    /// state says so.
    fn next_merge(&self) -> Result<Option<Begun>> {
        let mut days: BTreeMap<String, Vec<PlacedFile>> = BTreeMap::new();
        for file in self.place.list_files(&root())? {
            let Some((day, name)) = file.path.rsplit_once('/') else {
                continue;
            };
            let is_own = name.starts_with(&format!("{}-", self.store_id));
            if is_own && file.bytes < MAX_MERGED_BYTES {
                days.entry(day.to_owned()).or_default().push(file);
            }
        }
        let small = days.into_iter().find_map(|(day, files)| {
            let files = within(files, MAX_MERGED_BYTES);
            (files.len() >= MERGED_FILES).then_some((day, files))
        });
        let Some((day, files)) = small else {
            return Ok(None);
        };
        let inputs: Vec<String> = files.into_iter().map(|file| file.path).collect();
        Ok(Some(Begun::Merge {
            output: merged_name(&day, &self.store_id, &inputs),
            inputs,
        }))
    }

    /// Writes the output if it is missing, then deletes the inputs.
    fn delete_merged(&self, inputs: &[String], output: &str) -> Result<()> {
        if !self.place.exists(output)? {
            let mut files = Vec::new();
            for path in inputs {
                let Some((bytes, _)) = self.place.read_file(path)? else {
                    return Err(ArchiveError::State {
                        path: path.clone(),
                        why: "it is missing".to_owned(),
                    });
                };
                files.push(bytes);
            }
            self.place.write_file(output, merged(files)?)?;
        }
        for path in inputs {
            self.place.delete_file(path)?;
        }
        Ok(())
    }
}

/// The number of the last event of the next batch; `exported` if there is none.
fn last_of_batch(store: &dyn Store, exported: i64) -> Result<i64> {
    let next = store.after(exported, 1)?;
    let Some(first) = next.first().map(|row| row.summary.seq) else {
        return Ok(exported);
    };
    Ok(store.last_seq()?.clamp(first, first + BATCH_EVENTS - 1))
}

/// The first files that together are at most of a size.
fn within(files: Vec<PlacedFile>, max_bytes: u64) -> Vec<PlacedFile> {
    let mut sum = 0;
    files
        .into_iter()
        .take_while(|file| {
            sum += file.bytes;
            sum <= max_bytes
        })
        .collect()
}

fn root() -> String {
    format!("events/v={SCHEMA_VERSION}")
}

fn day_of(time_us: i64) -> String {
    let time = rfc3339_micros(time_us);
    time.split('T').next().unwrap_or_default().to_owned()
}

/// From the first number of the first file to the last number of the last one.
fn merged_name(day: &str, store_id: &str, inputs: &[String]) -> String {
    let part = |path: Option<&String>, at: usize| {
        let name = path
            .and_then(|path| path.rsplit('/').next())
            .unwrap_or_default();
        let name = name.trim_end_matches(".parquet");
        let rest = name.strip_prefix(store_id).unwrap_or(name);
        rest.split('-').nth(at).unwrap_or_default().to_owned()
    };
    let (first, last) = (part(inputs.first(), 1), part(inputs.last(), 2));
    format!("{day}/{store_id}-{first}-{last}.parquet")
}
