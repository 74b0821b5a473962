//! Everything that a reader or writer of events can do, whatever the database.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhook_model::Record;

use crate::error::{Result, StoreError};
use crate::postgres::PostgresStore;
use crate::query::{
    EventDetail, EventFilter, EventSummary, IngestCounts, NameCount, Page, PageCursor, PageQuery,
    Retention, SessionDetail, SessionSummary, Stats,
};
use crate::row::{EventRow, rfc3339_micros};
use crate::sql::{ResultRow, SqlDialect, Statement, count_if, read_summary};
use crate::sqlite::SqliteStore;

/// How far a journal file has been read; kept in the same transaction as its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPosition {
    /// The journal: one per machine and user.
    pub source: String,
    pub file: String,
    pub pos: u64,
}

/// Called after events were committed, by this process or (PostgreSQL) another.
pub type WakeFn = Arc<dyn Fn() + Send + Sync>;

/// Ends its watch when dropped.
pub struct WatchGuard(pub(crate) Box<dyn FnMut() + Send>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Stores events and answers queries. Calls block: an async caller uses a thread for them.
///
/// A database provides the methods without a body; everything else is built on them.
pub trait Store: Send + Sync {
    fn dialect(&self) -> SqlDialect;

    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>>;

    /// Returns the number of changed rows.
    fn execute(&self, statement: &Statement) -> Result<u64>;

    /// Stores the rows whose id is new; the position moves in the same transaction.
    fn insert(&self, rows: &[EventRow], position: Option<&JournalPosition>)
    -> Result<IngestCounts>;

    /// Calls `wake` after every commit of new events, until the guard is dropped.
    fn watch(&self, wake: WakeFn) -> Result<WatchGuard>;

    /// Frees space after a deletion.
    fn shrink(&self) -> Result<()>;

    /// Stores records that did not come from a local journal.
    fn ingest(&self, records: &[Record]) -> Result<IngestCounts> {
        let rows: Vec<_> = records.iter().filter_map(EventRow::from_record).collect();
        let mut done = self.insert(&rows, None)?;
        done.refused += (records.len() - rows.len()) as u64;
        Ok(done)
    }

    /// How far a journal file was read; 0 when it is new.
    fn journal_position(&self, source: &str, file: &str) -> Result<u64> {
        let sql = "SELECT pos FROM anyhook_files WHERE source = ";
        let mut statement = Statement::new(self.dialect(), sql);
        statement.text(source).push(" AND file = ").text(file);
        Ok(u64::try_from(select_int(self, &statement)?).unwrap_or_default())
    }

    fn events(&self, query: &PageQuery) -> Result<Page<EventSummary>> {
        let from = " FROM anyhook_events e WHERE 1 = 1";
        let mut statement = Statement::select_summary(self.dialect(), from);
        statement.filter(&query.filter);
        if let Some(cursor) = query.cursor {
            statement.push(" AND (e.time_us < ").int(cursor.time_us);
            statement.push(" OR (e.time_us = ").int(cursor.time_us);
            statement.push(" AND e.seq < ").int(cursor.seq).push("))");
        }
        statement.push(" ORDER BY e.time_us DESC, e.seq DESC LIMIT ");
        statement.size(query.size() + 1);
        let found = select_all(self, &statement, |row| {
            let summary = read_summary(row)?;
            let (time_us, seq) = (summary.time_us, summary.seq);
            Ok((PageCursor { time_us, seq }, summary))
        })?;
        Ok(page(found, query.size()))
    }

    /// Events that arrived after `seq`, oldest first: the live stream, and its resumption.
    fn after(&self, seq: i64, filter: &EventFilter, limit: usize) -> Result<Vec<EventSummary>> {
        let from = " FROM anyhook_events e WHERE e.seq > ";
        let mut statement = Statement::select_summary(self.dialect(), from);
        statement.int(seq).filter(filter);
        statement.push(" ORDER BY e.seq LIMIT ").size(limit);
        select_all(self, &statement, read_summary)
    }

    /// The highest `seq` so far; 0 when empty.
    fn last_seq(&self) -> Result<i64> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM anyhook_events";
        select_int(self, &Statement::new(self.dialect(), sql))
    }

    fn event(&self, id: &str) -> Result<Option<EventDetail>> {
        let from = ", e.body FROM anyhook_events e WHERE e.id = ";
        let mut statement = Statement::select_summary(self.dialect(), from);
        statement.text(id);
        let found = select_all(self, &statement, |row| {
            Ok(EventDetail {
                summary: read_summary(row)?,
                record: serde_json::from_str(&row.text()?)
                    .map_err(|_| StoreError::Shape("a record as JSON"))?,
            })
        })?;
        Ok(found.into_iter().next())
    }

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>> {
        let [tools, denials, asks] = [
            "e.type = 'BEFORE_TOOL'",
            "e.decision = 'deny'",
            "e.decision = 'ask'",
        ]
        .map(count_if);
        let sql = format!(
            "SELECT e.session_id, e.agent, MIN(e.time_us), MAX(e.time_us), MAX(e.seq), COUNT(*), \
             {tools}, {denials}, {asks}, MAX(e.cwd), MAX(e.machine) \
             FROM anyhook_events e WHERE e.session_id IS NOT NULL"
        );
        let mut statement = Statement::new(self.dialect(), sql);
        statement.filter(&query.filter);
        statement.push(" GROUP BY e.agent, e.session_id");
        if let Some(PageCursor { time_us, seq }) = query.cursor {
            statement.push(" HAVING (MAX(e.time_us) < ").int(time_us);
            statement.push(" OR (MAX(e.time_us) = ").int(time_us);
            statement.push(" AND MAX(e.seq) < ").int(seq).push("))");
        }
        statement.push(" ORDER BY MAX(e.time_us) DESC, MAX(e.seq) DESC LIMIT ");
        statement.size(query.size() + 1);
        let found = select_all(self, &statement, read_session)?;
        Ok(page(found, query.size()))
    }

    /// The latest session of that id, of one agent when two agents use the same id.
    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>> {
        let mut query = PageQuery {
            filter: EventFilter {
                session: Some(id.to_owned()),
                agent: agent.map(str::to_owned),
                ..EventFilter::default()
            },
            cursor: None,
            limit: 1,
        };
        let Some(summary) = self.sessions(&query)?.items.pop() else {
            return Ok(None);
        };
        query.filter.agent = Some(summary.agent.clone());
        Ok(Some(SessionDetail {
            by_tool: count_by(self, "tool", &query.filter)?,
            by_event: count_by(self, "event", &query.filter)?,
            summary,
        }))
    }

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats> {
        crate::stats::query_stats(self, filter, buckets)
    }

    /// Deletes what the limits no longer keep; returns the number of deleted events.
    fn retain(&self, retention: &Retention) -> Result<u64> {
        let mut deleted = 0;
        if let Some(age) = retention.max_age_s {
            let age = i64::try_from(age).unwrap_or(i64::MAX);
            let now_us = jiff::Timestamp::now().as_microsecond();
            let sql = "DELETE FROM anyhook_events WHERE time_us < ";
            let mut statement = Statement::new(self.dialect(), sql);
            statement.int(now_us.saturating_sub(age.saturating_mul(1_000_000)));
            deleted += self.execute(&statement)?;
        }
        if let Some(bytes) = retention.max_bytes {
            let sql = "DELETE FROM anyhook_events WHERE seq IN (SELECT seq FROM (SELECT seq, \
                 CAST(SUM(bytes) OVER (ORDER BY time_us DESC, seq DESC) AS BIGINT) AS weight \
                 FROM anyhook_events) t WHERE weight > ";
            let mut statement = Statement::new(self.dialect(), sql);
            statement.int(i64::try_from(bytes).unwrap_or(i64::MAX));
            statement.push(")");
            deleted += self.execute(&statement)?;
        }
        if deleted > 0 {
            self.shrink()?;
        }
        Ok(deleted)
    }
}

