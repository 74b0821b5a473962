//! The partitions of `anyhook_events`: one for each day, and one for days that get none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use postgres::Row;

use crate::error::Result;
use crate::postgres::session::Session;
use crate::rollup::DAY_US;

/// The part of days that have no partition.
pub(crate) const OTHER_DAYS: i64 = i64::MIN;
const OTHER_DAYS_TABLE: &str = "anyhook_events_other";
/// A sender decides the times of its events, not how many tables there are.
const OLDEST_DAYS: i64 = 400;
/// Of each partition.
const INDEX_COUNT: i64 = 6;
const NEWEST_DAYS: i64 = 2;

/// One partition, as far as queries need to know it.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Since 1970; [`OTHER_DAYS`] if it is of several.
    pub day: i64,
    pub name: String,
    pub min_us: i64,
    pub max_us: i64,
    pub min_seq: i64,
    pub max_seq: i64,
    pub events: i64,
    pub bytes: i64,
    /// The last event that the search index knows, and how many came after it.
    pub grouped_seq: i64,
    pub pending: i64,
    /// Its indexes that were rebuilt.
    pub compacted: i64,
}

impl Part {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            day: row.try_get(0)?,
            name: row.try_get(1)?,
            min_us: row.try_get(2)?,
            max_us: row.try_get(3)?,
            min_seq: row.try_get(4)?,
            max_seq: row.try_get(5)?,
            events: row.try_get(6)?,
            bytes: row.try_get(7)?,
            grouped_seq: row.try_get(8)?,
            pending: row.try_get(9)?,
            compacted: row.try_get(10)?,
        })
    }
}

/// Every part, by number.
pub(crate) fn all(session: &mut Session) -> Result<BTreeMap<i64, Part>> {
    let sql = "SELECT part, name, min_us, max_us, min_seq, max_seq, events, bytes, \
               grouped_seq, pending, compacted FROM anyhook_parts";
    let rows = session.query(sql, &[])?;
    let parts = rows.iter().map(Part::from_row);
    parts
        .map(|part| part.map(|part| (part.day, part)))
        .collect()
}

/// The part that the events of a day are in, whether it exists or not.
fn wanted_part(day: i64, today: i64) -> i64 {
    if (today - OLDEST_DAYS..=today + NEWEST_DAYS).contains(&day) {
        day
    } else {
        OTHER_DAYS
    }
}

/// The part that events of a day are in now.
pub(crate) fn of_day(parts: &BTreeMap<i64, Part>, day: i64) -> i64 {
    if parts.contains_key(&day) {
        day
    } else {
        OTHER_DAYS
    }
}

/// Makes the partitions that events of these days need. Returns every part, and whether one
/// is new.
pub(crate) fn ensure(
    session: &mut Session,
    days: &BTreeSet<i64>,
) -> Result<(BTreeMap<i64, Part>, bool)> {
    let mut parts = all(session)?;
    let today = Timestamp::now().as_microsecond().div_euclid(DAY_US);
    let mut made = false;
    let needed: BTreeSet<i64> = days
        .iter()
        .filter(|day| !parts.contains_key(day))
        .map(|day| wanted_part(*day, today))
        .collect();
    for part in needed {
        if !parts.contains_key(&part) {
            create(session, part)?;
            made = true;
        }
    }
    if made {
        parts = all(session)?;
    }
    Ok((parts, made))
}

/// Makes a partition. One with a table of its own takes over what the other days have of it.
fn create(session: &mut Session, part: i64) -> Result<()> {
    let name = match part {
        OTHER_DAYS => OTHER_DAYS_TABLE.to_owned(),
        day => format!("anyhook_events_d{}", day_name(day)),
    };
    let mut steps = vec![format!(
        "CREATE TABLE {name} (LIKE anyhook_events INCLUDING STORAGE INCLUDING DEFAULTS)"
    )];
    for (kind, columns) in [
        ("UNIQUE INDEX", "(seq)"),
        ("UNIQUE INDEX", "(id)"),
        ("INDEX", "(time_us, seq)"),
        ("INDEX", "(facet, time_us, seq)"),
        ("INDEX", "(origin, time_us, seq)"),
        ("INDEX", "(session, time_us, seq) WHERE session IS NOT NULL"),
    ] {
        steps.push(format!("CREATE {kind} ON {name} {columns}"));
    }
    let attach = format!("ALTER TABLE anyhook_events ATTACH PARTITION {name}");
    if part == OTHER_DAYS {
        steps.push(format!("{attach} DEFAULT"));
    } else {
        let from = part.saturating_mul(DAY_US);
        let until = from.saturating_add(DAY_US);
        let other = "SELECT part FROM anyhook_parts WHERE part = $1";
        if session.query_int(other, &[&OTHER_DAYS])?.is_some() {
            steps.push(format!(
                "WITH moved AS (DELETE FROM {OTHER_DAYS_TABLE} WHERE time_us >= {from} \
                 AND time_us < {until} RETURNING *) INSERT INTO {name} SELECT * FROM moved"
            ));
        }
        steps.push(format!("{attach} FOR VALUES FROM ({from}) TO ({until})"));
    }
    let sql = steps.join("; ");
    session.client.batch_execute(&sql)?;
    session.execute(
        "INSERT INTO anyhook_parts (part, name, min_us, max_us, min_seq, max_seq, events, bytes) \
         VALUES ($1, $2, $3, $4, $3, $4, 0, 0)",
        &[&part, &name, &i64::MAX, &i64::MIN],
    )?;
    recount(session, part, &name)
}

