//! Deletes what is no longer kept, a little at a time: a writer waits for one step only.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::error::Result;
use crate::query::Retention;
use crate::rollup::{RollupChanges, decode_runs};
use crate::session_changes::SessionCounts;
use crate::sqlite::identifiers;
use crate::sqlite::ingest::{apply_rollups, change_totals, stored_bytes as event_bytes};
use crate::sqlite::upgrade;

/// Some milliseconds of work.
const STEP_EVENTS: i64 = 200;
/// Pages that are given back to the file system in one step: at most 1 MiB.
const STEP_PAGES: i64 = 128;

pub(crate) fn stored_bytes(connection: &Connection) -> Result<u64> {
    let sql = "SELECT value FROM anyhook_totals WHERE name = 'bytes'";
    let bytes: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// Deletes some of the oldest events that the limits do not keep; returns their number.
pub(crate) fn step(connection: &mut Connection, retention: &Retention) -> Result<u64> {
    // Sums of events that are not moved yet are not known.
    if upgrade::has_old_events(connection)? {
        return Ok(0);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before_us = retention.cutoff_us().unwrap_or(i64::MIN);
    let over = match retention.max_bytes {
        Some(max) => stored_bytes(&transaction)?.saturating_sub(max),
        None => 0,
    };
    let deleted = delete_oldest(&transaction, retention, before_us, over)?;
    transaction.commit()?;
    Ok(deleted)
}

/// Deletes the oldest events that are before a time, or until this many bytes are freed.
fn delete_oldest(
    connection: &Connection,
    retention: &Retention,
    before_us: i64,
    mut over: u64,
) -> Result<u64> {
    let mut rollups = RollupChanges::default();
    let mut sessions: HashMap<i64, SessionCounts> = HashMap::new();
    let mut numbers = Vec::new();
    let mut bytes = 0;
    {
        let mut facets = connection
            .prepare_cached("SELECT type, decision FROM anyhook_facets WHERE facet = ?1")?;
        let mut oldest = connection.prepare_cached(
            "SELECT seq, time_us, facet, origin, session, duration_ms, runs, LENGTH(body) \
             FROM anyhook_events INDEXED BY anyhook_event_time ORDER BY time_us, seq LIMIT ?1",
        )?;
        let mut rows = oldest.query([STEP_EVENTS])?;
        while let Some(row) = rows.next()? {
            let time_us: i64 = row.get(1)?;
            let size = event_bytes(row.get(7)?);
            if time_us >= before_us && over == 0 {
                break;
            }
            if !retention.may_delete(row.get(0)?) {
                break;
            }
            over = over.saturating_sub(u64::try_from(size).unwrap_or_default());
            bytes += size;
            let facet: i64 = row.get(2)?;
            let runs = decode_runs(row.get_ref(6)?.as_blob().unwrap_or_default());
            rollups.add(time_us, row.get(3)?, facet, row.get(5)?, &runs);
            if let Some(session) = row.get::<_, Option<i64>>(4)? {
                let (kind, decision): (String, String) =
                    facets.query_row([facet], |row| Ok((row.get(0)?, row.get(1)?)))?;
                let loss = sessions.entry(session).or_default();
                loss.add(&kind, &decision, 1);
            }
            numbers.push(row.get::<_, i64>(0)?);
        }
    }
    if numbers.is_empty() {
        return Ok(0);
    }
    let mut delete_event =
        connection.prepare_cached("DELETE FROM anyhook_events WHERE seq = ?1")?;
    let mut delete_text =
        connection.prepare_cached("DELETE FROM anyhook_search WHERE rowid = ?1")?;
    for seq in &numbers {
        delete_event.execute([seq])?;
        delete_text.execute([seq])?;
    }
    apply_rollups(connection, &rollups, -1)?;
    for (session, loss) in &sessions {
        reduce_session(connection, *session, loss)?;
    }
    delete_empty_blocks(connection, &numbers)?;
    let count = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
    change_totals(connection, -count, -bytes)?;
    Ok(numbers.len() as u64)
}

fn reduce_session(connection: &Connection, session: i64, loss: &SessionCounts) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE anyhook_sessions SET events = events - ?2, tools = tools - ?3, \
             denials = denials - ?4, asks = asks - ?5, first_us = COALESCE((SELECT MIN(time_us) \
             FROM anyhook_events e WHERE e.session = ?1), first_us) WHERE session = ?1",
        )?
        .execute(params![
            session,
            loss.events,
            loss.tools,
            loss.denials,
            loss.asks
        ])?;
    connection
        .prepare_cached("DELETE FROM anyhook_sessions WHERE session = ?1 AND events <= 0")?
        .execute([session])?;
    Ok(())
}

fn delete_empty_blocks(connection: &Connection, numbers: &[i64]) -> Result<()> {
    use crate::sqlite::ingest::BLOCK_EVENTS;
    let blocks: HashSet<i64> = numbers.iter().map(|seq| seq / BLOCK_EVENTS).collect();
    let mut delete = connection.prepare_cached(
        "DELETE FROM anyhook_blocks WHERE block = ?1 AND NOT EXISTS \
         (SELECT 1 FROM anyhook_events WHERE seq >= ?2 AND seq < ?3)",
    )?;
    for block in blocks {
        let deleted = delete.execute(params![
            block,
            block * BLOCK_EVENTS,
            (block + 1) * BLOCK_EVENTS
        ])?;
        if deleted > 0 {
            identifiers::delete_block(connection, block)?;
        }
    }
    Ok(())
}

/// Gives some free pages back to the file system; `true` if there are more.
pub(crate) fn vacuum_step(connection: &Connection) -> Result<bool> {
    let free = |connection: &Connection| -> Result<i64> {
        let free = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0));
        Ok(free.optional()?.unwrap_or_default())
    };
    // A few are soon used again.
    if free(connection)? <= STEP_PAGES {
        return Ok(false);
    }
    let mut pages = connection.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut rows = pages.query([])?;
    while rows.next()?.is_some() {}
    Ok(free(connection)? > STEP_PAGES)
}
