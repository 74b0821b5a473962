//! The shared store: several daemons, one PostgreSQL database.
//!
//! The same layout as the embedded store, with one partition for each day: `COPY` fills it,
//! retention drops it, and queries go from partition to partition.

mod ingest;
mod names;
mod parts;
mod reading;
mod retention;
mod search;
mod search_groups;
mod session;
mod sums;
mod tables;
mod upgrade;

use std::cell::{OnceCell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhook_util::sync::lock;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, Row};
use rusqlite::types::Value as SqlValue;

use crate::body::BodyCodec;
use crate::error::{Result, StoreError};
use crate::query::{
    EventDetail, EventFilter, IngestCounts, Page, PageQuery, Retention, SessionDetail,
    SessionSummary, Stats,
};
use crate::reading::{sessions as session_queries, statistics};
use crate::row::EventRow;
use crate::sql::{ResultRow, Statement};
use crate::store::{JournalPosition, Store, UpgradeProgress, WakeFn, WatchGuard};
use names::NumberCache;
use session::{Connector, Session, Sessions};
use tables::{PostgresTables, load_dictionaries};

const MIGRATIONS: [&str; 5] = [
    include_str!("../migrations/postgres/001.sql"),
    include_str!("../migrations/postgres/002.sql"),
    include_str!("../migrations/postgres/003.sql"),
    include_str!("../migrations/postgres/004.sql"),
    include_str!("../migrations/postgres/005.sql"),
];
const NOTIFY_CHANNEL: &str = "anyhook_events";
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(500);

pub struct PostgresStore {
    sessions: Sessions,
    codec: BodyCodec,
    names: Mutex<NumberCache>,
}

impl PostgresStore {
    /// Connects and brings the schema up to date. `sslmode=require` means TLS with
    /// a certificate that this machine trusts; any other mode means none.
    pub fn open(config: Config) -> Result<Self> {
        let sessions = Sessions::new(Connector::new(config)?);
        let codec = BodyCodec::default();
        sessions.write_transaction(migrate)?;
        sessions.with_session(|session| load_dictionaries(session, &codec))?;
        Ok(Self {
            sessions,
            codec,
            names: Mutex::default(),
        })
    }

    /// Runs a query at one moment of the database.
    fn query_tables<T>(
        &self,
        mut query: impl FnMut(&PostgresTables<'_>) -> Result<T>,
    ) -> Result<T> {
        self.sessions.read_transaction(|session| {
            query(&PostgresTables {
                session: RefCell::new(session),
                codec: &self.codec,
                parts: OnceCell::new(),
            })
        })
    }

    /// Runs a transaction that may number new names. They count when it is committed.
    fn write_events<T>(
        &self,
        mut work: impl FnMut(&mut Session, &mut NumberCache) -> Result<T>,
    ) -> Result<T> {
        let mut names = lock(&self.names).clone();
        let done = self
            .sessions
            .write_transaction(|session| work(session, &mut names))?;
        *lock(&self.names) = names;
        Ok(done)
    }
}

impl Store for PostgresStore {
    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>> {
        self.sessions.read_transaction(|session| {
            let found = session.query(&statement.sql, &arguments(statement))?;
            found.iter().map(result_row).collect()
        })
    }

    fn execute(&self, statement: &Statement) -> Result<u64> {
        self.sessions
            .with_session(|session| session.execute(&statement.sql, &arguments(statement)))
    }

    fn insert(
        &self,
        rows: &[EventRow],
        position: Option<&JournalPosition>,
    ) -> Result<IngestCounts> {
        // Outside of the transaction, which holds up other writers.
        let bodies = self
            .codec
            .encode(rows.iter().map(|row| row.body.as_str()))?;
        self.write_events(|session, names| {
            let mut done = IngestCounts::default();
            if !rows.is_empty() {
                done = ingest::insert_events(session, names, rows, &bodies, &self.codec)?;
            }
            if done.new > 0 {
                session.query("SELECT pg_notify($1, '')", &[&NOTIFY_CHANNEL])?;
            }
            if let Some(position) = position {
                write_position(session, position)?;
            }
            Ok(done)
        })
    }

