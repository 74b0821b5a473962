//! Pages of events, sessions and statistics, from tables that both databases have.
//!
//! A database says how to get at its rows ([`EventTables`]); what is asked of them, in which
//! order and how the answers are put together is decided here, once.

pub(crate) mod sessions;
pub(crate) mod statistics;

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::names::{Facet, Origin};
use crate::query::{EventFilter, Page, PageCursor, PageQuery, SessionSummary};
use crate::rollup::NumberedRun;
use crate::row::{EventRow, RunRow, rfc3339_micros};
use crate::store::page;

/// Time and number: what events are ordered by.
pub(crate) type EventKey = (i64, i64);

/// What an event refers to by number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventNumbers {
    pub key: EventKey,
    pub facet: i64,
    pub origin: i64,
}

/// One row of `anyhook_rollups`.
pub(crate) struct EventSumRow<'a> {
    pub start: i64,
    pub origin: i64,
    pub facet: i64,
    pub events: i64,
    pub max_ms: f64,
    pub minutes: &'a [u8],
    pub sketch: &'a [u8],
}

/// One row of `anyhook_hook_rollups`.
pub(crate) struct HookSumRow<'a> {
    pub origin: i64,
    pub facet: i64,
    pub hook: i64,
    pub runs: i64,
    pub denials: i64,
    pub troubles: i64,
    pub max_ms: f64,
    pub sketch: &'a [u8],
}

/// Rows of sums: `from <= start < until`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SumRange {
    pub level: i64,
    pub from: i64,
    pub until: i64,
    pub origins: SumOrigins,
}

/// Days have sums of all origins and of each; hours only of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumOrigins {
    AllAsOne,
    Each,
    AsTheyAre,
}

/// Which columns of a row of sums are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumPart {
    Latencies,
    Counts,
    Minutes,
}

pub(crate) struct StoredSession {
    pub number: i64,
    pub first_us: i64,
    pub last: EventKey,
    pub summary: SessionSummary,
}

/// The tables of one database, at one moment.
pub(crate) trait EventTables {
    fn facets(&self) -> Result<HashMap<i64, Facet>>;
    fn origins(&self) -> Result<HashMap<i64, Origin>>;
    fn hooks(&self) -> Result<HashMap<i64, RunRow>>;

    /// The newest events of a selection that contain a text (lowercase), newest first.
    fn newest(
        &self,
        selection: &Selection,
        text: Option<&str>,
        limit: usize,
    ) -> Result<Vec<EventRow>>;

    /// The times of the first and the last selected event.
    fn time_range(&self, selection: &Selection) -> Result<Option<(i64, i64)>>;

    fn for_each_event_sum(
        &self,
        range: SumRange,
        part: SumPart,
        visit: &mut dyn FnMut(EventSumRow<'_>),
    ) -> Result<()>;
    fn for_each_hook_sum(
        &self,
        range: SumRange,
        visit: &mut dyn FnMut(HookSumRow<'_>),
    ) -> Result<()>;

    /// Every event from one time until another, with its duration and the hooks that ran.
    fn for_each_event(
        &self,
        from: i64,
        until: i64,
        visit: &mut dyn FnMut(EventNumbers, f64, &[NumberedRun]),
    ) -> Result<()>;

    fn session_numbers(&self, id: &str) -> Result<Vec<i64>>;
    fn session(&self, number: i64) -> Result<Option<StoredSession>>;
    /// The latest session of that id, of any or one agent.
    fn latest_session(&self, id: &str, agent: Option<&str>) -> Result<Option<StoredSession>>;
    /// Sessions of any or one agent by their last event, newest first.
    fn newest_sessions(
        &self,
        agent: Option<&str>,
        before: EventKey,
        since_us: i64,
        limit: usize,
    ) -> Result<Vec<StoredSession>>;
    fn session_of_event(&self, key: EventKey) -> Result<Option<i64>>;
    /// The events of a session that are not before a time, newest first.
    fn events_of_session(&self, number: i64, since_us: i64) -> Result<Vec<EventNumbers>>;
    /// How many events of a session each facet has.
    fn facets_of_session(&self, number: i64) -> Result<HashMap<i64, i64>>;
    /// How many sessions have an event between two times, of any or one agent.
    fn count_sessions(&self, agent: Option<&str>, since_us: i64, until_us: i64) -> Result<i64>;
    /// How many sessions have an event of the selection.
    fn count_selected_sessions(&self, selection: &Selection) -> Result<i64>;
}

/// A filter in the store's own numbers. `None`: any.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub facets: Option<Vec<i64>>,
    pub origins: Option<Vec<i64>>,
    pub sessions: Option<Vec<i64>>,
    pub since_us: i64,
    /// Only keys that are lower.
    pub before: EventKey,
}

/// The index by which events are found in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventIndex {
    Session,
    Facet,
    Origin,
    Time,
}

