//! Time as text, and identifiers that sort by it.
//!
//! Times are UTC: a time-zone database costs more at start-up (0.88 ms) than
//! everything else that `run` does.

use std::time::Duration;

use jiff::Timestamp;
use uuid::{NoContext, Uuid};

/// `2026-02-23T10:15:30.123Z`
pub fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// RFC 3339 of milliseconds since 1970; `None` outside the years -9999 to 9999.
pub fn rfc3339_millis(millis: i64) -> Option<String> {
    Timestamp::from_millisecond(millis).ok().map(rfc3339)
}

/// Milliseconds, to the microsecond.
pub fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// `20260223T101530123`: for file names, sorts by time.
pub fn compact(time: Timestamp) -> String {
    let keep = |c: &char| c.is_ascii_digit() || *c == 'T';
    rfc3339(time).chars().filter(keep).collect()
}

/// A version 7 UUID: unique, sorts by time.
pub fn uuid_v7(time: Timestamp) -> String {
    let millis = u64::try_from(time.as_millisecond()).unwrap_or_default();
    let id = if let Some(random) = random_bytes() {
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    } else {
        let nanos = u32::try_from(time.subsec_nanosecond()).unwrap_or_default();
        Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, millis / 1000, nanos))
    };
    id.to_string()
}

/// Between half and all of a delay, so that machines do not retry in step.
pub fn jittered(delay: Duration) -> Duration {
    // The time of a failure is random enough.
    let nanos = u32::try_from(Timestamp::now().subsec_nanosecond()).unwrap_or_default();
    let part = f64::from(nanos % 1000) / 1000.0;
    delay.mul_f64(0.5 + part / 2.0)
}

/// From the kernel. The `getrandom` crate looks the function up by its name, does
/// not find it in a statically linked program, and opens two devices instead.
#[cfg(target_os = "linux")]
fn random_bytes() -> Option<[u8; 10]> {
    let mut bytes = [0; 10];
    let flags = rustix::rand::GetRandomFlags::empty();
    let count = rustix::rand::getrandom(&mut bytes, flags).ok()?;
    (count == bytes.len()).then_some(bytes)
}

#[cfg(not(target_os = "linux"))]
fn random_bytes() -> Option<[u8; 10]> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn known_times() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_771_841_730_123, "2026-02-23T10:15:30.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339_millis(ms).as_deref(), Some(expected));
        }
        assert_eq!(rfc3339_millis(i64::MAX), None);
        assert_eq!(compact(at(1_771_841_730_123)), "20260223T101530123");
    }

    #[test]
    fn identifiers_are_version_7_and_sort_by_time() {
        let early = uuid_v7(at(1));
        let late = uuid_v7(at(1_771_841_730_123));
        assert!(early < late);
        assert!(late.starts_with("019c89ff-364b-"), "{late}");
        assert_eq!(late.len(), 36);
        assert_eq!(late.as_bytes()[14], b'7');
        assert!(b"89ab".contains(&late.as_bytes()[19]));
        assert_ne!(uuid_v7(at(5)), uuid_v7(at(5)));
    }
}
