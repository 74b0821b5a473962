//! Sessions, from the table that ingest keeps; counted anew where a filter cuts them.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, Row, params};

use crate::error::Result;
use crate::query::{
    EventFilter, NameCount, Page, PageCursor, PageQuery, SessionDetail, SessionSummary,
};
use crate::row::{rfc3339_micros, saturating_i64};
use crate::sqlite::connections::RecordReader;
use crate::sqlite::names::{Facet, Origin, all_facets};
use crate::sqlite::reading::{EventKey, Selection, facets_of_session, visit_newest};
use crate::store::MAX_NAMES;

const COLUMNS: &str = "session, first_us, last_us, last_seq, session_id, agent, events, tools, \
                       denials, asks, cwd, machine";

struct StoredSession {
    number: i64,
    first_us: i64,
    last: EventKey,
    summary: SessionSummary,
}

impl StoredSession {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (first_us, last_us) = (row.get(1)?, row.get(2)?);
        Ok(Self {
            number: row.get(0)?,
            first_us,
            last: (last_us, row.get(3)?),
            summary: SessionSummary {
                session_id: row.get(4)?,
                agent: row.get(5)?,
                first: rfc3339_micros(first_us),
                last: rfc3339_micros(last_us),
                events: row.get(6)?,
                tools: row.get(7)?,
                denials: row.get(8)?,
                asks: row.get(9)?,
                cwd: row.get(10)?,
                machine: row.get(11)?,
            },
        })
    }

    fn load(connection: &Connection, number: i64) -> Result<Self> {
        let sql = format!("SELECT {COLUMNS} FROM anyhook_sessions WHERE session = ?1");
        let mut statement = connection.prepare_cached(&sql)?;
        Ok(statement.query_row([number], Self::from_row)?)
    }
}

pub(crate) fn page(
    connection: &Connection,
    records: &RecordReader<'_>,
    query: &PageQuery,
) -> Result<Page<SessionSummary>> {
    let transaction = connection.unchecked_transaction()?;
    let filter = &query.filter;
    let is_cut = filter.until_us.is_some()
        || filter.session.is_some()
        || filter.search_text().is_some()
        || Origin::is_asked_for(filter)
        || [&filter.event, &filter.decision, &filter.tool]
            .iter()
            .any(|field| field.is_some());
    let found = if is_cut {
        walk(&transaction, records, query)?
    } else {
        newest(&transaction, records, query)?
    };
    Ok(crate::store::page(found, query.size()))
}

/// Sessions of any or one agent, by their last event.
fn newest(
    connection: &Connection,
    records: &RecordReader<'_>,
    query: &PageQuery,
) -> Result<Vec<(PageCursor, SessionSummary)>> {
    let (condition, index) = match query.filter.agent {
        Some(_) => ("agent = ?1", "agent"),
        None => ("?1 IS NULL", "last"),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM anyhook_sessions INDEXED BY anyhook_session_{index} \
         WHERE {condition} AND (last_us, last_seq) < (?2, ?3) AND last_us >= ?4 \
         ORDER BY last_us DESC, last_seq DESC LIMIT ?5"
    );
    let before = query
        .cursor
        .map_or((i64::MAX, i64::MAX), |it| (it.time_us, it.seq));
    let since_us = query.filter.since_us.unwrap_or(i64::MIN);
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map(
        params![
            query.filter.agent,
            before.0,
            before.1,
            since_us,
            saturating_i64(query.size() + 1)
        ],
        StoredSession::from_row,
    )?;
    let mut sessions = Vec::new();
    for session in found {
        let mut session = session?;
        if session.first_us < since_us {
            let (number, filter) = (session.number, &query.filter);
            if let Some(counted) = counted(connection, records, number, filter)? {
                session = counted;
            }
        }
        sessions.push((cursor(session.last), session.summary));
    }
    Ok(sessions)
}

fn cursor((time_us, seq): EventKey) -> PageCursor {
    PageCursor { time_us, seq }
}

/// Sessions in the order of their last event that the filter leaves.
fn walk(
    connection: &Connection,
    records: &RecordReader<'_>,
    query: &PageQuery,
) -> Result<Vec<(PageCursor, SessionSummary)>> {
    let filter = &query.filter;
    let text = filter.search_text();
    let selection = Selection::new(connection, filter, query.cursor)?;
    let mut session_of =
        connection.prepare_cached("SELECT session FROM anyhook_events WHERE seq = ?1")?;
    let mut seen = HashSet::new();
    let mut sessions = Vec::new();
    visit_newest(connection, records, selection, text.as_deref(), |row| {
        let event = &row.summary;
        let number: Option<i64> = session_of.query_row([event.seq], |row| row.get(0))?;
        let Some(number) = number.filter(|number| seen.insert(*number)) else {
            return Ok(true);
        };
        if let Some(session) = counted(connection, records, number, filter)? {
            // One whose last event is above the cursor was on a page before.
            if session.last == (event.time_us, event.seq) {
                sessions.push((cursor(session.last), session.summary));
            }
        }
        Ok(sessions.len() <= query.size())
    })?;
    Ok(sessions)
}

