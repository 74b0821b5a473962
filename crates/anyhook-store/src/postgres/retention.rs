//! Deletes what is no longer kept: whole partitions where it can, else some events at a time.

use std::collections::HashMap;

use postgres::Row;

use crate::error::Result;
use crate::postgres::parts::{self, EVENT_BYTES, OTHER_DAYS, Part};
use crate::postgres::session::Session;
use crate::postgres::{search_groups, sums, upgrade};
use crate::query::Retention;
use crate::rollup::{
    ALL_LEVEL, ALL_ORIGINS, DAY_LEVEL, DAY_US, EventSums, HOUR_LEVEL, HookSums, RollupChanges,
    RollupKey, StoredSums, decode_runs,
};
use crate::session_changes::SessionCounts;

/// Events that one step deletes from a partition that is not dropped.
const STEP_EVENTS: i64 = 1000;
/// How long a partition waits for the queries that read it. The next step tries again.
const DROP_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'";

/// Deletes some of the oldest events that the limits do not keep; returns their number.
///
/// By age, days are deleted as a whole when their last moment is too old.
pub(crate) fn step(session: &mut Session, retention: &Retention) -> Result<u64> {
    // Sums of events that are not moved yet are not known.
    if upgrade::has_old_events(session)? {
        return Ok(0);
    }
    let all = parts::all(session)?;
    let mut parts: Vec<&Part> = all.values().collect();
    parts.sort_unstable_by_key(|part| part.min_us);
    if let Some(cutoff) = retention.cutoff_us() {
        let is_over = |part: &Part| (part.day + 1).saturating_mul(DAY_US) <= cutoff;
        for part in &parts {
            if part.day == OTHER_DAYS && part.events > 0 {
                let deleted = delete_oldest(session, retention, part, cutoff, 0)?;
                if deleted > 0 {
                    return Ok(deleted);
                }
            } else if part.day != OTHER_DAYS && is_over(part) && retention.may_delete(part.max_seq)
            {
                drop_part(session, part)?;
                // An empty one is no reason to stop.
                if part.events > 0 {
                    return Ok(u64::try_from(part.events).unwrap_or_default());
                }
            }
        }
    }
    let Some(max) = retention.max_bytes else {
        return Ok(0);
    };
    let bytes: i64 = parts.iter().map(|part| part.bytes).sum();
    let over = bytes.saturating_sub(i64::try_from(max).unwrap_or(i64::MAX));
    let Some(oldest) = parts
        .iter()
        .find(|part| part.events > 0)
        .filter(|_| over > 0)
    else {
        return Ok(0);
    };
    let is_whole = oldest.day != OTHER_DAYS && oldest.bytes <= over;
    if is_whole && retention.may_delete(oldest.max_seq) {
        drop_part(session, oldest)?;
        return Ok(u64::try_from(oldest.events).unwrap_or_default());
    }
    delete_oldest(session, retention, oldest, i64::MIN, over)
}