/// Counts what a new partition took over.
fn recount(session: &mut Session, part: i64, name: &str) -> Result<()> {
    let sql = format!(
        "UPDATE anyhook_parts p SET events = c.events, pending = c.events, bytes = c.bytes, min_us = c.min_us, \
         max_us = c.max_us, min_seq = c.min_seq, max_seq = c.max_seq FROM (SELECT COUNT(*) AS \
         events, COALESCE(SUM({EVENT_BYTES}), 0)::bigint AS bytes, MIN(time_us) AS min_us, \
         MAX(time_us) AS max_us, MIN(seq) AS min_seq, MAX(seq) AS max_seq FROM {name}) c \
         WHERE p.part = {part} AND c.events > 0"
    );
    session.client.batch_execute(&sql)?;
    if part == OTHER_DAYS {
        return Ok(());
    }
    let sql = format!(
        "UPDATE anyhook_parts o SET events = o.events - p.events, bytes = o.bytes - p.bytes \
         FROM anyhook_parts p WHERE p.part = {part} AND o.part = {OTHER_DAYS}"
    );
    session.client.batch_execute(&sql)?;
    Ok(())
}

/// A day that is over and whose indexes are not all rebuilt. The last two days still get
/// events of machines that send late.
fn uncompacted(parts: &BTreeMap<i64, Part>) -> Option<&Part> {
    let newest = parts.keys().next_back()?;
    let is_over = |part: &&Part| part.day != OTHER_DAYS && part.day < newest - 1;
    parts
        .values()
        .filter(is_over)
        .find(|part| part.events > 0 && part.compacted < INDEX_COUNT)
}

pub(crate) fn is_uncompacted(session: &mut Session) -> Result<bool> {
    Ok(uncompacted(&all(session)?).is_some())
}

/// Rebuilds an index of a day that is over, which takes a third off its size. Queries of
/// that day wait meanwhile; a day of a million events takes about a second.
pub(crate) fn compact_step(session: &mut Session) -> Result<()> {
    let parts = all(session)?;
    let Some(part) = uncompacted(&parts) else {
        return Ok(());
    };
    session
        .client
        .batch_execute("SET LOCAL lock_timeout = '1s'")?;
    let sql = "SELECT indexrelid::regclass::text FROM pg_index \
               WHERE indrelid = to_regclass($1) ORDER BY indexrelid OFFSET $2 LIMIT 1";
    if let Some(row) = session.query(sql, &[&part.name, &part.compacted])?.first() {
        let index: &str = row.try_get(0)?;
        session
            .client
            // Few events of that day are still to come.
            .batch_execute(&format!(
                "ALTER INDEX {index} SET (fillfactor = 100); REINDEX INDEX {index}"
            ))?;
    }
    session.execute(
        "UPDATE anyhook_parts SET compacted = $2 WHERE part = $1",
        &[&part.day, &(part.compacted + 1)],
    )?;
    Ok(())
}

/// What one event takes, for retention by size.
pub(crate) const EVENT_BYTES: &str = "octet_length(body) + octet_length(text) + 400";

pub(crate) fn event_bytes(body: &[u8]) -> i64 {
    const COLUMN_AND_INDEX_BYTES: usize = 400;
    crate::row::saturating_i64(body.len() + COLUMN_AND_INDEX_BYTES)
}

/// A day as part of a name: 20260301.
fn day_name(day: i64) -> String {
    let date = crate::row::rfc3339_micros(day.saturating_mul(DAY_US));
    let date: String = date.chars().take_while(|it| *it != 'T').collect();
    date.replace('-', "")
}
