//! The index of identifiers: for a few events that arrived one after another, the codes of
//! the identifiers in them ([`crate::identifiers`]).
//!
//! Events that were there before the index are added in small steps, the newest first.

use std::collections::BTreeSet;

use rusqlite::{Connection, TransactionBehavior, params};

use crate::error::Result;
use crate::identifiers;
use crate::row::saturating_i64;
use crate::sqlite::connections::{Connections, RecordReader};
use crate::sqlite::ingest::BLOCK_EVENTS;
use crate::sqlite::reading::rows_of_keys;
use crate::sqlite::upgrade;

/// Events of one row.
const ROW_EVENTS: i64 = 8;
/// An event with more codes is looked at by every search.
const MAX_CODES: usize = 256;
/// No hash has this code.
const MANY_CODES: &str = "many";
/// Of a long text: more of them find hardly less.
const MAX_QUERY_CODES: usize = 8;
const STEP_EVENTS: i64 = 500;

/// Events on their way into the index, in the order of their numbers.
#[derive(Default)]
pub(crate) struct IdentifierRows {
    rows: Vec<(i64, BTreeSet<String>)>,
}

impl IdentifierRows {
    pub(crate) fn add(&mut self, seq: i64, text: &str) {
        let mut codes = identifiers::codes(text);
        if codes.len() > MAX_CODES {
            codes = BTreeSet::from([MANY_CODES.to_owned()]);
        }
        match self.rows.last_mut() {
            Some((first, row)) if is_in_row(*first, seq) => row.append(&mut codes),
            _ => self.rows.push((seq, codes)),
        }
    }

    pub(crate) fn insert(&self, connection: &Connection) -> Result<()> {
        let mut insert = connection
            .prepare_cached("INSERT INTO anyhook_identifiers (rowid, codes) VALUES (?1, ?2)")?;
        for (first, codes) in self.rows.iter().filter(|(_, codes)| !codes.is_empty()) {
            let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
            insert.execute(params![first, codes.join(" ")])?;
        }
        Ok(())
    }
}

/// Whether an event is one of the row whose first event is `first`.
fn is_in_row(first: i64, seq: i64) -> bool {
    (first..first.saturating_add(ROW_EVENTS)).contains(&seq)
        && first / BLOCK_EVENTS == seq / BLOCK_EVENTS
}

/// A query for the codes of a text; `None` if it has none.
pub(crate) fn index_query(text: &str) -> Option<String> {
    let codes = identifiers::codes(text);
    let codes: Vec<&str> = codes
        .iter()
        .take(MAX_QUERY_CODES)
        .map(String::as_str)
        .collect();
    (!codes.is_empty()).then(|| format!("({}) OR {MANY_CODES}", quoted_all(&codes)))
}

fn quoted_all(codes: &[&str]) -> String {
    let quoted: Vec<String> = codes.iter().map(|code| format!("\"{code}\"")).collect();
    quoted.join(" AND ")
}

/// The numbers of events below `below` that may match a query, descending. They are those of
/// at most `limit` rows; the second value is the row where it ended, if there may be more.
pub(crate) fn candidates(
    connection: &Connection,
    query: &str,
    below: i64,
    limit: usize,
) -> Result<(Vec<i64>, Option<i64>)> {
    let mut select = connection.prepare_cached(
        "SELECT rowid FROM anyhook_identifiers WHERE anyhook_identifiers MATCH ?1 \
         AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3",
    )?;
    let rows = select.query_map(params![query, below, saturating_i64(limit)], |row| {
        row.get(0)
    })?;
    let rows: Vec<i64> = rows.collect::<rusqlite::Result<_>>()?;
    let events = rows
        .iter()
        .flat_map(|first| *first..first.saturating_add(ROW_EVENTS));
    let numbers: BTreeSet<i64> = events.filter(|seq| *seq < below).collect();
    let end = rows.last().copied().filter(|_| rows.len() == limit);
    Ok((numbers.into_iter().rev().collect(), end))
}

/// The lowest number that the index knows.
pub(crate) fn known_from(connection: &Connection) -> Result<i64> {
    let sql = "SELECT value FROM anyhook_totals WHERE name = 'identifiers_from'";
    let mut select = connection.prepare_cached(sql)?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// After the last event of a block was deleted.
pub(crate) fn delete_block(connection: &Connection, block: i64) -> Result<()> {
    let first = block.saturating_mul(BLOCK_EVENTS);
    connection
        .prepare_cached("DELETE FROM anyhook_identifiers WHERE rowid >= ?1 AND rowid < ?2")?
        .execute(params![first, first.saturating_add(BLOCK_EVENTS)])?;
    Ok(())
}

/// Adds some older events; `false` when all are in the index.
pub(crate) fn step(connections: &Connections) -> Result<bool> {
    let found = connections.with_reader(|reader, records| {
        let from = known_from(reader)?;
        // Numbers below those of events that are still to be moved.
        if from <= 1 || upgrade::has_old_events(reader)? {
            return Ok(None);
        }
        let (rows, lowest) = rows_below(reader, records, from)?;
        Ok(Some((from, lowest, rows)))
    })?;
    let Some((from, lowest, rows)) = found else {
        return Ok(false);
    };
    connections.with_writer(|writer| {
        let transaction = writer
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have added them since they were read.
        if known_from(&transaction)? == from {
            rows.insert(&transaction)?;
            transaction
                .prepare_cached(
                    "UPDATE anyhook_totals SET value = ?1 WHERE name = 'identifiers_from'",
                )?
                .execute([lowest])?;
        }
        transaction.commit()?;
        Ok(())
    })?;
    Ok(lowest > 1)
}

/// The last events below a number, and the lowest number that is known then.
fn rows_below(
    connection: &Connection,
    records: &RecordReader<'_>,
    below: i64,
) -> Result<(IdentifierRows, i64)> {
    let sql = "SELECT time_us, seq FROM anyhook_events WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
    let mut select = connection.prepare_cached(sql)?;
    let keys = select.query_map([below, STEP_EVENTS], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut keys: Vec<(i64, i64)> = keys.collect::<rusqlite::Result<_>>()?;
    keys.reverse();
    let mut rows = IdentifierRows::default();
    for row in rows_of_keys(connection, records, &keys)? {
        rows.add(row.summary.seq, &row.text);
    }
    let lowest = keys.first().map_or(1, |(_, seq)| *seq);
    Ok((rows, lowest))
}