/// A session as far as the filter leaves it; `None` if nothing is left.
fn counted(
    connection: &Connection,
    records: &RecordReader<'_>,
    number: i64,
    filter: &EventFilter,
) -> Result<Option<StoredSession>> {
    let mut selection = Selection::new(connection, filter, None)?;
    selection.sessions = Some(vec![number]);
    let mut session = StoredSession::load(connection, number)?;
    let summary = &mut session.summary;
    (summary.events, summary.tools, summary.denials, summary.asks) = (0, 0, 0, 0);
    let text = filter.search_text();
    let mut count = |key: EventKey, facet: &Facet| {
        if summary.events == 0 {
            session.last = key;
        }
        session.first_us = key.0;
        summary.events += 1;
        summary.tools += i64::from(facet.unified == "BEFORE_TOOL");
        summary.denials += i64::from(facet.decision == "deny");
        summary.asks += i64::from(facet.decision == "ask");
    };
    if text.is_some() {
        visit_newest(connection, records, selection, text.as_deref(), |row| {
            let event = &row.summary;
            count((event.time_us, event.seq), &Facet::from_summary(event));
            Ok(true)
        })?;
    } else {
        let facets = all_facets(connection)?;
        let mut statement = connection.prepare_cached(
            "SELECT time_us, seq, facet, origin FROM anyhook_events \
             INDEXED BY anyhook_event_session WHERE session = ?1 AND time_us >= ?2 \
             ORDER BY time_us DESC, seq DESC",
        )?;
        let mut rows = statement.query(params![number, selection.since_us])?;
        while let Some(row) = rows.next()? {
            let key = (row.get(0)?, row.get(1)?);
            let facet: i64 = row.get(2)?;
            if selection.includes(key, facet, row.get(3)?, Some(number))
                && let Some(facet) = facets.get(&facet)
            {
                count(key, facet);
            }
        }
    }
    let summary = &mut session.summary;
    summary.first = rfc3339_micros(session.first_us);
    summary.last = rfc3339_micros(session.last.0);
    Ok((summary.events > 0).then_some(session))
}

/// The latest session of that id, of one agent when two agents use the same id.
pub(crate) fn detail(
    connection: &Connection,
    id: &str,
    agent: Option<&str>,
) -> Result<Option<SessionDetail>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM anyhook_sessions WHERE session_id = ?1 \
         AND (?2 IS NULL OR agent = ?2) ORDER BY last_us DESC, last_seq DESC LIMIT 1"
    );
    let id = id.replace('\0', "\u{fffd}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query_map(params![id, agent], StoredSession::from_row)?;
    let Some(session) = found.next().transpose()? else {
        return Ok(None);
    };
    let facets = all_facets(connection)?;
    let (mut by_tool, mut by_event) = (BTreeMap::new(), BTreeMap::new());
    for (facet, count) in facets_of_session(connection, session.number)? {
        let Some(facet) = facets.get(&facet) else {
            continue;
        };
        let denials = if facet.decision == "deny" { count } else { 0 };
        let names = [(&mut by_tool, &facet.tool), (&mut by_event, &facet.event)];
        for (counts, name) in names.into_iter().filter(|(_, name)| !name.is_empty()) {
            let counted: &mut NameCount = counts.entry(name.clone()).or_default();
            counted.count += count;
            counted.denials += denials;
        }
    }
    Ok(Some(SessionDetail {
        summary: session.summary,
        by_tool: most_first(by_tool),
        by_event: most_first(by_event),
    }))
}

fn most_first(counts: BTreeMap<String, NameCount>) -> Vec<NameCount> {
    let named = counts
        .into_iter()
        .map(|(name, count)| NameCount { name, ..count });
    let mut counts: Vec<_> = named.collect();
    counts.sort_by_key(|name| std::cmp::Reverse(name.count));
    counts.truncate(MAX_NAMES);
    counts
}

/// How many sessions have an event between two times, of any or one agent.
pub(crate) fn count(connection: &Connection, filter: &EventFilter) -> Result<i64> {
    let since_us = filter.since_us.unwrap_or(i64::MIN);
    let until_us = filter.until_us.unwrap_or(i64::MAX);
    // One that began before and ended after may have paused all the time between.
    let sql = "SELECT COUNT(*) FROM anyhook_sessions s WHERE (?1 IS NULL OR agent = ?1) \
               AND last_us >= ?2 AND first_us < ?3 AND (first_us >= ?2 OR last_us < ?3 OR EXISTS \
               (SELECT 1 FROM anyhook_events e WHERE e.session = s.session AND e.time_us >= ?2 \
               AND e.time_us < ?3))";
    let count = connection
        .prepare_cached(sql)?
        .query_row(params![filter.agent, since_us, until_us], |row| row.get(0))?;
    Ok(count)
}
