//! Sessions, from the table that ingest keeps; counted again where a filter cuts them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::Result;
use crate::names::{Facet, Origin};
use crate::query::{
    EventFilter, NameCount, Page, PageCursor, PageQuery, SessionDetail, SessionSummary,
};
use crate::reading::{EventKey, EventTables, Selection, StoredSession, key_of, visit_newest};
use crate::store::MAX_NAMES;

type KeyedSession = (PageCursor, SessionSummary);

pub(crate) fn page<T: EventTables>(tables: &T, query: &PageQuery) -> Result<Page<SessionSummary>> {
    let filter = &query.filter;
    let is_cut = filter.until_us.is_some()
        || filter.session.is_some()
        || filter.search_text().is_some()
        || Origin::is_asked_for(filter)
        || [&filter.event, &filter.decision, &filter.tool]
            .iter()
            .any(|field| field.is_some());
    let found = if is_cut {
        walk(tables, query)?
    } else {
        newest(tables, query)?
    };
    Ok(crate::store::page(found, query.size()))
}

/// Sessions of any or one agent, by their last event.
fn newest<T: EventTables>(tables: &T, query: &PageQuery) -> Result<Vec<KeyedSession>> {
    let before = query
        .cursor
        .map_or((i64::MAX, i64::MAX), |it| (it.time_us, it.seq));
    let since_us = query.filter.since_us.unwrap_or(i64::MIN);
    let agent = query.filter.agent.as_deref();
    let found = tables.newest_sessions(agent, before, since_us, query.size() + 1)?;
    let is_cut = |session: &StoredSession| session.first_us < since_us;
    let has_cut = found.iter().any(is_cut);
    let counter = has_cut.then(|| SessionCounter::new(tables, &query.filter));
    let counter = counter.transpose()?;
    let mut sessions = Vec::new();
    for mut session in found {
        if is_cut(&session)
            && let Some(counter) = &counter
            && let Some(counted) = counter.count(session.number)?
        {
            session = counted;
        }
        sessions.push((cursor(session.last), session.summary));
    }
    Ok(sessions)
}

fn cursor((time_us, seq): EventKey) -> PageCursor {
    PageCursor { time_us, seq }
}

/// Sessions in the order of their last event that the filter leaves.
fn walk<T: EventTables>(tables: &T, query: &PageQuery) -> Result<Vec<KeyedSession>> {
    let filter = &query.filter;
    let text = filter.search_text();
    let selection = Selection::new(tables, filter, query.cursor)?;
    let counter = SessionCounter::new(tables, filter)?;
    let mut seen = HashSet::new();
    let mut sessions = Vec::new();
    visit_newest(tables, selection, text.as_deref(), |row| {
        let key = key_of(&row);
        let name = (row.summary.session_id, row.summary.agent);
        if name.0.is_none() || !seen.insert(name) {
            return Ok(true);
        }
        let Some(number) = tables.session_of_event(key)? else {
            return Ok(true);
        };
        if let Some(session) = counter.count(number)? {
            // One whose last event is above the cursor was on a page before.
            if session.last == key {
                sessions.push((cursor(session.last), session.summary));
            }
        }
        Ok(sessions.len() <= query.size())
    })?;
    Ok(sessions)
}

/// Counts sessions again, as far as a filter leaves them.
struct SessionCounter<'a, T> {
    tables: &'a T,
    selection: Selection,
    facets: HashMap<i64, Facet>,
    text: Option<String>,
}

impl<'a, T: EventTables> SessionCounter<'a, T> {
    fn new(tables: &'a T, filter: &EventFilter) -> Result<Self> {
        Ok(Self {
            tables,
            selection: Selection::new(tables, filter, None)?,
            facets: tables.facets()?,
            text: filter.search_text(),
        })
    }

    /// `None` if nothing of the session is left.
    fn count(&self, number: i64) -> Result<Option<StoredSession>> {
        let mut selection = self.selection.clone();
        selection.sessions = Some(vec![number]);
        let Some(mut session) = self.tables.session(number)? else {
            return Ok(None);
        };
        let summary = &mut session.summary;
        (summary.events, summary.tools, summary.denials, summary.asks) = (0, 0, 0, 0);
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
        if self.text.is_some() {
            visit_newest(self.tables, selection, self.text.as_deref(), |row| {
                count(key_of(&row), &Facet::from_summary(&row.summary));
                Ok(true)
            })?;
        } else {
            let events = self.tables.events_of_session(number, selection.since_us)?;
            for event in events {
                if selection.includes(event, Some(number))
                    && let Some(facet) = self.facets.get(&event.facet)
                {
                    count(event.key, facet);
                }
            }
        }
        let has_events = session.summary.events > 0;
        Ok(has_events.then(|| session.with_times()))
    }
}

/// Counts sessions of any or one agent (`$1`) that have an event between two times (`$2`, `$3`);
/// an index alone tells where the times have no end.
pub(crate) fn count_sql(has_agent: bool, since_us: i64, until_us: i64) -> String {
    let agent = if has_agent {
        "s.agent = $1"
    } else {
        "CAST($1 AS TEXT) IS NULL"
    };
    let times = if until_us < i64::MAX {
        // One that began before and ended after may have paused all the time between.
        "s.last_us >= $2 AND s.first_us < $3 AND (s.first_us >= $2 OR s.last_us < $3 OR \
         EXISTS (SELECT 1 FROM anyhook_events e WHERE e.session = s.session \
         AND e.time_us >= $2 AND e.time_us < $3))"
    } else if since_us > i64::MIN {
        "s.last_us >= $2 AND CAST($3 AS BIGINT) IS NOT NULL"
    } else {
        "CAST($2 AS BIGINT) IS NOT NULL AND CAST($3 AS BIGINT) IS NOT NULL"
    };
    format!("SELECT COUNT(*) FROM anyhook_sessions s WHERE {agent} AND {times}")
}

/// The latest session of that id, of one agent when two agents use the same id.
pub(crate) fn detail<T: EventTables>(
    tables: &T,
    id: &str,
    agent: Option<&str>,
) -> Result<Option<SessionDetail>> {
    let id = id.replace('\0', "\u{fffd}");
    let agent = agent.map(|agent| agent.replace('\0', "\u{fffd}"));
    let Some(session) = tables.latest_session(&id, agent.as_deref())? else {
        return Ok(None);
    };
    let facets = tables.facets()?;
    let (mut by_tool, mut by_event) = (BTreeMap::new(), BTreeMap::new());
    for (facet, count) in tables.facets_of_session(session.number)? {
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
