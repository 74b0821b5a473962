//! Sums of events by hour, day and of all time, as changes that a transaction applies.
//!
//! Owns what is summed and by what. Touches no database.

use std::collections::{BTreeMap, HashMap};

use rusqlite::types::Value as SqlValue;

use crate::error::Result;
use crate::row::RunRow;
use crate::sketch::{DurationSketch, push_varint, read_varint};
use crate::sql::ResultRow;

pub(crate) const HOUR_LEVEL: i64 = 0;
pub(crate) const DAY_LEVEL: i64 = 1;
pub(crate) const ALL_LEVEL: i64 = 2;
/// Sums over every origin.
pub(crate) const ALL_ORIGINS: i64 = 0;

pub(crate) const MINUTE_US: i64 = 60_000_000;
pub(crate) const HOUR_US: i64 = 60 * MINUTE_US;
pub(crate) const DAY_US: i64 = 24 * HOUR_US;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RollupKey {
    pub level: i64,
    /// Hours or days since 1970.
    pub start: i64,
    pub origin: i64,
    pub facet: i64,
}

impl RollupKey {
    /// Every row that an event is part of.
    fn of_event(time_us: i64, origin: i64, facet: i64) -> [Self; 4] {
        let day = time_us.div_euclid(DAY_US);
        let hour = time_us.div_euclid(HOUR_US);
        [
            (HOUR_LEVEL, hour, origin),
            (DAY_LEVEL, day, origin),
            (DAY_LEVEL, day, ALL_ORIGINS),
            (ALL_LEVEL, 0, ALL_ORIGINS),
        ]
        .map(|(level, start, origin)| Self {
            level,
            start,
            origin,
            facet,
        })
    }
}

/// The sums that another one is the sum of.
pub(crate) struct LowerSums {
    pub level: i64,
    pub from: i64,
    /// Inclusive.
    pub until: i64,
    pub any_origin: bool,
}

impl RollupKey {
    /// The hours of a day, or the days of all time.
    pub(crate) fn lower(self) -> LowerSums {
        let (level, from, until) = match self.level {
            ALL_LEVEL => (DAY_LEVEL, i64::MIN, i64::MAX),
            _ => (HOUR_LEVEL, self.start * 24, self.start * 24 + 23),
        };
        LowerSums {
            level,
            from,
            until,
            // Days have a row of all origins, hours do not.
            any_origin: self.origin == ALL_ORIGINS && level == HOUR_LEVEL,
        }
    }
}

/// How many events there were in each minute of an hour, or in each hour of a day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MinuteCounts(pub(crate) BTreeMap<u8, i64>);

impl MinuteCounts {
    pub(crate) fn decode(mut bytes: &[u8]) -> Self {
        let mut counts = Self::default();
        while let (Some(minute), Some(count)) = (read_varint(&mut bytes), read_varint(&mut bytes)) {
            if let (Ok(minute), Ok(count)) = (u8::try_from(minute), i64::try_from(count)) {
                *counts.0.entry(minute).or_default() += count;
            }
        }
        counts
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (minute, count) in self.0.iter().filter(|(_, count)| **count > 0) {
            push_varint(&mut bytes, u64::from(*minute));
            push_varint(&mut bytes, count.unsigned_abs());
        }
        bytes
    }

    /// With a `sign` of -1, takes the counts of `other` out.
    pub(crate) fn change(&mut self, other: &Self, sign: i64) {
        for (minute, count) in &other.0 {
            *self.0.entry(*minute).or_default() += sign * count;
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct EventSums {
    pub events: i64,
    pub minutes: MinuteCounts,
    pub sketch: DurationSketch,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct HookSums {
    pub runs: i64,
    pub denials: i64,
    pub troubles: i64,
    pub sketch: DurationSketch,
}

/// One run of a hook, by its number in the store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NumberedRun {
    pub hook: i64,
    pub effect: RunEffect,
    pub duration_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEffect {
    None,
    Denial,
    Trouble,
}

impl RunEffect {
    pub(crate) fn from_run(run: &RunRow) -> Self {
        if run.is_denial() {
            Self::Denial
        } else if run.is_trouble() {
            Self::Trouble
        } else {
            Self::None
        }
    }
}

/// Hook, effect and duration of each run.
pub(crate) fn encode_runs(runs: &[NumberedRun]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in runs {
        push_varint(&mut bytes, run.hook.unsigned_abs());
        bytes.push(match run.effect {
            RunEffect::None => 0,
            RunEffect::Denial => 1,
            RunEffect::Trouble => 2,
        });
        bytes.extend(run.duration_ms.to_le_bytes());
    }
    bytes
}

pub(crate) fn decode_runs(mut bytes: &[u8]) -> Vec<NumberedRun> {
    let mut runs = Vec::new();
    while let Some(hook) = read_varint(&mut bytes) {
        let Some((effect, rest)) = bytes.split_first() else {
            break;
        };
        let Some((duration, rest)) = rest.split_first_chunk::<8>() else {
            break;
        };
        bytes = rest;
        runs.push(NumberedRun {
            hook: hook.cast_signed(),
            effect: match effect {
                1 => RunEffect::Denial,
                2 => RunEffect::Trouble,
                _ => RunEffect::None,
            },
            duration_ms: f64::from_le_bytes(*duration),
        });
    }
    runs
}

/// The key of a row of sums. Sums of events have no hook: 0.
pub(crate) type SumKey = (RollupKey, i64);

/// The type of a column of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumColumn {
    Count,
    Duration,
    Bytes,
}

/// A row of a table of sums, without its key.
pub(crate) trait StoredSums: Default {
    const TABLE: &'static str;
    const KEY_COLUMNS: &'static [&'static str];
    const VALUE_COLUMNS: &'static [(&'static str, SumColumn)];

