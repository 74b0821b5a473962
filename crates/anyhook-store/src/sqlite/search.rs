//! Events that contain a text, newest first.
//!
//! An index gives the events that may contain it, by number of arrival; their records decide.
//! A text with a long identifier is looked for by that, any other by every three characters. Arrival and time differ, so the times of each block of
//! numbers are known: a block that cannot have one of the newest events is skipped.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Result;
use crate::reading::{EventKey, EventNumbers, Selection, keep_newest, key_of};
use crate::row::{EventRow, saturating_i64};
use crate::sqlite::connections::RecordReader;
use crate::sqlite::identifiers;
use crate::sqlite::ingest::BLOCK_EVENTS;
use crate::sqlite::reading::{newest_keys, rows_of_keys};

/// The index knows nothing shorter.
const INDEXED_CHARS: usize = 3;
/// Of a long text: more of them find hardly less.
const MAX_QUERY_GRAMS: usize = 8;
const CANDIDATE_EVENTS: usize = 256;
const CANDIDATE_ROWS: usize = 32;

/// The indexes that a text is looked for in.
struct IndexQuery {
    grams: String,
    /// With the lowest number that the index of identifiers knows.
    identifiers: Option<(String, i64)>,
}

/// `text` is lowercase.
pub(crate) fn newest(
    connection: &Connection,
    records: &RecordReader<'_>,
    selection: &Selection,
    text: &str,
    limit: usize,
) -> Result<Vec<EventRow>> {
    match index_query(connection, text)? {
        Some(query) => indexed(connection, records, selection, text, &query, limit),
        None => scanned(connection, records, selection, text, limit),
    }
}

/// `None` if the text is too short.
fn index_query(connection: &Connection, text: &str) -> Result<Option<IndexQuery>> {
    let Some(grams) = gram_query(text) else {
        return Ok(None);
    };
    let identifiers = match identifiers::index_query(text) {
        Some(query) => Some((query, identifiers::known_from(connection)?)),
        None => None,
    };
    Ok(Some(IndexQuery { grams, identifiers }))
}

/// All of the text's groups of three characters.
fn gram_query(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let grams: Vec<&[char]> = chars.windows(INDEXED_CHARS).collect();
    let step = grams.len().div_ceil(MAX_QUERY_GRAMS).max(1);
    let quoted: Vec<String> = grams
        .into_iter()
        .step_by(step)
        .map(|gram| {
            let gram: String = gram.iter().collect();
            format!("\"{}\"", gram.replace('"', "\"\""))
        })
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" AND "))
}

fn indexed(
    connection: &Connection,
    records: &RecordReader<'_>,
    selection: &Selection,
    text: &str,
    query: &IndexQuery,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let mut columns = connection.prepare_cached(
        "SELECT time_us, facet, origin, session FROM anyhook_events WHERE seq = ?1",
    )?;
    let mut found: Vec<EventRow> = Vec::new();
    let mut below = i64::MAX;
    loop {
        let worst = found.get(limit.saturating_sub(1)).map(key_of);
        let since_us = worst.map_or(selection.since_us, |(time_us, _)| time_us);
        let Some(block) = next_block(connection, selection, since_us, below)? else {
            return Ok(found);
        };
        below = below.min(block.saturating_add(1).saturating_mul(BLOCK_EVENTS));
        let (numbers, end) = candidates(connection, query, below)?;
        let mut keys = Vec::new();
        for seq in &numbers {
            let mut rows = columns.query([seq])?;
            let Some(row) = rows.next()? else {
                continue;
            };
            let event = EventNumbers {
                key: (row.get(0)?, *seq),
                facet: row.get(1)?,
                origin: row.get(2)?,
            };
            let may_count = worst.is_none_or(|worst| event.key > worst);
            if may_count && selection.includes(event, row.get(3)?) {
                keys.push(event.key);
            }
        }
        // Arrival and time differ little: mostly the first part has all that is wanted.
        keys.sort_unstable_by(|one: &EventKey, other| other.cmp(one));
        for part in keys.chunks(limit.max(1)) {
            let worst = found.get(limit.saturating_sub(1)).map(key_of);
            let newer = part.iter().copied();
            let newer = newer.filter(|key| worst.is_none_or(|worst| *key > worst));
            let rows = rows_of_keys(connection, records, &newer.collect::<Vec<_>>())?;
            let matching = rows.into_iter().filter(|row| row.text.contains(text));
            keep_newest(&mut found, matching.collect(), limit);
        }
        match end {
            Some(end) => below = end,
            None => return Ok(found),
        }
    }
}

/// The numbers of some events below `below` that may contain the text, descending; and where
/// they end, if there may be more.
fn candidates(
    connection: &Connection,
    query: &IndexQuery,
    below: i64,
) -> Result<(Vec<i64>, Option<i64>)> {
    if let Some((query, from)) = &query.identifiers
        && below > *from
    {
        let (numbers, end) = identifiers::candidates(connection, query, below, CANDIDATE_ROWS)?;
        // Below those, the other index goes on.
        return Ok((numbers, end.or((*from > 1).then_some(*from))));
    }
    let mut select = connection.prepare_cached(
        "SELECT rowid FROM anyhook_search WHERE anyhook_search MATCH ?1 AND rowid < ?2 \
         ORDER BY rowid DESC LIMIT ?3",
    )?;
    let numbers = select.query_map(
        params![query.grams, below, saturating_i64(CANDIDATE_EVENTS)],
        |row| row.get(0),
    )?;
    let numbers: Vec<i64> = numbers.collect::<rusqlite::Result<_>>()?;
    let end = numbers.last().copied();
    let end = end.filter(|_| numbers.len() == CANDIDATE_EVENTS);
    Ok((numbers, end))
}

/// The highest block with numbers below `below` that may have an event of the selection.
fn next_block(
    connection: &Connection,
    selection: &Selection,
    since_us: i64,
    below: i64,
) -> Result<Option<i64>> {
    let highest = below.saturating_sub(1).div_euclid(BLOCK_EVENTS);
    let found = connection
        .prepare_cached(
            "SELECT block FROM anyhook_blocks WHERE block <= ?1 AND max_us >= ?2 AND min_us <= ?3 \
             ORDER BY block DESC LIMIT 1",
        )?
        .query_row(params![highest, since_us, selection.before.0], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(found)
}

/// Reads every event of the selection.
fn scanned(
    connection: &Connection,
    records: &RecordReader<'_>,
    selection: &Selection,
    text: &str,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let mut rest = selection.clone();
    let mut found = Vec::new();
    while found.len() < limit {
        let keys = newest_keys(connection, &rest, CANDIDATE_EVENTS)?;
        let Some(last) = keys.last() else {
            break;
        };
        rest.before = *last;
        let rows = rows_of_keys(connection, records, &keys)?;
        found.extend(rows.into_iter().filter(|row| row.text.contains(text)));
    }
    found.truncate(limit);
    Ok(found)
}