    fn watch(&self, wake: WakeFn) -> Result<WatchGuard> {
        let connector = self.sessions.connector.clone();
        let mut client = listen(&connector)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::Builder::new()
            .name("anyhook-listen".to_owned())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    if wait_for_notifications(&mut client, &wake, &stopped).is_ok() {
                        continue;
                    }
                    std::thread::sleep(RECONNECT_DELAY);
                    if let Ok(reconnected) = listen(&connector) {
                        client = reconnected;
                        // Notifications may have been missed in between.
                        wake();
                    }
                }
            })
            .map_err(|_| StoreError::Shape("a thread to listen in"))?;
        Ok(WatchGuard(Box::new(move || {
            stop.store(true, Ordering::Relaxed);
        })))
    }

    fn rows(&self, query: &PageQuery) -> Result<Page<EventRow>> {
        self.query_tables(|tables| crate::reading::rows(tables, query))
    }

    fn after(&self, seq: i64, limit: usize) -> Result<Vec<EventRow>> {
        self.query_tables(|tables| reading::after(tables, seq, limit))
    }

    fn last_seq(&self) -> Result<i64> {
        let sql = "SELECT COALESCE(MAX(max_seq), 0) FROM anyhook_parts WHERE events > 0";
        let last = self
            .sessions
            .read_transaction(|session| session.query_int(sql, &[]))?;
        Ok(last.unwrap_or_default())
    }

    fn event(&self, id: &str) -> Result<Option<EventDetail>> {
        self.query_tables(|tables| reading::event(tables, id))
    }

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>> {
        self.query_tables(|tables| session_queries::page(tables, query))
    }

    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>> {
        self.query_tables(|tables| session_queries::detail(tables, id, agent))
    }

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats> {
        self.query_tables(|tables| statistics::stats(tables, filter, buckets))
    }

    fn retain_step(&self, retention: &Retention) -> Result<u64> {
        self.sessions
            .write_transaction(|session| retention::step(session, retention))
    }

    fn maintain_step(&self) -> Result<bool> {
        if upgrade::train_dictionary(&self.sessions, &self.codec)? {
            return Ok(true);
        }
        // The usual case takes no lock.
        if self.sessions.read_transaction(search_groups::is_behind)? {
            return self
                .sessions
                .write_transaction(|session| search_groups::group_step(session, &self.codec));
        }
        if !self.sessions.read_transaction(parts::is_uncompacted)? {
            return Ok(false);
        }
        let done = self.sessions.side_transaction(parts::compact_step)?;
        Ok(done.is_some())
    }

    fn upgrade_step(&self) -> Result<Option<UpgradeProgress>> {
        self.write_events(|session, names| upgrade::step(session, names, &self.codec))
    }

    fn upgrade_progress(&self) -> Result<Option<UpgradeProgress>> {
        self.sessions.read_transaction(upgrade::progress)
    }

    fn stored_bytes(&self) -> Result<u64> {
        let sql = "SELECT COALESCE(SUM(bytes), 0)::bigint FROM anyhook_parts";
        let bytes = self
            .sessions
            .read_transaction(|session| session.query_int(sql, &[]))?;
        Ok(u64::try_from(bytes.unwrap_or_default()).unwrap_or_default())
    }
}

fn listen(connector: &Connector) -> Result<Client> {
    let mut client = connector.connect()?;
    client.batch_execute(&format!("LISTEN {NOTIFY_CHANNEL}"))?;
    Ok(client)
}

fn wait_for_notifications(client: &mut Client, wake: &WakeFn, stopped: &AtomicBool) -> Result<()> {
    {
        let mut notifications = client.notifications();
        let mut waiting = notifications.timeout_iter(STOP_POLL_INTERVAL);
        while waiting.next()?.is_some() {
            wake();
            if stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
    if client.is_closed() {
        return Err(StoreError::Shape("an open connection"));
    }
    Ok(())
}

fn write_position(session: &mut Session, position: &JournalPosition) -> Result<()> {
    let pos = i64::try_from(position.pos).unwrap_or(i64::MAX);
    session.execute(
        "INSERT INTO anyhook_files (source, file, pos) VALUES ($1, $2, $3) \
         ON CONFLICT (source, file) DO UPDATE SET pos = GREATEST(anyhook_files.pos, excluded.pos)",
        &[&position.source, &position.file, &pos],
    )?;
    Ok(())
}

fn migrate(session: &mut Session) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // A new index of a large table takes its time.
    session
        .client
        .batch_execute("SET LOCAL statement_timeout = 0")?;
    session
        .client
        .batch_execute("CREATE TABLE IF NOT EXISTS anyhook_schema (version BIGINT NOT NULL)")?;
    let sql = "SELECT COALESCE(MAX(version), 0) FROM anyhook_schema";
    let found = session.query_int(sql, &[])?.unwrap_or_default();
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (version, step) in (1_i64..).zip(MIGRATIONS) {
        if version > found {
            session.client.batch_execute(step)?;
            session.execute(
                "INSERT INTO anyhook_schema (version) VALUES ($1)",
                &[&version],
            )?;
        }
    }
    upgrade::drop_old_if_empty(session)
}

fn arguments(statement: &Statement) -> Vec<&(dyn ToSql + Sync)> {
    statement
        .args
        .iter()
        .map(|value| match value {
            SqlValue::Null => &None::<String> as &(dyn ToSql + Sync),
            SqlValue::Integer(number) => number,
            SqlValue::Real(number) => number,
            SqlValue::Text(text) => text,
            SqlValue::Blob(bytes) => bytes,
        })
        .collect()
}

fn result_row(row: &Row) -> Result<ResultRow> {
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(number, column)| {
        let value = match *column.type_() {
            Type::INT8 => row
                .try_get::<_, Option<i64>>(number)?
                .map(SqlValue::Integer),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(number)?
                .map(|value| SqlValue::Integer(value.into())),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(number)?.map(SqlValue::Real),
            Type::BYTEA => row
                .try_get::<_, Option<Vec<u8>>>(number)?
                .map(SqlValue::Blob),
            _ => row
                .try_get::<_, Option<String>>(number)?
                .map(SqlValue::Text),
        };
        Ok(value.unwrap_or(SqlValue::Null))
    });
    Ok(ResultRow::new(values.collect::<Result<_>>()?))
}