    fn values(&self) -> Vec<SqlValue>;
    fn from_values(row: &mut ResultRow) -> Result<Self>;
    /// Adds `other` (`sign` 1), or takes it out (-1).
    fn change(&mut self, other: &Self, sign: i64);
    fn count(&self) -> i64;
    fn sketch(&self) -> &DurationSketch;
    fn sketch_mut(&mut self) -> &mut DurationSketch;

    fn key_values((key, hook): SumKey) -> Vec<i64> {
        let all = [key.level, key.start, key.origin, key.facet, hook];
        all.into_iter().take(Self::KEY_COLUMNS.len()).collect()
    }

    fn value_columns() -> String {
        let names = Self::VALUE_COLUMNS.iter().map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    }
}

impl StoredSums for EventSums {
    const TABLE: &'static str = "anyhook_rollups";
    const KEY_COLUMNS: &'static [&'static str] = &["level", "start", "origin", "facet"];
    const VALUE_COLUMNS: &'static [(&'static str, SumColumn)] = &[
        ("events", SumColumn::Count),
        ("max_ms", SumColumn::Duration),
        ("minutes", SumColumn::Bytes),
        ("sketch", SumColumn::Bytes),
    ];

    fn values(&self) -> Vec<SqlValue> {
        vec![
            SqlValue::Integer(self.events),
            SqlValue::Real(self.sketch.max_ms),
            SqlValue::Blob(self.minutes.encode()),
            SqlValue::Blob(self.sketch.encode()),
        ]
    }

    fn from_values(row: &mut ResultRow) -> Result<Self> {
        let (events, max_ms) = (row.int()?, row.real()?);
        Ok(Self {
            events,
            minutes: MinuteCounts::decode(&row.bytes()?),
            sketch: DurationSketch::decode(&row.bytes()?, max_ms),
        })
    }

    fn change(&mut self, other: &Self, sign: i64) {
        self.events += sign * other.events;
        self.minutes.change(&other.minutes, sign);
        self.sketch.change(&other.sketch, sign);
    }

    fn count(&self) -> i64 {
        self.events
    }

    fn sketch(&self) -> &DurationSketch {
        &self.sketch
    }

    fn sketch_mut(&mut self) -> &mut DurationSketch {
        &mut self.sketch
    }
}

impl StoredSums for HookSums {
    const TABLE: &'static str = "anyhook_hook_rollups";
    const KEY_COLUMNS: &'static [&'static str] = &["level", "start", "origin", "facet", "hook"];
    const VALUE_COLUMNS: &'static [(&'static str, SumColumn)] = &[
        ("runs", SumColumn::Count),
        ("denials", SumColumn::Count),
        ("troubles", SumColumn::Count),
        ("max_ms", SumColumn::Duration),
        ("sketch", SumColumn::Bytes),
    ];

    fn values(&self) -> Vec<SqlValue> {
        vec![
            SqlValue::Integer(self.runs),
            SqlValue::Integer(self.denials),
            SqlValue::Integer(self.troubles),
            SqlValue::Real(self.sketch.max_ms),
            SqlValue::Blob(self.sketch.encode()),
        ]
    }

    fn from_values(row: &mut ResultRow) -> Result<Self> {
        let (runs, denials, troubles) = (row.int()?, row.int()?, row.int()?);
        let max_ms = row.real()?;
        Ok(Self {
            runs,
            denials,
            troubles,
            sketch: DurationSketch::decode(&row.bytes()?, max_ms),
        })
    }

    fn change(&mut self, other: &Self, sign: i64) {
        self.runs += sign * other.runs;
        self.denials += sign * other.denials;
        self.troubles += sign * other.troubles;
        self.sketch.change(&other.sketch, sign);
    }

    fn count(&self) -> i64 {
        self.runs
    }

    fn sketch(&self) -> &DurationSketch {
        &self.sketch
    }

    fn sketch_mut(&mut self) -> &mut DurationSketch {
        &mut self.sketch
    }
}

/// What a batch of events adds to the sums, or takes out of them.
#[derive(Debug, Default)]
pub(crate) struct RollupChanges {
    pub events: HashMap<SumKey, EventSums>,
    pub hooks: HashMap<SumKey, HookSums>,
}

impl RollupChanges {
    pub(crate) fn add(
        &mut self,
        time_us: i64,
        origin: i64,
        facet: i64,
        duration_ms: f64,
        runs: &[NumberedRun],
    ) {
        let minute = time_us.rem_euclid(HOUR_US) / MINUTE_US;
        let hour = time_us.rem_euclid(DAY_US) / HOUR_US;
        for key in RollupKey::of_event(time_us, origin, facet) {
            let sums = self.events.entry((key, 0)).or_default();
            sums.events += 1;
            sums.sketch.add(duration_ms);
            let part = match key.level {
                HOUR_LEVEL => Some(minute),
                DAY_LEVEL => Some(hour),
                _ => None,
            };
            if let Some(part) = part.and_then(|part| u8::try_from(part).ok()) {
                *sums.minutes.0.entry(part).or_default() += 1;
            }
            for run in runs {
                let sums = self.hooks.entry((key, run.hook)).or_default();
                sums.add(*run);
            }
        }
    }
}

impl HookSums {
    pub(crate) fn add(&mut self, run: NumberedRun) {
        self.runs += 1;
        self.denials += i64::from(run.effect == RunEffect::Denial);
        self.troubles += i64::from(run.effect == RunEffect::Trouble);
        self.sketch.add(run.duration_ms);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.denials += other.denials;
        self.troubles += other.troubles;
        self.sketch.merge(&other.sketch);
    }
}
