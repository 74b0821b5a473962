//! Events of a SQLite file: the newest by the index that fits, one by its id, those after
//! a number.

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use crate::error::{Result, StoreError};
use crate::names::id_bytes;
use crate::query::EventDetail;
use crate::reading::{EventIndex, EventKey, EventNumbers, Selection};
use crate::row::{EventRow, saturating_i64};
use crate::sqlite::connections::RecordReader;

/// ` AND …` for columns that have one of some numbers, and the parameters after the first
/// `fixed` ones.
pub(crate) fn list_conditions(
    columns: Vec<(&'static str, &Vec<i64>)>,
    fixed: usize,
) -> (String, Vec<String>) {
    let mut sql = String::new();
    let mut lists = Vec::new();
    for (name, numbers) in columns {
        lists.push(serde_json::to_string(numbers).unwrap_or_default());
        let number = fixed + lists.len();
        let condition = format!(" AND {name} IN (SELECT value FROM json_each(?{number}))");
        sql.push_str(&condition);
    }
    (sql, lists)
}

/// Asking for each of fewer facets is fast.
const MANY_VALUES: usize = 8;
/// What is looked at before it is known whether a selection has at least one event in
/// [`DENSE_SHARE`].
const SAMPLE_EVENTS: usize = 64;
const DENSE_SHARE: usize = 8;

/// Parameters of [`newest_keys`] before those of the conditions.
const FIXED_PARAMETERS: usize = 5;

/// The keys of the newest events, newest first.
///
/// An index gives the events of one facet (or session, or origin) in order; of several, the
/// best of each are merged, unless they are most of all events. One whose newest event is too old is not looked into.
pub(crate) fn newest_keys(
    connection: &Connection,
    selection: &Selection,
    limit: usize,
) -> Result<Vec<EventKey>> {
    let (access, values) = selection.access();
    let (column, index) = access.column();
    let (conditions, lists) = list_conditions(selection.conditions(access), FIXED_PARAMETERS);
    let sql = format!(
        "SELECT time_us, seq FROM anyhook_events INDEXED BY anyhook_event_{index} \
         WHERE {column} = ?1 AND (time_us, seq) < (?2, ?3) AND time_us >= ?4{conditions} \
         ORDER BY time_us DESC, seq DESC LIMIT ?5"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut select = |value: i64, since_us: i64, limit: usize| -> Result<Vec<EventKey>> {
        let limit = saturating_i64(limit);
        let mut parameters: Vec<&dyn ToSql> = vec![
            &value,
            &selection.before.0,
            &selection.before.1,
            &since_us,
            &limit,
        ];
        parameters.extend(lists.iter().map(|list| list as &dyn ToSql));
        let rows = statement.query_map(&*parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    if let [value] = values.as_slice() {
        return select(*value, selection.since_us, limit);
    }
    if values.len() >= MANY_VALUES
        && access == EventIndex::Facet
        && let Some(keys) = dense_keys(connection, selection, limit)?
    {
        return Ok(keys);
    }
    let mut newest = Vec::new();
    for value in &values {
        if let Some(key) = select(*value, selection.since_us, 1)?.pop() {
            newest.push((key, *value));
        }
    }
    newest.sort_unstable_by(|one, other| other.cmp(one));
    let mut keys: Vec<EventKey> = Vec::new();
    for (key, value) in newest {
        let last = keys.get(limit.saturating_sub(1)).copied();
        if last.is_some_and(|last| key < last) {
            break;
        }
        let since_us = last.map_or(selection.since_us, |last| last.0);
        keys.extend(select(value, since_us, limit)?);
        keys.sort_unstable_by(|one, other| other.cmp(one));
        keys.truncate(limit);
    }
    Ok(keys)
}

/// The keys of the newest events, if the selection has so many that looking at one event after
/// the other by time is faster than asking for each facet.
fn dense_keys(
    connection: &Connection,
    selection: &Selection,
    limit: usize,
) -> Result<Option<Vec<EventKey>>> {
    let sql = "SELECT time_us, seq, facet, origin, session FROM anyhook_events \
               INDEXED BY anyhook_event_time WHERE (time_us, seq) < (?1, ?2) AND time_us >= ?3 \
               ORDER BY time_us DESC, seq DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let (time_us, seq) = selection.before;
    let mut rows = statement.query(params![time_us, seq, selection.since_us])?;
    let mut keys = Vec::new();
    for looked_at in 1.. {
        let Some(row) = rows.next()? else {
            break;
        };
        let event = EventNumbers {
            key: (row.get(0)?, row.get(1)?),
            facet: row.get(2)?,
            origin: row.get(3)?,
        };
        if selection.includes(event, row.get(4)?) {
            keys.push(event.key);
        }
        if keys.len() >= limit {
            break;
        }
        if looked_at >= SAMPLE_EVENTS && keys.len() * DENSE_SHARE < looked_at {
            return Ok(None);
        }
    }
    Ok(Some(keys))
}

/// Events by number, in the order of the keys.
pub(crate) fn rows_of_keys(
    connection: &Connection,
    records: &RecordReader<'_>,
    keys: &[EventKey],
) -> Result<Vec<EventRow>> {
    let mut statement =
        connection.prepare_cached("SELECT body FROM anyhook_events WHERE seq = ?1")?;
    let mut found = Vec::with_capacity(keys.len());
    for (time_us, seq) in keys {
        let mut rows = statement.query([seq])?;
        // Retention may have deleted it a moment ago.
        if let Some(row) = rows.next()? {
            let body = row.get_ref(0)?.as_blob().map_err(|_| not_a_body())?;
            found.push(records.row(*seq, *time_us, body)?);
        }
    }
    Ok(found)
}

fn not_a_body() -> StoreError {
    StoreError::Shape("a compressed record")
}

pub(crate) fn after(
    connection: &Connection,
    records: &RecordReader<'_>,
    seq: i64,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let sql = "SELECT seq, time_us, body FROM anyhook_events WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![seq, saturating_i64(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(2)?.as_blob().map_err(|_| not_a_body())?;
        found.push(records.row(row.get(0)?, row.get(1)?, body)?);
    }
    Ok(found)
}

pub(crate) fn event(
    connection: &Connection,
    records: &RecordReader<'_>,
    id: &str,
) -> Result<Option<EventDetail>> {
    let sql = "SELECT time_us, seq FROM anyhook_events WHERE id = ?1";
    let key = connection
        .prepare_cached(sql)?
        .query_row([id_bytes(id)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some(key) = key else {
        return Ok(None);
    };
    let row = rows_of_keys(connection, records, &[key])?.pop();
    row.map(EventRow::into_detail).transpose()
}
