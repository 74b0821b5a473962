//! The embedded store: one SQLite file, many readers, one writer at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use anyhook_util::fs::private_file_options;
use anyhook_util::sync::lock;
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, Transaction, TransactionBehavior, params, params_from_iter};

use crate::error::{Result, StoreError};
use crate::query::IngestCounts;
use crate::row::EventRow;
use crate::sql::{
    ColumnReader, EVENT_COLUMNS, ResultRow, SqlDialect, Statement, event_column_names,
};
use crate::store::{JournalPosition, Store, WakeFn, WatchGuard};

const MIGRATIONS: [&str; 2] = [
    include_str!("../migrations/sqlite/001.sql"),
    include_str!("../migrations/sqlite/002.sql"),
];
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_IDLE_READERS: usize = 8;
const SQL_NULL: ToSqlOutput<'static> = ToSqlOutput::Borrowed(ValueRef::Null);

pub struct SqliteStore {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// By number.
    watchers: Arc<Mutex<Vec<(u64, WakeFn)>>>,
}

impl SqliteStore {
    /// Opens or creates the file (readable by its owner only) and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_file(path).map_err(|error| error.in_file(path))
    }

    fn open_file(path: &Path) -> Result<Self> {
        create_private(path);
        let open = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let mut writer = Connection::open(path).map_err(open)?;
        writer.busy_timeout(BUSY_TIMEOUT)?;
        // Takes effect only before the first table exists.
        writer.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        writer
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .map_err(open)?;
        // An acknowledged event survives a power cut, not only a crash.
        writer.pragma_update(None, "synchronous", "FULL")?;
        writer.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut writer)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            watchers: Arc::default(),
        })
    }

    fn with_reader<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = lock(&self.readers).pop();
        let reader = match idle {
            Some(reader) => reader,
            None => self.new_reader()?,
        };
        let done = work(&reader).map_err(|error| error.in_file(&self.path));
        let mut readers = lock(&self.readers);
        if readers.len() < MAX_IDLE_READERS {
            readers.push(reader);
        }
        done
    }

    fn new_reader(&self) -> Result<Connection> {
        let open = || {
            let reader = Connection::open(&self.path)?;
            reader.busy_timeout(BUSY_TIMEOUT)?;
            reader.pragma_update(None, "query_only", true)?;
            Ok(reader)
        };
        open().map_err(|error: StoreError| error.in_file(&self.path))
    }

    fn with_writer<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        work(&mut lock(&self.writer)).map_err(|error| error.in_file(&self.path))
    }
}

impl Store for SqliteStore {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>> {
        self.with_reader(|reader| {
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
        self.with_writer(|writer| {
            let changed = writer.execute(&statement.sql, params_from_iter(&statement.args))?;
            Ok(changed as u64)
        })
    }

    fn insert(
        &self,
        rows: &[EventRow],
        position: Option<&JournalPosition>,
    ) -> Result<IngestCounts> {
        let done = self.with_writer(|writer| {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = insert_events(&transaction, rows)?;
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

    fn shrink(&self) -> Result<()> {
        self.with_writer(|writer| {
            let mut pages = writer.prepare("PRAGMA incremental_vacuum")?;
            let mut rows = pages.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        })
    }
}

fn insert_events(transaction: &Transaction<'_>, rows: &[EventRow]) -> Result<IngestCounts> {
    let placeholders = vec!["?"; EVENT_COLUMNS.len()].join(", ");
    let mut insert_event = transaction.prepare_cached(&format!(
        "INSERT INTO anyhook_events ({}) VALUES ({placeholders}) ON CONFLICT (id) DO NOTHING",
        event_column_names()
    ))?;
    let mut insert_run = transaction.prepare_cached(
        "INSERT INTO anyhook_runs (seq, pos, hook, manifest, outcome, duration_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut done = IngestCounts::default();
    for row in rows {
        let values = EVENT_COLUMNS.iter().map(|(_, column)| match column {
            ColumnReader::Int(read) => ToSqlOutput::from(read(row)),
            ColumnReader::Real(read) => ToSqlOutput::from(read(row)),
            ColumnReader::Text(read) => read(row).map_or(SQL_NULL, ToSqlOutput::from),
        });
        if insert_event.execute(params_from_iter(values))? == 0 {
            done.duplicate += 1;
            continue;
        }
        done.new += 1;
        let seq = transaction.last_insert_rowid();
        for (pos, run) in (0_i64..).zip(&row.runs) {
            insert_run.execute(params![
                seq,
                pos,
                run.hook,
                run.manifest,
                run.outcome,
                run.duration_ms,
            ])?;
        }
    }
    Ok(done)
}

fn migrate(connection: &mut Connection) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    let applied = usize::try_from(found).unwrap_or_default();
    for step in MIGRATIONS.iter().skip(applied) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

/// SQLite gives its other files the mode of the database, so this one call covers all.
fn create_private(path: &Path) {
    let mut options = private_file_options();
    // If it fails, opening the file reports the reason.
    let _ = options.create_new(true).write(true).open(path);
}

fn sql_value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            SqlValue::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}
