//! Percentiles of durations from counts in logarithmic buckets.
//!
//! A bucket is 1 % wide and a percentile is its middle, so it is within half a percent of
//! the exact one. Sketches are added and subtracted without loss: those of hours
//! give exactly the sketch of their day.

use std::collections::BTreeMap;

use crate::query::Latency;

/// Each bucket ends at this multiple of its beginning.
const BUCKET_GROWTH: f64 = 1.01;
/// Shorter durations, in milliseconds, count as zero.
const SMALLEST_MS: f64 = 0.000_1;
const ZERO_BUCKET: i64 = i64::MIN;

/// How many durations fell in each bucket, and the longest one exactly.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DurationSketch {
    buckets: BTreeMap<i64, i64>,
    pub(crate) max_ms: f64,
}

impl DurationSketch {
    pub(crate) fn add(&mut self, duration_ms: f64) {
        *self.buckets.entry(bucket(duration_ms)).or_default() += 1;
        self.max_ms = self.max_ms.max(duration_ms);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// Takes out durations that were added before; `max_ms` stays.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            let left = self.buckets.entry(*bucket).or_default();
            *left -= count;
            if *left <= 0 {
                self.buckets.remove(bucket);
            }
        }
    }

    /// Adds durations (`sign` 1), or takes them out (-1).
    pub(crate) fn change(&mut self, other: &Self, sign: i64) {
        if sign > 0 {
            self.merge(other);
        } else {
            self.subtract(other);
        }
    }

    pub(crate) fn latency(&self) -> Latency {
        Latency {
            p50: self.percentile(50),
            p95: self.percentile(95),
            p99: self.percentile(99),
            max: self.max_ms,
        }
    }

    /// Nearest rank.
    fn percentile(&self, percent: i64) -> f64 {
        let total: i64 = self.buckets.values().sum();
        let rank = (total.saturating_mul(percent).saturating_add(99)) / 100;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return middle(*bucket).min(self.max_ms);
            }
        }
        0.0
    }

    /// Pairs of numbers: the distance from the bucket before, and the count.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.buckets.len() * 3);
        let mut last = 0;
        for (bucket, count) in &self.buckets {
            // Nothing is that near to zero, so the number is free.
            let bucket = if *bucket == ZERO_BUCKET {
                i64::from(i32::MIN)
            } else {
                *bucket
            };
            push_varint(&mut bytes, zigzag(bucket - last));
            push_varint(&mut bytes, u64::try_from(*count).unwrap_or_default());
            last = bucket;
        }
        bytes
    }

    /// What cannot be read is left out.
    pub(crate) fn decode(bytes: &[u8], max_ms: f64) -> Self {
        let mut sketch = Self {
            max_ms,
            ..Self::default()
        };
        let mut bytes = bytes;
        let mut bucket = 0_i64;
        while let (Some(step), Some(count)) = (read_varint(&mut bytes), read_varint(&mut bytes)) {
            bucket = bucket.saturating_add(unzigzag(step));
            let key = if bucket == i64::from(i32::MIN) {
                ZERO_BUCKET
            } else {
                bucket
            };
            let count = i64::try_from(count).unwrap_or_default();
            *sketch.buckets.entry(key).or_default() += count;
        }
        sketch
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a number is small"
)]
fn bucket(duration_ms: f64) -> i64 {
    if duration_ms.is_nan() || duration_ms < SMALLEST_MS {
        return ZERO_BUCKET;
    }
    (duration_ms.min(f64::MAX).ln() / BUCKET_GROWTH.ln()).floor() as i64
}

#[expect(clippy::cast_precision_loss, reason = "buckets have small numbers")]
fn middle(bucket: i64) -> f64 {
    if bucket == ZERO_BUCKET {
        return 0.0;
    }
    let begin = (bucket as f64 * BUCKET_GROWTH.ln()).exp();
    begin * f64::midpoint(1.0, BUCKET_GROWTH)
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Seven bits per byte, lowest first.
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers that look random and are the same in every run.
    fn durations(count: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            #[expect(clippy::cast_precision_loss, reason = "any number will do")]
            let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
            unit
        };
        // Mostly short, some very long, as hooks are.
        (0..count).map(|_| 0.05 * (next() * 14.0).exp()).collect()
    }

    #[test]
    fn percentiles_are_within_one_percent_and_parts_give_the_whole() {
        let mut all = durations(1_000_000);
        let mut whole = DurationSketch::default();
        let mut parts = DurationSketch::default();
        for part in all.chunks(777) {
            let mut sketch = DurationSketch::default();
            for duration in part {
                whole.add(*duration);
                sketch.add(*duration);
            }
            parts.merge(&DurationSketch::decode(&sketch.encode(), sketch.max_ms));
        }
        assert_eq!(whole, parts);
        let found = whole.latency();
        all.sort_by(f64::total_cmp);
        for (percent, found) in [(50, found.p50), (95, found.p95), (99, found.p99)] {
            let exact = all[all.len() * percent / 100 - 1];
            let error = (found - exact).abs() / exact;
            assert!(error < 0.01, "p{percent}: {found}, exactly {exact}");
        }
        assert_eq!(Some(&found.max), all.last());
        assert!(whole.encode().len() < 5000);
    }

    #[test]
    fn what_was_added_can_be_taken_out() {
        let (some, more) = (durations(500), [0.0, 1e300, 3.5]);
        let mut sketch = DurationSketch::default();
        for duration in &some {
            sketch.add(*duration);
        }
        let before = sketch.clone();
        let mut added = DurationSketch::default();
        for duration in more {
            added.add(duration);
        }
        sketch.merge(&added);
        assert!(sketch.latency().max > 1e299);
        sketch.subtract(&added);
        assert_eq!(sketch.buckets, before.buckets);
        assert_eq!(DurationSketch::decode(&[0xff; 40], 1.0).buckets.len(), 0);
    }
}
