//! Points in time, without a clock: reads ISO 8601 with a zone, writes RFC 3339.

use std::fmt;

use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday, date};
use jiff::{SignedDuration, ToSpan};

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
pub struct Timestamp(
    /// In UTC. A `jiff::Timestamp` ends before the last day of the year 9999.
    DateTime,
);

/// Why a text is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("not ISO 8601, such as `2026-02-23T10:15:30Z`")]
    Form,
    /// A month 13, a 30th of February, an hour 25.
    #[error("no such date or time of day")]
    Range,
    /// Complete except for `Z` or an offset.
    #[error("without a time zone")]
    NoZone,
}

impl Timestamp {
    /// From milliseconds since 1970-01-01T00:00:00Z. None outside the years 0 to 9999.
    pub fn from_unix_millis(millis: i64) -> Option<Self> {
        let time = EPOCH
            .checked_add(SignedDuration::from_millis(millis))
            .ok()?;
        (time.year() >= 0).then_some(Self(time))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn unix_millis(self) -> i64 {
        let nanos = self.0.duration_since(EPOCH).as_nanos();
        // The years of a `DateTime` are far inside an `i64`.
        i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or_default()
    }
}

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

impl std::str::FromStr for Timestamp {
    type Err = TimeError;

    /// Reads every form of ISO 8601 that names a point in time: calendar, week and ordinal
    /// dates, with or without separators, down to the hour, with a fraction of the last unit.
    fn from_str(text: &str) -> Result<Self, TimeError> {
        let (day, rest) = text.split_once('T').ok_or(TimeError::Form)?;
        let zone_start = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
        let (time_of_day, zone) = rest.split_at_checked(zone_start).ok_or(TimeError::Form)?;
        let day = parse_date(day)?;
        let nanos = nanos_of_day(time_of_day)?;
        let to_utc = SignedDuration::from_nanos(nanos)
            - SignedDuration::from_secs(zone_offset_seconds(zone)?);
        day.at(0, 0, 0, 0)
            .checked_add(to_utc)
            .map(Self)
            .map_err(|_| TimeError::Range)
    }
}

/// A calendar date, an ordinal date or a week date.
fn parse_date(text: &str) -> Result<Date, TimeError> {
    let has_any_form = |forms: [&str; 2]| forms.iter().any(|form| has_form(text, form));
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let number = |from, to| digits.get(from..to).and_then(|it| it.parse::<i16>().ok());
    let small = |from, to| number(from, to).and_then(|it| i8::try_from(it).ok());
    let year = number(0, 4).ok_or(TimeError::Form)?;
    let date = if has_any_form(["0000-00-00", "00000000"]) {
        let month_and_day = small(4, 6).zip(small(6, 8));
        month_and_day.and_then(|(month, day)| Date::new(year, month, day).ok())
    } else if has_any_form(["0000-000", "0000000"]) {
        let first = Date::new(year, 1, 1).ok();
        first.zip(number(4, 7)).and_then(|(first, day)| {
            let date = first.checked_add(i32::from(day - 1).days()).ok()?;
            (date.year() == year).then_some(date)
        })
    } else if has_any_form(["0000-W00-0", "0000W000"]) {
        let week_and_day = small(4, 6).zip(small(6, 7));
        week_and_day.and_then(|(week, day)| {
            let day = Weekday::from_monday_one_offset(day).ok()?;
            Some(ISOWeekDate::new(year, week, day).ok()?.date())
        })
    } else {
        return Err(TimeError::Form);
    };
    date.ok_or(TimeError::Range)
}

/// Nanoseconds since midnight. The last unit may have a fraction, of which digits below a
/// billionth are cut off. A leap second is the first second of the next minute, and hour 24
/// the first of the next day.
fn nanos_of_day(text: &str) -> Result<i64, TimeError> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let is_fraction =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let forms = ["00:00:00", "00:00", "00", "000000", "0000"];
    if !forms.iter().any(|form| has_form(whole, form)) || !fraction.is_none_or(is_fraction) {
        return Err(TimeError::Form);
    }
    let digits = whole.replace(':', "");
    let number = |from| {
        let digits = digits.get(from..from + 2);
        digits.map_or(Ok(0), |it| it.parse::<i64>().map_err(|_| TimeError::Form))
    };
    let (hour, minute, second) = (number(0)?, number(2)?, number(4)?);
    let unit_seconds = match digits.len() {
        2 => 3600,
        4 => 60,
        _ => 1,
    };
    let digits = fraction.unwrap_or_default().bytes();
    let billionths = digits
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let seconds = hour * 3600 + minute * 60 + second;
    let nanos = seconds * 1_000_000_000 + billionths * unit_seconds;
    let is_in_day = hour < 24 || nanos == 24 * 3600 * 1_000_000_000;
    if !is_in_day || minute > 59 || second > 60 {
        return Err(TimeError::Range);
    }
    Ok(nanos)
}

/// Whether the text is `form` with other digits in place of its zeros.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, expected)| byte == expected || (expected == b'0' && byte.is_ascii_digit()))
}

/// `Z`, `+hh`, `+hhmm` or `+hh:mm`: seconds east of UTC.
fn zone_offset_seconds(zone: &str) -> Result<i64, TimeError> {
    let (sign, offset) = match zone.split_at_checked(1) {
        None if zone.is_empty() => return Err(TimeError::NoZone),
        Some(("Z" | "z", "")) => return Ok(0),
        Some(("+", offset)) => (1, offset),
        Some(("-", offset)) => (-1, offset),
        _ => return Err(TimeError::Form),
    };
    if !["00", "0000", "00:00"]
        .iter()
        .any(|form| has_form(offset, form))
    {
        return Err(TimeError::Form);
    }
    let digits = offset.replace(':', "");
    let number: i64 = digits.parse().map_err(|_| TimeError::Form)?;
    let (hours, minutes) = match digits.len() {
        2 => (number, 0),
        _ => (number / 100, number % 100),
    };
    if hours > 23 || minutes > 59 {
        return Err(TimeError::Range);
    }
    Ok(sign * (hours * 3600 + minutes * 60))
}

/// RFC 3339 in UTC, with milliseconds or finer only when there are any.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0.subsec_nanosecond() {
            0 => 0,
            nanos if nanos % 1_000_000 == 0 => 3,
            _ => 9,
        };
        write!(f, "{:.digits$}Z", self.0)
    }
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
            "2026-02-23T12:00Z",
            "2026-02-23T12Z",
            "2026-02-23T11.5-00:30",
            "20260223T120000Z",
            "20260223T1200+00",
            "20260223T12,0Z",
            "2026-02-23T11:59:60Z",
            "2026-02-22T24:00-12:00",
            "2026-054T12:00:00Z",
            "2026054T120000Z",
            "2026-W09-1T12:00:00Z",
            "2026W091T12Z",
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
            "2026-02T12:00Z",
            "2026-02-23T12:0000Z",
            "2026-W091T12Z",
            "2026-02-23TZ",
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
            "2026-01-01T24:00:01Z",
            "2026-01-01T25Z",
            "2026-366T00Z",
            "2026-000T00Z",
            "2026-W54-1T00Z",
            "2026-W01-8T00Z",
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
