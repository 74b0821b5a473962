//! Pages of events, newest first, by the index that fits the filter.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use crate::error::{Result, StoreError};
use crate::query::{EventDetail, EventFilter, Page, PageCursor, PageQuery};
use crate::row::{EventRow, saturating_i64};
use crate::sqlite::connections::RecordReader;
use crate::sqlite::names::{Facet, Origin, all_facets, all_origins, id_bytes};
use crate::sqlite::search;
use crate::store::page;

/// Time and number: what events are ordered by.
pub(crate) type EventKey = (i64, i64);

/// A filter in the store's own numbers. `None`: any.
#[derive(Debug)]
pub(crate) struct Selection {
    pub facets: Option<Vec<i64>>,
    pub origins: Option<Vec<i64>>,
    pub sessions: Option<Vec<i64>>,
    pub since_us: i64,
    /// Only keys that are lower.
    pub before: EventKey,
}

impl Selection {
    /// Everything of a filter but its text.
    pub(crate) fn new(
        connection: &Connection,
        filter: &EventFilter,
        cursor: Option<PageCursor>,
    ) -> Result<Self> {
        let mut facets = None;
        if Facet::is_asked_for(filter) {
            let all = all_facets(connection)?;
            let matching = all.iter().filter(|(_, facet)| facet.matches(filter));
            facets = Some(matching.map(|(number, _)| *number).collect());
        }
        let mut origins = None;
        if Origin::is_asked_for(filter) {
            let all = all_origins(connection)?;
            let matching = all.iter().filter(|(_, origin)| origin.matches(filter));
            origins = Some(matching.map(|(number, _)| *number).collect());
        }
        let mut sessions = None;
        if let Some(id) = &filter.session {
            let sql = "SELECT session FROM anyhook_sessions WHERE session_id = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let id = id.replace('\0', "\u{fffd}");
            let found = statement.query_map([id], |row| row.get(0))?;
            sessions = Some(found.collect::<rusqlite::Result<_>>()?);
        }
        let until = (filter.until_us.unwrap_or(i64::MAX), i64::MIN);
        let cursor = cursor.map_or((i64::MAX, i64::MAX), |cursor| (cursor.time_us, cursor.seq));
        let before = if filter.until_us.is_some() {
            until.min(cursor)
        } else {
            cursor
        };
        Ok(Self {
            facets,
            origins,
            sessions,
            since_us: filter.since_us.unwrap_or(i64::MIN),
            before,
        })
    }

    /// ` AND …` for the fields that the column of the index does not decide.
    fn conditions(&self, column: &str) -> (String, Vec<String>) {
        let mut sql = String::new();
        let mut lists = Vec::new();
        for (name, numbers) in [
            ("facet", &self.facets),
            ("origin", &self.origins),
            ("session", &self.sessions),
        ] {
            if let Some(numbers) = numbers.as_ref().filter(|_| name != column) {
                lists.push(json_list(numbers));
                let number = FIXED_PARAMETERS + lists.len();
                let condition = format!(" AND {name} IN (SELECT value FROM json_each(?{number}))");
                sql.push_str(&condition);
            }
        }
        (sql, lists)
    }

    /// Whether an event is selected, by its columns.
    pub(crate) fn includes(
        &self,
        key: EventKey,
        facet: i64,
        origin: i64,
        session: Option<i64>,
    ) -> bool {
        let has = |numbers: &Option<Vec<i64>>, number: Option<i64>| {
            let number = number.unwrap_or(i64::MIN);
            numbers.as_ref().is_none_or(|it| it.contains(&number))
        };
        key < self.before
            && key.0 >= self.since_us
            && has(&self.facets, Some(facet))
            && has(&self.origins, Some(origin))
            && has(&self.sessions, session)
    }
}

pub(crate) fn json_list(numbers: &[i64]) -> String {
    serde_json::to_string(numbers).unwrap_or_default()
}

/// Parameters of [`newest_keys`] before those of the conditions.
const FIXED_PARAMETERS: usize = 5;

/// The keys of the newest events, newest first.
///
/// An index gives the events of one facet (or session, or origin) in order; of several, the
/// best of each are merged. One whose newest event is too old is not looked into.
pub(crate) fn newest_keys(
    connection: &Connection,
    selection: &Selection,
    limit: usize,
) -> Result<Vec<EventKey>> {
    let no_values = vec![0];
    let (column, index, values) = match selection {
        Selection {
            sessions: Some(values),
            ..
        } => ("session", "session", values),
        Selection {
            facets: Some(values),
            ..
        } => ("facet", "facet", values),
        Selection {
            origins: Some(values),
            ..
        } => ("origin", "origin", values),
        _ => ("0", "time", &no_values),
    };
    let (conditions, lists) = selection.conditions(column);
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
    let mut newest = Vec::new();
    for value in values {
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

pub(crate) fn rows(
    connection: &Connection,
    records: &RecordReader<'_>,
    query: &PageQuery,
) -> Result<Page<EventRow>> {
    // One moment for all that follows.
    let transaction = connection.unchecked_transaction()?;
    let selection = Selection::new(&transaction, &query.filter, query.cursor)?;
    let wanted = query.size() + 1;
    let found = if let Some(text) = query.filter.search_text() {
        search::newest(&transaction, records, &selection, &text, wanted)?
    } else {
        let keys = newest_keys(&transaction, &selection, wanted)?;
        rows_of_keys(&transaction, records, &keys)?
    };
    let keyed = found.into_iter().map(|row| {
        let cursor = PageCursor {
            time_us: row.summary.time_us,
            seq: row.summary.seq,
        };
        (cursor, row)
    });
    Ok(page(keyed.collect(), query.size()))
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

/// Calls `visit` for every selected event, newest first, until it returns `false`.
pub(crate) fn visit_newest(
    connection: &Connection,
    records: &RecordReader<'_>,
    mut selection: Selection,
    text: Option<&str>,
    mut visit: impl FnMut(EventRow) -> Result<bool>,
) -> Result<()> {
    const CHUNK_EVENTS: usize = 500;
    loop {
        let found = if let Some(text) = text {
            search::newest(connection, records, &selection, text, CHUNK_EVENTS)?
        } else {
            let keys = newest_keys(connection, &selection, CHUNK_EVENTS)?;
            rows_of_keys(connection, records, &keys)?
        };
        let Some(last) = found.last() else {
            return Ok(());
        };
        selection.before = (last.summary.time_us, last.summary.seq);
        for row in found {
            if !visit(row)? {
                return Ok(());
            }
        }
    }
}

/// How many events of a session each facet has.
pub(crate) fn facets_of_session(
    connection: &Connection,
    session: i64,
) -> Result<HashMap<i64, i64>> {
    let sql = "SELECT facet, COUNT(*) FROM anyhook_events INDEXED BY anyhook_event_session \
               WHERE session = ?1 GROUP BY facet";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A set of numbers to look up in.
pub(crate) fn number_set(numbers: Option<&Vec<i64>>) -> Option<HashSet<i64>> {
    numbers.map(|numbers| numbers.iter().copied().collect())
}
