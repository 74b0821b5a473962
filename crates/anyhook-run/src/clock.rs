//! The time as text, and identifiers that sort by it.
//!
//! A time-zone database would cost more than everything else at start-up, so
//! times are UTC and formatted here.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// `2026-02-23T10:15:30.123Z`
pub fn rfc3339(ms: u64) -> String {
    let [year, month, day] = civil(ms / 86_400_000);
    let [hour, minute, second, milli] = of_day(ms);
    let mut text = String::with_capacity(24);
    for (number, digits, after) in [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (hour, 2, ':'),
        (minute, 2, ':'),
        (second, 2, '.'),
        (milli, 3, 'Z'),
    ] {
        push_decimal(&mut text, number, digits);
        text.push(after);
    }
    text
}

/// The standard library's formatting takes ten times as long, and every record has two times.
fn push_decimal(text: &mut String, number: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number / 10_u64.pow(place) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
    }
}

/// `20260223T101530123`: for file names, sorting as the time does.
pub fn compact(ms: u64) -> String {
    let [year, month, day] = civil(ms / 86_400_000);
    let [hour, minute, second, milli] = of_day(ms);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}{milli:03}")
}

fn of_day(ms: u64) -> [u64; 4] {
    let seconds = ms / 1000;
    [
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1000,
    ]
}

/// Year, month and day of a day since 1970, counted in the 400-year cycle of
/// the Gregorian calendar with years that begin in March.
fn civil(days: u64) -> [u64; 3] {
    let days = days + 719_468;
    let cycle = days / 146_097;
    let day_of_cycle = days % 146_097;
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = cycle * 400 + year_of_cycle + u64::from(month <= 2);
    [year, month, day]
}

/// A version 7 UUID: unique, and sorting by time.
pub fn uuid(ms: u64) -> String {
    // The standard library's hashing keys are random per process, and are the
    // cheapest randomness there is: no file is opened, no crate is needed.
    let keys = RandomState::new();
    let process = std::process::id();
    let half = |n: u8| u128::from(keys.hash_one((ms, process, n)));
    let random = (half(0) << 64) | half(1);
    let bits = (u128::from(ms) << 80)
        | (0x7 << 76)
        | (random & (0xfff << 64))
        | (0b10 << 62)
        | (random & ((1 << 62) - 1));
    let mut text = String::with_capacity(36);
    for (at, byte) in bits.to_be_bytes().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(
                digit + if digit < 10 { b'0' } else { b'a' - 10 },
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_771_841_730_123, "2026-02-23T10:15:30.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), expected);
        }
        assert_eq!(compact(1_771_841_730_123), "20260223T101530123");
    }

    #[test]
    fn identifiers_are_version_7_and_sort_by_time() {
        let early = uuid(1);
        let late = uuid(1_771_841_730_123);
        assert!(early < late);
        assert_eq!(late.len(), 36);
        assert_eq!(late.as_bytes()[14], b'7');
        assert!(b"89ab".contains(&late.as_bytes()[19]));
        assert_ne!(uuid(5), uuid(5));
    }
}
