//! Moves events of older versions to the tables of this one, and trains dictionaries.
//!
//! A step moves some events in one transaction, the newest first: nothing is lost or there
//! twice wherever it is interrupted, and the next step goes on from there.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::body;
use crate::error::Result;
use crate::row::EventRow;
use crate::sqlite::connections::Connections;
use crate::sqlite::ingest;
use crate::store::UpgradeProgress;

const STEP_EVENTS: i64 = 200;
/// A store of this many events gets its first dictionary, its second, ...
const DICTIONARY_EVENTS: [i64; 2] = [1_000, 50_000];
const SAMPLE_EVENTS: i64 = 2_000;

/// Whether there is something left to move. The old table goes with its last event.
pub(crate) fn has_old_events(connection: &Connection) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE name = 'anyhook_old_events'";
    let found: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(found.is_some())
}

pub(crate) fn drop_old_if_empty(connection: &Connection) -> Result<()> {
    if !has_old_events(connection)? {
        return Ok(());
    }
    let sql = "SELECT 1 FROM anyhook_old_events LIMIT 1";
    let left: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    if left.is_none() {
        connection.execute_batch("DROP TABLE anyhook_old_runs; DROP TABLE anyhook_old_events;")?;
    }
    Ok(())
}

pub(crate) fn has_old_event(connection: &Connection, id: &str) -> Result<bool> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT 1 FROM anyhook_old_events WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    Ok(found.is_some())
}

pub(crate) fn progress(connection: &Connection) -> Result<Option<UpgradeProgress>> {
    if !has_old_events(connection)? {
        return Ok(None);
    }
    // Numbers grow without gaps but for what retention has deleted at the beginning.
    let sql = "SELECT COALESCE(MAX(seq) - MIN(seq) + 1, 0) FROM anyhook_old_events";
    let left: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    let sql = "SELECT value FROM anyhook_totals WHERE name = 'events'";
    let done: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(Some(UpgradeProgress {
        done: u64::try_from(done).unwrap_or_default(),
        left: u64::try_from(left).unwrap_or_default(),
    }))
}

/// Moves some events; `None` when nothing is left.
pub(crate) fn step(connections: &Connections) -> Result<Option<UpgradeProgress>> {
    let rows = connections.with_reader(|reader, _| {
        if !has_old_events(reader)? {
            return Ok(None);
        }
        let sql = "SELECT seq, time_us, body FROM anyhook_old_events ORDER BY seq DESC LIMIT ?1";
        let mut statement = reader.prepare(sql)?;
        let found = statement.query_map([STEP_EVENTS], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
        })?;
        let mut rows = Vec::new();
        for found in found {
            let (seq, time_us, body) = found?;
            rows.push((seq, EventRow::from_stored(seq, time_us, &body).ok()));
        }
        // The search index prefers growing numbers.
        rows.reverse();
        Ok(Some(rows))
    })?;
    let Some(rows) = rows else {
        return Ok(None);
    };
    let numbers: Vec<i64> = rows.iter().map(|(seq, _)| *seq).collect();
    let rows: Vec<EventRow> = rows.into_iter().filter_map(|(_, row)| row).collect();
    let bodies = connections.encode(&rows)?;
    connections.with_writer(|writer| {
        let names = &mut writer.names;
        let transaction = writer
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have moved them since they were read.
        if has_old_events(&transaction)? {
            let mut delete =
                transaction.prepare("DELETE FROM anyhook_old_events WHERE seq = ?1")?;
            let mut moved = Vec::new();
            for seq in &numbers {
                if delete.execute([seq])? > 0 {
                    moved.push(*seq);
                }
            }
            drop(delete);
            let still = |row: &EventRow| moved.binary_search(&row.summary.seq).is_ok();
            let (rows, bodies): (Vec<EventRow>, Vec<Vec<u8>>) = rows
                .into_iter()
                .zip(bodies)
                .filter(|(row, _)| still(row))
                .unzip();
            ingest::insert_events(&transaction, names, &rows, &bodies)?;
            drop_old_if_empty(&transaction)?;
        }
        transaction.commit()?;
        Ok(())
    })?;
    connections.with_reader(|reader, _| progress(reader))
}

/// Trains the dictionary that a store of this size should have; `false` if it has it.
pub(crate) fn train_dictionary(connections: &Connections) -> Result<bool> {
    let samples = connections.with_reader(|reader, records| {
        let sql = "SELECT (SELECT value FROM anyhook_totals WHERE name = 'events'), \
                   (SELECT COUNT(*) FROM anyhook_dictionaries)";
        let (events, count): (i64, i64) =
            reader.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let number = usize::try_from(count).unwrap_or(usize::MAX);
        if DICTIONARY_EVENTS.get(number).is_none_or(|at| events < *at) {
            return Ok(None);
        }
        // From all over the newest part, so that one session does not decide.
        let sql = "SELECT body FROM anyhook_events ORDER BY seq DESC LIMIT ?1";
        let mut statement = reader.prepare(sql)?;
        let mut rows = statement.query([SAMPLE_EVENTS])?;
        let mut samples = Vec::new();
        while let Some(row) = rows.next()? {
            samples.push(records.body(row.get_ref(0)?.as_blob().unwrap_or_default())?);
        }
        Ok(Some((count + 1, samples)))
    })?;
    let Some((number, samples)) = samples else {
        return Ok(false);
    };
    // Records that have nothing in common get an empty one, and are not looked at again.
    let dictionary = body::train_dictionary(&samples).unwrap_or_default();
    connections.with_writer(|writer| {
        let sql = "INSERT OR IGNORE INTO anyhook_dictionaries (number, bytes) VALUES (?1, ?2)";
        writer
            .connection
            .execute(sql, params![number, dictionary])?;
        Ok(())
    })?;
    connections.reload_dictionaries()?;
    Ok(true)
}
