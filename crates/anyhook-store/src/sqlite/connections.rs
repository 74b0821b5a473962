//! The connections to one SQLite file, its schema, and the dictionaries of its records.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhook_util::fs::private_file_options;
use anyhook_util::sync::lock;
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, TransactionBehavior};

use crate::body::{BodyCodec, dictionary_number};
use crate::cancel::QueryCancel;
use crate::error::{Result, StoreError};
use crate::row::EventRow;
use crate::sqlite::names::NumberCache;
use crate::sqlite::upgrade;

const MIGRATIONS: [&str; 5] = [
    include_str!("../../migrations/sqlite/001.sql"),
    include_str!("../../migrations/sqlite/002.sql"),
    include_str!("../../migrations/sqlite/003.sql"),
    include_str!("../../migrations/sqlite/004.sql"),
    include_str!("../../migrations/sqlite/005.sql"),
];
/// An event takes about 450 bytes: at the end of a page of 4096 half of that stays empty on
/// average, 5 % of the file.
const PAGE_BYTES: i64 = 8192;
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_IDLE_READERS: usize = 8;
/// Instructions of a query between two looks at whether it was cancelled: some microseconds.
const CANCEL_CHECK_INSTRUCTIONS: i32 = 10_000;

pub(crate) struct Connections {
    path: PathBuf,
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    codec: BodyCodec,
}

pub(crate) struct Writer {
    pub connection: Connection,
    pub names: NumberCache,
}

impl Connections {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::open_file(path).map_err(|error| {
            let failure = error.is_about_files().then(|| write_failure(path));
            match failure.flatten() {
                Some(why) => StoreError::NotWritable {
                    path: path.to_owned(),
                    why,
                },
                None => error.in_file(path),
            }
        })
    }

    fn open_file(path: &Path) -> Result<Self> {
        create_private(path);
        let open = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let mut connection = Connection::open(path).map_err(open)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Both take effect only before the first table exists.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .map_err(open)?;
        // An acknowledged event survives a power cut, not only a crash.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection)?;
        let codec = BodyCodec::default();
        load_dictionaries(&connection, &codec)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(Writer {
                connection,
                names: NumberCache::default(),
            }),
            readers: Mutex::new(Vec::new()),
            codec,
        })
    }

    pub(crate) fn reload_dictionaries(&self) -> Result<()> {
        self.with_reader(|reader, records| load_dictionaries(reader, records.codec))
    }

    /// The records of these rows, compressed.
    pub(crate) fn encode(&self, rows: &[EventRow]) -> Result<Vec<Vec<u8>>> {
        self.codec.encode(rows.iter().map(|row| row.body.as_str()))
    }

    pub(crate) fn with_reader<T>(
        &self,
        work: impl FnOnce(&Connection, &RecordReader<'_>) -> Result<T>,
    ) -> Result<T> {
        let idle = lock(&self.readers).pop();
        let reader = match idle {
            Some(reader) => reader,
            None => self.new_reader()?,
        };
        let records = RecordReader {
            connection: &reader,
            codec: &self.codec,
        };
        let done = work(&reader, &records).map_err(|error| error.in_file(&self.path));
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
            reader.progress_handler(
                CANCEL_CHECK_INSTRUCTIONS,
                Some(QueryCancel::is_current_cancelled),
            )?;
            Ok(reader)
        };
        open().map_err(|error: StoreError| error.in_file(&self.path))
    }

    /// What a failed transaction has numbered is forgotten.
    pub(crate) fn with_writer<T>(&self, work: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        let mut writer = lock(&self.writer);
        let done = work(&mut writer);
        if done.is_err() {
            writer.names = NumberCache::default();
        }
        done.map_err(|error| error.in_file(&self.path))
    }
}

/// Reads the records of one connection's results.
pub(crate) struct RecordReader<'a> {
    connection: &'a Connection,
    codec: &'a BodyCodec,
}

impl RecordReader<'_> {
    pub(crate) fn body(&self, stored: &[u8]) -> Result<String> {
        // Another process may have trained a dictionary since.
        if !self.codec.has(dictionary_number(stored)) {
            load_dictionaries(self.connection, self.codec)?;
        }
        self.codec.decode(stored)
    }

    /// An event from what a row has of it: number, time and record.
    pub(crate) fn row(&self, seq: i64, time_us: i64, stored: &[u8]) -> Result<EventRow> {
        EventRow::from_stored(seq, time_us, &self.body(stored)?)
    }
}

fn load_dictionaries(connection: &Connection, codec: &BodyCodec) -> Result<()> {
    let mut statement =
        connection.prepare("SELECT number, bytes FROM anyhook_dictionaries ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number: u8 = row.get(0)?;
        let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
        if !codec.has(number) && !bytes.is_empty() {
            codec.add(number, bytes);
        }
    }
    Ok(())
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
    upgrade::drop_old_if_empty(&transaction)?;
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

/// What the system says of a file that SQLite could not open.
fn write_failure(path: &Path) -> Option<std::io::Error> {
    let mut options = private_file_options();
    // `append`: what is there stays.
    options.append(true).create(true).open(path).err()
}

pub(crate) fn sql_value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(bytes) => SqlValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}
