//! The embedded store: one SQLite file, many readers, one writer at a time.
//!
//! Events are narrow rows that refer to shared names by number and carry their record
//! compressed. Sums by hour and day, sessions and the search index are kept by the same
//! transaction that stores an event.

mod connections;
mod identifiers;
mod ingest;
mod names;
mod reading;
mod retention;
mod search;
mod tables;
mod upgrade;

use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use anyhook_util::sync::lock;
use rusqlite::{TransactionBehavior, params, params_from_iter};

use crate::error::Result;
use crate::query::{
    EventDetail, EventFilter, IngestCounts, Page, PageQuery, Retention, SessionDetail,
    SessionSummary, Stats,
};
use crate::reading::{sessions, statistics};
use crate::row::EventRow;
use crate::sql::{ResultRow, Statement};
use crate::store::{JournalPosition, Store, UpgradeProgress, WakeFn, WatchGuard};
use connections::{Connections, sql_value};
use tables::SqliteTables;

pub struct SqliteStore {
    connections: Connections,
    /// By number.
    watchers: Arc<Mutex<Vec<(u64, WakeFn)>>>,
}

impl SqliteStore {
    /// Opens or creates the file (readable by its owner only) and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            connections: Connections::open(path)?,
            watchers: Arc::default(),
        })
    }

    /// Runs a query at one moment of the file.
    fn query_tables<T>(&self, query: impl FnOnce(&SqliteTables<'_>) -> Result<T>) -> Result<T> {
        self.connections.with_reader(|reader, records| {
            let transaction = reader.unchecked_transaction()?;
            query(&SqliteTables {
                connection: &transaction,
                records,
            })
        })
    }
}

impl Store for SqliteStore {
    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>> {
        self.connections.with_reader(|reader, _| {
            let mut prepared = reader.prepare_cached(&statement.sql)?;
            let width = prepared.column_count();
            let rows = prepared.query_map(params_from_iter(&statement.args), |row| {
                let values = (0..width).map(|column| row.get_ref(column).map(sql_value));
                Ok(ResultRow::new(values.collect::<rusqlite::Result<_>>()?))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn execute(&self, statement: &Statement) -> Result<u64> {
        self.connections.with_writer(|writer| {
            let changed = writer
                .connection
                .execute(&statement.sql, params_from_iter(&statement.args))?;
            Ok(changed as u64)
        })
    }

    fn insert(
        &self,
        rows: &[EventRow],
        position: Option<&JournalPosition>,
    ) -> Result<IngestCounts> {
        // Outside of the transaction, which holds up other writers.
        let bodies = self.connections.encode(rows)?;
        let done = self.connections.with_writer(|writer| {
            let names = &mut writer.names;
            let transaction = writer
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = ingest::insert_events(&transaction, names, rows, &bodies)?;
            if let Some(position) = position {
                let pos = i64::try_from(position.pos).unwrap_or(i64::MAX);
                transaction
                    .prepare_cached(
                        "INSERT INTO anyhook_files (source, file, pos) VALUES (?1, ?2, ?3) \
                         ON CONFLICT (source, file) DO UPDATE SET pos = MAX(pos, excluded.pos)",
                    )?
                    .execute(params![position.source, position.file, pos])?;
            }
            transaction.commit()?;
            Ok(done)
        })?;
        if done.new > 0 {
            // Not under the lock: a watcher may end its watch.
            let watchers = lock(&self.watchers).clone();
            for (_, wake) in watchers {
                wake();
            }
        }
        Ok(done)
    }

    fn watch(&self, wake: WakeFn) -> Result<WatchGuard> {
        let mut watchers = lock(&self.watchers);
        let number = watchers.last().map_or(0, |(number, _)| number + 1);
        watchers.push((number, wake));
        let watchers = Arc::downgrade(&self.watchers);
        Ok(WatchGuard(Box::new(move || {
            if let Some(watchers) = Weak::upgrade(&watchers) {
                lock(&watchers).retain(|(other, _)| *other != number);
            }
        })))
    }

    fn rows(&self, query: &PageQuery) -> Result<Page<EventRow>> {
        self.query_tables(|tables| crate::reading::rows(tables, query))
    }

    fn after(&self, seq: i64, limit: usize) -> Result<Vec<EventRow>> {
        self.connections
            .with_reader(|reader, codec| reading::after(reader, codec, seq, limit))
    }

    fn event(&self, id: &str) -> Result<Option<EventDetail>> {
        self.connections
            .with_reader(|reader, codec| reading::event(reader, codec, id))
    }

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>> {
        self.query_tables(|tables| sessions::page(tables, query))
    }

    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>> {
        self.query_tables(|tables| sessions::detail(tables, id, agent))
    }

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats> {
        self.query_tables(|tables| statistics::stats(tables, filter, buckets))
    }

    fn retain_step(&self, retention: &Retention) -> Result<u64> {
        self.connections
            .with_writer(|writer| retention::step(&mut writer.connection, retention))
    }

    fn maintain_step(&self) -> Result<bool> {
        if upgrade::train_dictionary(&self.connections)? {
            return Ok(true);
        }
        if identifiers::step(&self.connections)? {
            return Ok(true);
        }
        self.connections
            .with_writer(|writer| retention::vacuum_step(&writer.connection))
    }

    fn upgrade_step(&self) -> Result<Option<UpgradeProgress>> {
        upgrade::step(&self.connections)
    }

    fn upgrade_progress(&self) -> Result<Option<UpgradeProgress>> {
        self.connections
            .with_reader(|reader, _| upgrade::progress(reader))
    }

    fn stored_bytes(&self) -> Result<u64> {
        self.connections
            .with_reader(|reader, _| retention::stored_bytes(reader))
    }
}
