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

/// Buckets outside of these, of less than 0.04 µs or more than eight days, are kept one by one:
/// a sender decides the durations of its events, not how much memory there is.
const DENSE_BUCKETS: std::ops::Range<i64> = -1024..2048;

/// How many durations fell in each bucket, and the longest one exactly.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurationSketch {
    /// The bucket of the first of `counts`.
    first: i64,
    counts: Vec<i64>,
    /// Those outside of [`DENSE_BUCKETS`].
    far: BTreeMap<i64, i64>,
    pub(crate) max_ms: f64,
}

impl PartialEq for DurationSketch {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets()) && self.max_ms.total_cmp(&other.max_ms).is_eq()
    }
}

impl DurationSketch {
    pub(crate) fn add(&mut self, duration_ms: f64) {
        self.change_bucket(bucket(duration_ms), 1);
        self.max_ms = self.max_ms.max(duration_ms);
    }

    /// The buckets that are not empty, in order.
    fn buckets(&self) -> impl Iterator<Item = (i64, i64)> {
        let below = self.far.range(..DENSE_BUCKETS.start);
        let above = self.far.range(DENSE_BUCKETS.end..);
        let far = |(bucket, count): (&i64, &i64)| (*bucket, *count);
        let dense = (self.first..).zip(self.counts.iter().copied());
        let all = below.map(far).chain(dense).chain(above.map(far));
        all.filter(|(_, count)| *count > 0)
    }

    /// A count does not become negative.
    fn change_bucket(&mut self, bucket: i64, change: i64) {
        if !DENSE_BUCKETS.contains(&bucket) {
            let count = self.far.entry(bucket).or_default();
            *count = count.saturating_add(change).max(0);
            return;
        }
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = usize::try_from(self.first - bucket).unwrap_or_default();
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let at = usize::try_from(bucket - self.first).unwrap_or_default();
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(change).max(0);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.change(other, 1);
    }

    /// Adds durations (`sign` 1), or takes out (-1) what was added before; `max_ms` stays then.
    pub(crate) fn change(&mut self, other: &Self, sign: i64) {
        for (bucket, count) in other.buckets() {
            self.change_bucket(bucket, sign.saturating_mul(count));
        }
        if sign > 0 {
            self.max_ms = self.max_ms.max(other.max_ms);
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
        let total: i64 = self.buckets().map(|(_, count)| count).sum();
        let rank = (total.saturating_mul(percent).saturating_add(99)) / 100;
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return middle(bucket).min(self.max_ms);
            }
        }
        0.0
    }

    /// Pairs of numbers: the distance from the bucket before, and the count.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut last = 0;
        for (bucket, count) in self.buckets() {
            // Nothing is that near to zero, so the number is free.
            let bucket = if bucket == ZERO_BUCKET {
                i64::from(i32::MIN)
            } else {
                bucket
            };
            push_varint(&mut bytes, zigzag(bucket - last));
            push_varint(&mut bytes, u64::try_from(count).unwrap_or_default());
            last = bucket;
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], max_ms: f64) -> Self {
        let mut sketch = Self::default();
        sketch.merge_encoded(bytes, max_ms);
        sketch
    }

    /// Adds what [`Self::encode`] has made. What cannot be read is left out.
    pub(crate) fn merge_encoded(&mut self, mut bytes: &[u8], max_ms: f64) {
        let mut bucket = 0_i64;
        while let (Some(step), Some(count)) = (read_varint(&mut bytes), read_varint(&mut bytes)) {
            bucket = bucket.saturating_add(unzigzag(step));
            let count = i64::try_from(count).unwrap_or_default();
            // Statistics of all time add up hundreds of thousands: most have their place.
            let place = usize::try_from(bucket.wrapping_sub(self.first)).ok();
            if let Some(sum) = place.and_then(|place| self.counts.get_mut(place)) {
                *sum = sum.saturating_add(count);
                continue;
            }
            let key = if bucket == i64::from(i32::MIN) {
                ZERO_BUCKET
            } else {
                bucket
            };
            self.change_bucket(key, count);
        }
        self.max_ms = self.max_ms.max(max_ms);
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
    match bytes.split_first() {
        Some((first, rest)) if first & 0x80 == 0 => {
            *bytes = rest;
            Some(u64::from(*first))
        }
        _ => read_long_varint(bytes),
    }
}

fn read_long_varint(bytes: &mut &[u8]) -> Option<u64> {
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
        // The longest one takes no memory for the buckets before it.
        assert!(added.counts.len() < 3, "{}", added.counts.len());
        sketch.merge(&added);
        assert!(sketch.latency().max > 1e299);
        sketch.change(&added, -1);
        assert!(sketch.buckets().eq(before.buckets()));
        assert_eq!(
            DurationSketch::decode(&[0xff; 40], 1.0).buckets().count(),
            0
        );
    }
}