/// Drops a partition, and takes its day out of the sums and sessions.
fn drop_part(session: &mut Session, part: &Part) -> Result<()> {
    session.client.batch_execute(DROP_LOCK_TIMEOUT)?;
    let sql = format!(
        "SELECT e.session, f.type, f.decision, COUNT(*) FROM {} e \
         JOIN anyhook_facets f ON f.facet = e.facet WHERE e.session IS NOT NULL \
         GROUP BY e.session, f.type, f.decision",
        part.name
    );
    let mut losses: HashMap<i64, SessionCounts> = HashMap::new();
    for row in &session.query(&sql, &[])? {
        let loss = losses.entry(row.try_get(0)?).or_default();
        loss.add(row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    }
    session
        .client
        .batch_execute(&format!("DROP TABLE {}", part.name))?;
    for table in ["anyhook_parts", "anyhook_search"] {
        let sql = format!("DELETE FROM {table} WHERE part = $1");
        session.execute(&sql, &[&part.day])?;
    }
    delete_day_sums(session, part.day)?;
    let until = (part.day + 1).saturating_mul(DAY_US);
    session.execute(
        "DELETE FROM anyhook_ids WHERE time_us >= $1 AND time_us < $2",
        &[&part.day.saturating_mul(DAY_US), &until],
    )?;
    reduce_sessions(session, &losses)
}

fn delete_day_sums(session: &mut Session, day: i64) -> Result<()> {
    let changes = RollupChanges {
        events: day_sums::<EventSums>(session, day)?,
        hooks: day_sums::<HookSums>(session, day)?,
    };
    for table in [EventSums::TABLE, HookSums::TABLE] {
        for (level, from, until) in [
            (HOUR_LEVEL, day * 24, day * 24 + 24),
            (DAY_LEVEL, day, day + 1),
        ] {
            let sql =
                format!("DELETE FROM {table} WHERE level = $1 AND start >= $2 AND start < $3");
            session.execute(&sql, &[&level, &from, &until])?;
        }
    }
    sums::apply(session, &changes, -1)
}

/// The sums of a day, as what the sums of all time lose with it.
fn day_sums<S: StoredSums>(
    session: &mut Session,
    day: i64,
) -> Result<HashMap<(RollupKey, i64), S>> {
    let has_hook = S::KEY_COLUMNS.contains(&"hook");
    let sql = format!(
        "SELECT facet, {}, {} FROM {} WHERE level = $1 AND start = $2 AND origin = $3",
        if has_hook { "hook" } else { "0::bigint" },
        S::value_columns(),
        S::TABLE
    );
    let mut found = HashMap::new();
    for row in &session.query(&sql, &[&DAY_LEVEL, &day, &ALL_ORIGINS])? {
        let mut row = crate::postgres::result_row(row)?;
        let (facet, hook) = (row.int()?, row.int()?);
        let key = RollupKey {
            level: ALL_LEVEL,
            start: 0,
            origin: ALL_ORIGINS,
            facet,
        };
        found.insert((key, hook), S::from_values(&mut row)?);
    }
    Ok(found)
}

/// Deletes the oldest events of a partition that are before a time, or until this many bytes
/// are freed.
fn delete_oldest(
    session: &mut Session,
    retention: &Retention,
    part: &Part,
    before_us: i64,
    mut over: i64,
) -> Result<u64> {
    let sql = format!(
        "SELECT e.seq, e.time_us, e.facet, e.origin, e.session, e.duration_ms, e.runs, \
         ({EVENT_BYTES})::bigint, e.id, f.type, f.decision FROM {} e \
         JOIN anyhook_facets f ON f.facet = e.facet ORDER BY e.time_us, e.seq LIMIT $1",
        part.name
    );
    let mut rollups = RollupChanges::default();
    let mut losses: HashMap<i64, SessionCounts> = HashMap::new();
    let (mut numbers, mut ids) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for row in &session.query(&sql, &[&STEP_EVENTS])? {
        let time_us: i64 = row.try_get(1)?;
        let size: i64 = row.try_get(7)?;
        if (time_us >= before_us && over <= 0) || !retention.may_delete(row.try_get(0)?) {
            break;
        }
        over -= size;
        bytes += size;
        let runs = decode_runs(row.try_get(6)?);
        let (facet, origin) = (row.try_get(2)?, row.try_get(3)?);
        rollups.add(time_us, origin, facet, row.try_get(5)?, &runs);
        add_loss(&mut losses, row)?;
        numbers.push(row.try_get::<_, i64>(0)?);
        ids.push(row.try_get::<_, Vec<u8>>(8)?);
    }
    if numbers.is_empty() {
        return Ok(0);
    }
    let sql = format!("DELETE FROM {} WHERE seq = ANY($1)", part.name);
    session.execute(&sql, &[&numbers])?;
    session.execute("DELETE FROM anyhook_ids WHERE id = ANY($1)", &[&ids])?;
    let count = crate::row::saturating_i64(numbers.len());
    session.execute(
        "UPDATE anyhook_parts SET events = events - $2, bytes = bytes - $3 WHERE part = $1",
        &[&part.day, &count, &bytes],
    )?;
    search_groups::remove_oldest(session, part)?;
    sums::apply(session, &rollups, -1)?;
    reduce_sessions(session, &losses)?;
    Ok(numbers.len() as u64)
}

fn add_loss(losses: &mut HashMap<i64, SessionCounts>, row: &Row) -> Result<()> {
    if let Some(number) = row.try_get::<_, Option<i64>>(4)? {
        let loss = losses.entry(number).or_default();
        loss.add(row.try_get(9)?, row.try_get(10)?, 1);
    }
    Ok(())
}

/// Takes deleted events out of their sessions; sessions without events are deleted.
fn reduce_sessions(session: &mut Session, losses: &HashMap<i64, SessionCounts>) -> Result<()> {
    if losses.is_empty() {
        return Ok(());
    }
    let losses: Vec<(i64, SessionCounts)> = losses.iter().map(|(at, it)| (*at, *it)).collect();
    let column =
        |read: fn(&(i64, SessionCounts)) -> i64| losses.iter().map(read).collect::<Vec<i64>>();
    let numbers = column(|it| it.0);
    session.execute(
        "UPDATE anyhook_sessions s SET events = s.events - c.events, tools = s.tools - c.tools, \
         denials = s.denials - c.denials, asks = s.asks - c.asks \
         FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) \
         AS c (session, events, tools, denials, asks) WHERE s.session = c.session",
        &[
            &numbers,
            &column(|it| it.1.events),
            &column(|it| it.1.tools),
            &column(|it| it.1.denials),
            &column(|it| it.1.asks),
        ],
    )?;
    session.execute(
        "DELETE FROM anyhook_sessions WHERE session = ANY($1) AND events <= 0",
        &[&numbers],
    )?;
    session.execute(
        "UPDATE anyhook_sessions s SET first_us = COALESCE((SELECT MIN(time_us) \
         FROM anyhook_events e WHERE e.session = s.session), first_us) WHERE session = ANY($1)",
        &[&numbers],
    )?;
    Ok(())
}