impl EventIndex {
    /// The column that the index begins with, and the end of the index's name.
    pub(crate) fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Session => ("session", "session"),
            Self::Facet => ("facet", "facet"),
            Self::Origin => ("origin", "origin"),
            Self::Time => ("0", "time"),
        }
    }
}

impl Selection {
    /// Everything of a filter but its text.
    pub(crate) fn new<T: EventTables>(
        tables: &T,
        filter: &EventFilter,
        cursor: Option<PageCursor>,
    ) -> Result<Self> {
        let mut facets = None;
        if Facet::is_asked_for(filter) {
            let all = tables.facets()?;
            let matching = all.iter().filter(|(_, facet)| facet.matches(filter));
            facets = Some(matching.map(|(number, _)| *number).collect());
        }
        let mut origins = None;
        if Origin::is_asked_for(filter) {
            let all = tables.origins()?;
            let matching = all.iter().filter(|(_, origin)| origin.matches(filter));
            origins = Some(matching.map(|(number, _)| *number).collect());
        }
        let mut sessions = None;
        if let Some(id) = &filter.session {
            sessions = Some(tables.session_numbers(&id.replace('\0', "\u{fffd}"))?);
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

    /// The most selective index, and the values of its column.
    pub(crate) fn access(&self) -> (EventIndex, Vec<i64>) {
        let by_column = [
            (EventIndex::Session, &self.sessions),
            (EventIndex::Facet, &self.facets),
            (EventIndex::Origin, &self.origins),
        ];
        let found = by_column
            .into_iter()
            .find_map(|(access, values)| Some((access, values.clone()?)));
        found.unwrap_or((EventIndex::Time, vec![0]))
    }

    /// The columns that an index does not decide, and the numbers that they may have.
    pub(crate) fn conditions(&self, access: EventIndex) -> Vec<(&'static str, &Vec<i64>)> {
        [
            (EventIndex::Facet, &self.facets),
            (EventIndex::Origin, &self.origins),
            (EventIndex::Session, &self.sessions),
        ]
        .into_iter()
        .filter(|(column, _)| *column != access)
        .filter_map(|(column, numbers)| Some((column.column().0, numbers.as_ref()?)))
        .collect()
    }

    /// Whether an event is selected, by its columns.
    pub(crate) fn includes(&self, event: EventNumbers, session: Option<i64>) -> bool {
        let has = |numbers: &Option<Vec<i64>>, number: Option<i64>| {
            let number = number.unwrap_or(i64::MIN);
            numbers.as_ref().is_none_or(|it| it.contains(&number))
        };
        event.key < self.before
            && event.key.0 >= self.since_us
            && has(&self.facets, Some(event.facet))
            && has(&self.origins, Some(event.origin))
            && has(&self.sessions, session)
    }
}

/// One page of events with their records.
pub(crate) fn rows<T: EventTables>(tables: &T, query: &PageQuery) -> Result<Page<EventRow>> {
    let selection = Selection::new(tables, &query.filter, query.cursor)?;
    let text = query.filter.search_text();
    let found = tables.newest(&selection, text.as_deref(), query.size() + 1)?;
    let keyed = found.into_iter().map(|row| {
        let (time_us, seq) = key_of(&row);
        (PageCursor { time_us, seq }, row)
    });
    Ok(page(keyed.collect(), query.size()))
}

pub(crate) fn key_of(row: &EventRow) -> EventKey {
    (row.summary.time_us, row.summary.seq)
}

/// Calls `visit` for every selected event, newest first, until it returns `false`.
pub(crate) fn visit_newest<T: EventTables>(
    tables: &T,
    mut selection: Selection,
    text: Option<&str>,
    mut visit: impl FnMut(EventRow) -> Result<bool>,
) -> Result<()> {
    /// Mostly the first ones are enough.
    const FIRST_CHUNK_EVENTS: usize = 100;
    const CHUNK_EVENTS: usize = 500;
    let mut chunk = FIRST_CHUNK_EVENTS;
    loop {
        let found = tables.newest(&selection, text, chunk)?;
        chunk = CHUNK_EVENTS;
        let Some(last) = found.last() else {
            return Ok(());
        };
        selection.before = key_of(last);
        for row in found {
            if !visit(row)? {
                return Ok(());
            }
        }
    }
}

/// Adds `more` and keeps the newest `limit`, newest first.
pub(crate) fn keep_newest(found: &mut Vec<EventRow>, more: Vec<EventRow>, limit: usize) {
    found.extend(more);
    found.sort_unstable_by_key(|row| std::cmp::Reverse(key_of(row)));
    found.truncate(limit);
}

/// A set of numbers to look up in.
fn number_set(numbers: Option<&Vec<i64>>) -> Option<HashSet<i64>> {
    numbers.map(|numbers| numbers.iter().copied().collect())
}

impl StoredSession {
    /// Sets the times of the summary from the keys.
    pub(crate) fn with_times(mut self) -> Self {
        self.summary.first = rfc3339_micros(self.first_us);
        self.summary.last = rfc3339_micros(self.last.0);
        self
    }
}
