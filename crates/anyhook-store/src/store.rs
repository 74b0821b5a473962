//! Everything that a reader or writer of events can do, whatever the database.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhook_model::Record;
use serde::Serialize;

use crate::error::{Result, StoreError};
use crate::postgres::PostgresStore;
use crate::query::{
    EventDetail, EventFilter, EventSummary, IngestCounts, Page, PageCursor, PageQuery, Retention,
    SessionDetail, SessionSummary, Stats,
};
use crate::row::EventRow;
use crate::sql::{ResultRow, Statement};
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
    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>>;

    /// Returns the number of changed rows.
    fn execute(&self, statement: &Statement) -> Result<u64>;

    /// Stores the rows whose id is new; the position moves in the same transaction.
    fn insert(&self, rows: &[EventRow], position: Option<&JournalPosition>)
    -> Result<IngestCounts>;

    /// Calls `wake` after every commit of new events, until the guard is dropped.
    fn watch(&self, wake: WakeFn) -> Result<WatchGuard>;

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
        let mut statement = Statement::new(sql);
        statement.text(source).push(" AND file = ").text(file);
        Ok(u64::try_from(select_int(self, &statement)?).unwrap_or_default())
    }

    /// One page of events with their records, newest first.
    fn rows(&self, query: &PageQuery) -> Result<Page<EventRow>>;

    /// One page of events, newest first.
    fn events(&self, query: &PageQuery) -> Result<Page<EventSummary>> {
        let page = self.rows(query)?;
        Ok(Page {
            items: page.items.into_iter().map(|row| row.summary).collect(),
            next: page.next,
        })
    }

    /// Events that arrived after `seq`, oldest first: the live stream, and its resumption.
    fn after(&self, seq: i64, limit: usize) -> Result<Vec<EventRow>>;

    /// The highest `seq` so far; 0 when empty.
    fn last_seq(&self) -> Result<i64> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM anyhook_events";
        select_int(self, &Statement::new(sql))
    }

    fn event(&self, id: &str) -> Result<Option<EventDetail>>;

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>>;

    /// The latest session of that id, of one agent when two agents use the same id.
    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>>;

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats>;

    /// Deletes what the limits no longer keep; returns the number of deleted events.
    fn retain(&self, retention: &Retention) -> Result<u64> {
        let mut deleted = 0;
        loop {
            match self.retain_step(retention)? {
                0 => break,
                more => deleted += more,
            }
        }
        while self.maintain_step()? {}
        Ok(deleted)
    }

    /// Deletes some of what the limits no longer keep, in a few milliseconds; 0 when
    /// nothing is left to delete.
    fn retain_step(&self, retention: &Retention) -> Result<u64>;

    /// Does one step of the work that keeps the store small; `true` if there is more to do.
    fn maintain_step(&self) -> Result<bool> {
        Ok(false)
    }

    /// Moves some events from the layout of an older version; `None` when all are moved.
    fn upgrade_step(&self) -> Result<Option<UpgradeProgress>> {
        Ok(None)
    }

    /// How far the events of an older version are moved; `None` when all are.
    fn upgrade_progress(&self) -> Result<Option<UpgradeProgress>> {
        Ok(None)
    }

    /// Identifies this store among all that are exported to the same place.
    fn store_id(&self) -> Result<String> {
        const SOURCE: &str = "anyhook-store-id";
        let mut select = Statement::new("SELECT file FROM anyhook_files WHERE source = ");
        select.text(SOURCE).push(" ORDER BY pos LIMIT 1");
        let found = select_all(self, &select, ResultRow::text)?;
        if let Some(id) = found.into_iter().next() {
            return Ok(id);
        }
        let made = new_store_id();
        let mut insert = Statement::new("INSERT INTO anyhook_files (source, file, pos) SELECT ");
        insert.text(SOURCE).push(", ").text(&made).push(", 0");
        insert
            .push(" WHERE NOT EXISTS (SELECT 1 FROM anyhook_files WHERE source = ")
            .text(SOURCE)
            .push(")");
        self.execute(&insert)?;
        let found = select_all(self, &select, ResultRow::text)?;
        Ok(found.into_iter().next().unwrap_or(made))
    }

    /// About what the events take, for retention by size.
    fn stored_bytes(&self) -> Result<u64>;
}

/// Events of an older version's layout, in numbers of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UpgradeProgress {
    pub done: u64,
    pub left: u64,
}

fn new_store_id() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    // Seeded by the system, differently in every process.
    let hasher = std::collections::hash_map::RandomState::new().build_hasher();
    format!("{:016x}", hasher.finish())
}

/// The most names that a list of counts has.
pub(crate) const MAX_NAMES: usize = 100;

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

/// `found` has one item more than a page if there is another page.
pub(crate) fn page<T>(mut found: Vec<(PageCursor, T)>, size: usize) -> Page<T> {
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
