//! Points in time, without a clock: reads ISO 8601 with a zone, writes RFC 3339.

use std::fmt;

/// A point in time with nanoseconds, independent of the zone it was written in.
///
/// ```
/// use openhook::Timestamp;
/// let utc: Timestamp = "2026-02-23T10:15:30.123Z".parse()?;
/// let tokyo: Timestamp = "2026-02-23T19:15:30,123+0900".parse()?;
/// assert_eq!(utc, tokyo);
/// assert_eq!(tokyo.to_string(), "2026-02-23T10:15:30.123Z");
/// # Ok::<(), openhook::TimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// Why a text is no timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeError {
    /// Not `YYYY-MM-DDThh:mm:ss`.
    Form,
    /// A month 13, a 30th of February, an hour 25.
    Range,
    /// Everything is there but `Z` or an offset.
    NoZone,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "not of the form `YYYY-MM-DDThh:mm:ssZ`",
            Self::Range => "no such date or time of day",
            Self::NoZone => "without a time zone",
        })
    }
}

impl std::error::Error for TimeError {}

impl Timestamp {
    /// From milliseconds since 1970-01-01T00:00:00Z. None outside the years 0 to 9999.
    pub fn from_unix_millis(millis: i64) -> Option<Self> {
        let seconds = millis.div_euclid(1000);
        let nanos = u32::try_from(millis.rem_euclid(1000)).ok()? * 1_000_000;
        (FIRST_SECOND..=LAST_SECOND)
            .contains(&seconds)
            .then_some(Self { seconds, nanos })
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, cut off.
    pub fn unix_millis(self) -> i64 {
        self.seconds * 1000 + i64::from(self.nanos / 1_000_000)
    }
}

/// The first second of the year 0 and the last of the year 9999.
const FIRST_SECOND: i64 = -62_167_219_200;
const LAST_SECOND: i64 = 253_402_300_799;

impl std::str::FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let mut rest = Cursor(text.as_bytes());
        let date_and_time = (|| {
            let year = rest.digits(4)?;
            rest.eat(b"-")?;
            let month = rest.digits(2)?;
            rest.eat(b"-")?;
            let day = rest.digits(2)?;
            rest.eat(b"T")?;
            let hour = rest.digits(2)?;
            rest.eat(b":")?;
            let minute = rest.digits(2)?;
            rest.eat(b":")?;
            let second = rest.digits(2)?;
            let nanos = match rest.eat(b".,") {
                Some(_) => rest.fraction()?,
                None => 0,
            };
            Some((year, month, day, hour, minute, second, nanos))
        })();
        let (year, month, day, hour, minute, second, nanos) =
            date_and_time.ok_or(TimeError::Form)?;
        if rest.0.is_empty() {
            return Err(TimeError::NoZone);
        }
        let offset_minutes = rest.zone()?;
        if !rest.0.is_empty() {
            return Err(TimeError::Form);
        }
        // 60 is a leap second; as a point in time it is the next minute's first.
        if !(1..=12).contains(&month)
            || !(1..=days_in_month(year, month)).contains(&day)
            || hour > 23
            || minute > 59
            || second > 60
        {
            return Err(TimeError::Range);
        }
        let of_day = i64::from(hour * 3600 + minute * 60 + second);
        let seconds = days_from_civil(year, month, day) * 86_400 + of_day - offset_minutes * 60;
        Ok(Self { seconds, nanos })
    }
}

/// RFC 3339 in UTC, with milliseconds or finer only when there are any.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let of_day = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        if self.nanos > 0 {
            if self.nanos.is_multiple_of(1_000_000) {
                write!(f, ".{:03}", self.nanos / 1_000_000)?;
            } else {
                write!(f, ".{:09}", self.nanos)?;
            }
        }
        f.write_str("Z")
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn eat(&mut self, any_of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        any_of.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    fn digit(&mut self) -> Option<u32> {
        self.eat(b"0123456789").map(|b| u32::from(b - b'0'))
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        (0..count).try_fold(0, |number, _| Some(number * 10 + self.digit()?))
    }

    /// Any number of digits; what is finer than a nanosecond is cut off.
    fn fraction(&mut self) -> Option<u32> {
        let mut nanos = self.digit()? * 100_000_000;
        let mut unit = 10_000_000;
        while let Some(digit) = self.digit() {
            nanos += digit * unit;
            unit /= 10;
        }
        Some(nanos)
    }

    /// `Z`, `+hh`, `+hhmm` or `+hh:mm`: minutes east of UTC.
    fn zone(&mut self) -> Result<i64, TimeError> {
        if self.eat(b"Zz").is_some() {
            return Ok(0);
        }
        let sign = self.eat(b"+-").ok_or(TimeError::Form)?;
        let hours = self.digits(2).ok_or(TimeError::Form)?;
        let minutes = if self.0.is_empty() {
            0
        } else {
            self.eat(b":");
            self.digits(2).ok_or(TimeError::Form)?
        };
        if hours > 23 || minutes > 59 {
            return Err(TimeError::Range);
        }
        let total = i64::from(hours * 60 + minutes);
        Ok(if sign == b'-' { -total } else { total })
    }
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. The year is taken
/// to begin in March, so that the leap day is its last.
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Timestamp, TimeError> {
        text.parse()
    }

    #[test]
    fn reads_what_iso_8601_allows() {
        let noon = parse("2026-02-23T12:00:00Z").unwrap();
        for same in [
            "2026-02-23T12:00:00.000Z",
            "2026-02-23T12:00:00,0Z",
            "2026-02-23T12:00:00+00:00",
            "2026-02-23T14:00:00+02",
            "2026-02-23T06:30:00-0530",
            "2026-02-24T11:59:00+23:59",
        ] {
            assert_eq!(parse(same), Ok(noon), "{same}");
        }
        assert_eq!(noon.unix_millis(), 1_771_848_000_000);
        assert!(parse("2026-12-31T23:59:60Z").is_ok());
        assert!(parse("2024-02-29T00:00:00Z").is_ok());
        assert!(parse("2026-02-23T12:00:00.1234567891Z").unwrap() > noon);
    }

    #[test]
    fn says_why_not() {
        assert_eq!(parse("2026-02-23T12:00:00"), Err(TimeError::NoZone));
        assert_eq!(parse("2026-02-23T12:00:00.5"), Err(TimeError::NoZone));
        for form in [
            "",
            "yesterday",
            "2026-02-23",
            "2026-02-23 12:00:00Z",
            "2026-02-23T12:00Z",
            "20260223T120000Z",
            "2026-02-23T12:00:00.Z",
            "2026-02-23T12:00:00Zzz",
            "2026-02-23T12:00:00+2",
            "1771848000",
        ] {
            assert_eq!(parse(form), Err(TimeError::Form), "{form}");
        }
        for range in [
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-00-10T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00+24:00",
        ] {
            assert_eq!(parse(range), Err(TimeError::Range), "{range}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in [
            "1970-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999Z",
            "2000-02-29T12:34:56Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999Z",
            "2026-02-23T10:15:30.000000001Z",
        ] {
            let time = parse(text).unwrap();
            assert_eq!(time.to_string(), text);
            assert_eq!(
                Timestamp::from_unix_millis(time.unix_millis()).map(Timestamp::unix_millis),
                Some(time.unix_millis())
            );
        }
        assert_eq!(Timestamp::from_unix_millis(i64::MAX), None);
        assert_eq!(Timestamp::from_unix_millis(i64::MIN), None);
    }
}
