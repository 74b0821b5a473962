//! Sums of events by hour, day and of all time, as changes that a transaction applies.
//!
//! Owns what is summed and by what. Touches no database.

use std::collections::{BTreeMap, HashMap};

use crate::row::RunRow;
use crate::sketch::{DurationSketch, push_varint, read_varint};

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

/// How many events there were in each minute of an hour.
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

/// What a batch of events adds to the sums, or takes out of them.
#[derive(Debug, Default)]
pub(crate) struct RollupChanges {
    pub events: HashMap<RollupKey, EventSums>,
    pub hooks: HashMap<(RollupKey, i64), HookSums>,
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
        for key in RollupKey::of_event(time_us, origin, facet) {
            let sums = self.events.entry(key).or_default();
            sums.events += 1;
            sums.sketch.add(duration_ms);
            if key.level == HOUR_LEVEL {
                let minute = u8::try_from(minute).unwrap_or_default();
                *sums.minutes.0.entry(minute).or_default() += 1;
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