pub(crate) fn select_all<S: Store + ?Sized, T>(
    store: &S,
    statement: &Statement,
    read: impl FnMut(&mut ResultRow) -> Result<T>,
) -> Result<Vec<T>> {
    store.select(statement)?.iter_mut().map(read).collect()
}

/// The only value of the only row; 0 without a row.
pub(crate) fn select_int<S: Store + ?Sized>(store: &S, statement: &Statement) -> Result<i64> {
    let mut rows = store.select(statement)?;
    rows.first_mut().map_or(Ok(0), ResultRow::int)
}

/// The number of events of each value of `column`, most first.
pub(crate) fn count_by<S: Store + ?Sized>(
    store: &S,
    column: &'static str,
    filter: &EventFilter,
) -> Result<Vec<NameCount>> {
    let denials = count_if("e.decision = 'deny'");
    let sql = format!(
        "SELECT e.{column}, COUNT(*), {denials} FROM anyhook_events e WHERE e.{column} IS NOT NULL"
    );
    let mut statement = Statement::new(store.dialect(), sql);
    statement.filter(filter).push(&format!(
        " GROUP BY e.{column} ORDER BY COUNT(*) DESC, e.{column} LIMIT 100"
    ));
    select_all(store, &statement, |row| {
        Ok(NameCount {
            name: row.text()?,
            count: row.int()?,
            denials: row.int()?,
        })
    })
}

fn read_session(row: &mut ResultRow) -> Result<(PageCursor, SessionSummary)> {
    let session_id = row.text()?;
    let agent = row.text()?;
    let first_us = row.int()?;
    let cursor = PageCursor {
        time_us: row.int()?,
        seq: row.int()?,
    };
    let summary = SessionSummary {
        session_id,
        agent,
        first: rfc3339_micros(first_us),
        last: rfc3339_micros(cursor.time_us),
        events: row.int()?,
        tools: row.int()?,
        denials: row.int()?,
        asks: row.int()?,
        cwd: row.optional()?,
        machine: row.optional()?,
    };
    Ok((cursor, summary))
}

/// `found` has one item more than a page if there is another page.
fn page<T>(mut found: Vec<(PageCursor, T)>, size: usize) -> Page<T> {
    let has_more = found.len() > size;
    found.truncate(size);
    let last = found.last().filter(|_| has_more);
    Page {
        next: last.map(|(cursor, _)| cursor.to_string()),
        items: found.into_iter().map(|(_, item)| item).collect(),
    }
}

/// A store by its address: `postgres://…`, or the path of a SQLite file.
pub fn open(address: &str) -> Result<Arc<dyn Store>> {
    let invalid = || StoreError::Address(without_password(address));
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        let config = postgres::Config::from_str(address).map_err(|_| invalid())?;
        return Ok(Arc::new(PostgresStore::open(config)?));
    }
    let path = address.strip_prefix("sqlite://").unwrap_or(address);
    if path.is_empty() || path.contains("://") {
        return Err(invalid());
    }
    Ok(Arc::new(SqliteStore::open(Path::new(path))?))
}

fn without_password(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => address.to_owned(),
    }
}
