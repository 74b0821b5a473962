//! The embedded store: one SQLite file, many readers, one writer at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params};

use crate::backend::{Backend, Mark, Wake, Watch};
use crate::error::{Result, StoreError};
use crate::query::Ingested;
use crate::row::EventRow;
use crate::sql::{Arg, Cell, Cells, Dialect, Statement};

const MIGRATIONS: [&str; 1] = [include_str!("../migrations/sqlite/001.sql")];
const BUSY: Duration = Duration::from_secs(30);
const IDLE_READERS: usize = 8;

pub struct SqliteStore {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    watchers: Arc<Watchers>,
}

#[derive(Default)]
struct Watchers(Mutex<Vec<(u64, Wake)>>);

impl SqliteStore {
    /// Opens or creates the file (readable by its owner only) and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self> {
        create_private(path);
        let open = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let mut writer = Connection::open(path).map_err(open)?;
        writer.busy_timeout(BUSY)?;
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

    fn open_reader(&self) -> Result<Connection> {
        let reader = Connection::open(&self.path)?;
        reader.busy_timeout(BUSY)?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(reader)
    }

    fn with_reader<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = lock(&self.readers).pop();
        let reader = match idle {
            Some(reader) => reader,
            None => self.open_reader()?,
        };
        let done = work(&reader);
        let mut readers = lock(&self.readers);
        if readers.len() < IDLE_READERS {
            readers.push(reader);
        }
        done
    }
}

impl Backend for SqliteStore {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn select(&self, statement: &Statement) -> Result<Vec<Cells>> {
        self.with_reader(|reader| {
            let mut prepared = reader.prepare_cached(&statement.sql)?;
            let width = prepared.column_count();
            let rows = prepared
                .query_map(rusqlite::params_from_iter(&statement.args), |row| {
                    (0..width)
                        .map(|column| row.get_ref(column).map(cell))
                        .collect::<rusqlite::Result<Vec<_>>>()
                })?
                .map(|row| row.map(Cells::new))
                .collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(rows)
        })
    }

    fn execute(&self, statement: &Statement) -> Result<u64> {
        let changed = lock(&self.writer)
            .execute(&statement.sql, rusqlite::params_from_iter(&statement.args))?;
        Ok(changed as u64)
    }

    fn insert(&self, rows: &[EventRow], mark: Option<&Mark>) -> Result<Ingested> {
        let mut done = Ingested::default();
        {
            let mut writer = lock(&self.writer);
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut event = transaction.prepare_cached(
                    "INSERT INTO anyhook_events (id, time_us, kind, agent, event, type, native_event, session_id, \
                     machine, cwd, tool, detail, decision, reason, duration_ms, hooks, bytes, text, body) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) \
                     ON CONFLICT (id) DO NOTHING",
                )?;
                let mut run = transaction.prepare_cached(
                    "INSERT INTO anyhook_runs (seq, pos, hook, manifest, outcome, duration_ms) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                for row in rows {
                    let count = row.runs.len() as u64;
                    let inserted = event.execute(params![
                        row.id,
                        row.time_us,
                        row.kind,
                        row.agent,
                        row.event,
                        row.unified,
                        row.native_event,
                        row.session_id,
                        row.machine,
                        row.cwd,
                        row.tool,
                        row.detail,
                        row.decision,
                        row.reason,
                        row.duration_ms,
                        i64::try_from(count).unwrap_or(i64::MAX),
                        row.bytes(),
                        row.text,
                        row.body,
                    ])?;
                    if inserted == 0 {
                        done.duplicate += 1;
                        continue;
                    }
                    done.new += 1;
                    let seq = transaction.last_insert_rowid();
                    for (pos, item) in (0_i64..).zip(&row.runs) {
                        run.execute(params![
                            seq,
                            pos,
                            item.hook,
                            item.manifest,
                            item.outcome,
                            item.duration_ms,
                        ])?;
                    }
                }
                if let Some(mark) = mark {
                    transaction
                        .prepare_cached(
                            "INSERT INTO anyhook_files (source, file, pos) VALUES (?1, ?2, ?3) \
                             ON CONFLICT (source, file) DO UPDATE SET pos = MAX(pos, excluded.pos)",
                        )?
                        .execute(params![
                            mark.source,
                            mark.file,
                            i64::try_from(mark.pos).unwrap_or(i64::MAX)
                        ])?;
                }
            }
            transaction.commit()?;
        }
        if done.new > 0 {
            self.watchers.wake();
        }
        Ok(done)
    }

    fn watch(&self, wake: Wake) -> Result<Watch> {
        let number = self.watchers.add(wake);
        let watchers = Arc::downgrade(&self.watchers);
        Ok(Watch(Box::new(move || {
            if let Some(watchers) = Weak::upgrade(&watchers) {
                lock(&watchers.0).retain(|(other, _)| *other != number);
            }
        })))
    }

    fn shrink(&self) -> Result<()> {
        let writer = lock(&self.writer);
        let mut pages = writer.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = pages.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    }
}

impl Watchers {
    fn add(&self, wake: Wake) -> u64 {
        let mut watchers = lock(&self.0);
        let number = watchers.last().map_or(0, |(number, _)| number + 1);
        watchers.push((number, wake));
        number
    }

    fn wake(&self) {
        let wakes: Vec<Wake> = lock(&self.0).iter().map(|(_, wake)| wake.clone()).collect();
        for wake in wakes {
            wake();
        }
    }
}

fn migrate(connection: &mut Connection) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for step in MIGRATIONS
        .iter()
        .skip(usize::try_from(found).unwrap_or_default())
    {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

/// SQLite gives its side files the mode of the database, so this one call covers all.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // It exists already, or opening it will say what is wrong.
    let _ = options.open(path);
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Cell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

impl ToSql for Arg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Int(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
