//! The shared store: several daemons, one PostgreSQL database.
//!
//! Writers take an advisory lock for the length of a transaction, so that `seq`
//! becomes visible in order: a stream that has read up to 10 never misses a 9
//! that was committed later.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhook_util::sync::lock;
use postgres::config::SslMode;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{CancelToken, Client, Config, NoTls, Row, Transaction};
use rusqlite::types::Value as SqlValue;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::cancel::QueryCancel;
use crate::error::{Result, StoreError};
use crate::query::{IngestCounts, Retention};
use crate::row::EventRow;
use crate::sql::{
    ColumnReader, EVENT_COLUMNS, ResultRow, SqlDialect, Statement, event_column_names,
};
use crate::store::{JournalPosition, Store, WakeFn, WatchGuard};

const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/postgres/001.sql"),
    include_str!("../migrations/postgres/002.sql"),
    include_str!("../migrations/postgres/003.sql"),
];
const NOTIFY_CHANNEL: &str = "anyhook_events";
/// The key of an advisory lock: "anyhook" in ASCII.
const WRITER_LOCK_KEY: i64 = 0x0061_6e79_686f_6f6b;
const MAX_IDLE_CLIENTS: usize = 8;
/// For a statement that nobody cancels. An address with `options` of its own sets its own.
const STATEMENT_LIMIT: &str = "-c statement_timeout=120s";
/// Events that one step of the retention deletes.
const STEP_EVENTS: i64 = 2000;
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(500);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub struct PostgresStore {
    connector: Arc<Connector>,
    idle: Mutex<Vec<Client>>,
}

struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    fn connect(&self) -> Result<Client> {
        Ok(match &self.tls {
            Some(tls) => self.config.connect(tls.clone())?,
            None => self.config.connect(NoTls)?,
        })
    }
}

impl Connector {
    /// Ends a running statement. Needs a connection of its own, so nobody waits for it.
    fn cancel(self: &Arc<Self>, token: CancelToken) {
        let connector = self.clone();
        let end = move || {
            // A statement that has ended meanwhile needs no end.
            let _ = match &connector.tls {
                Some(tls) => token.cancel_query(tls.clone()),
                None => token.cancel_query(NoTls),
            };
        };
        let thread = std::thread::Builder::new().name("anyhook-cancel".to_owned());
        let _ = thread.spawn(end);
    }
}

impl PostgresStore {
    /// Connects and brings the schema up to date. `sslmode=require` means TLS with
    /// a certificate that this machine trusts; any other mode means none.
    pub fn open(mut config: Config) -> Result<Self> {
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("anyhook");
        }
        if config.get_options().is_none() {
            config.options(STATEMENT_LIMIT);
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable | SslMode::Prefer => None,
            _ => Some(tls()?),
        };
        let store = Self {
            connector: Arc::new(Connector { config, tls }),
            idle: Mutex::new(Vec::new()),
        };
        store.with_client(migrate)?;
        Ok(store)
    }

    /// Runs `work`, a second time on a new connection if the server closed the first one:
    /// `work` must be safe to repeat.
    fn with_client<T>(&self, mut work: impl FnMut(&mut Client) -> Result<T>) -> Result<T> {
        let idle = lock(&self.idle).pop();
        if let Some(mut client) = idle {
            let done = work(&mut client);
            let is_closed = client.is_closed();
            self.put_back(client);
            if done.is_ok() || !is_closed {
                return done;
            }
            lock(&self.idle).clear();
        }
        let mut client = self.connector.connect()?;
        let done = work(&mut client);
        self.put_back(client);
        done
    }

    fn put_back(&self, client: Client) {
        let mut idle = lock(&self.idle);
        if !client.is_closed() && idle.len() < MAX_IDLE_CLIENTS {
            idle.push(client);
        }
    }
}

impl Store for PostgresStore {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>> {
        self.with_client(|client| {
            let cancel = QueryCancel::current();
            if let Some(cancel) = &cancel {
                let (token, connector) = (client.cancel_token(), self.connector.clone());
                cancel.set_action(Box::new(move || connector.cancel(token)));
            }
            let found = client.query(&statement.sql, &arguments(statement));
            if let Some(cancel) = &cancel {
                cancel.clear_action();
            }
            found?.iter().map(result_row).collect()
        })
    }

    fn execute(&self, statement: &Statement) -> Result<u64> {
        self.with_client(|client| Ok(client.execute(&statement.sql, &arguments(statement))?))
    }

    fn insert(
        &self,
        rows: &[EventRow],
        position: Option<&JournalPosition>,
    ) -> Result<IngestCounts> {
        self.with_client(|client| insert(client, rows, position))
    }

    fn watch(&self, wake: WakeFn) -> Result<WatchGuard> {
        let connector = self.connector.clone();
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

    fn retain_step(&self, retention: &Retention) -> Result<u64> {
        let mut statement = Statement::new(SqlDialect::Postgres, "");
        if let Some(cutoff) = retention.cutoff_us() {
            statement
                .push(
                    "DELETE FROM anyhook_events WHERE seq IN \
                     (SELECT seq FROM anyhook_events WHERE time_us < ",
                )
                .int(cutoff);
            statement.push(" ORDER BY time_us LIMIT ").int(STEP_EVENTS);
            statement.push(")");
            let deleted = self.execute(&statement)?;
            if deleted > 0 {
                return Ok(deleted);
            }
        }
        let Some(bytes) = retention.max_bytes else {
            return Ok(0);
        };
        let over = self.stored_bytes()?.saturating_sub(bytes);
        if over == 0 {
            return Ok(0);
        }
        let mut statement = Statement::new(
            SqlDialect::Postgres,
            "DELETE FROM anyhook_events WHERE seq IN (SELECT seq FROM (SELECT seq, \
             CAST(SUM(bytes) OVER (ORDER BY time_us, seq) - bytes AS BIGINT) AS older FROM \
             (SELECT seq, time_us, bytes FROM anyhook_events ORDER BY time_us, seq LIMIT ",
        );
        statement
            .int(STEP_EVENTS)
            .push(") oldest) t WHERE older < ");
        statement
            .int(i64::try_from(over).unwrap_or(i64::MAX))
            .push(")");
        self.execute(&statement)
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

fn insert(
    client: &mut Client,
    rows: &[EventRow],
    position: Option<&JournalPosition>,
) -> Result<IngestCounts> {
    let mut transaction = client.transaction()?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK_KEY])?;
    let mut done = IngestCounts::default();
    if !rows.is_empty() {
        let inserted = insert_events(&mut transaction, rows)?;
        done.new = inserted.len() as u64;
        done.duplicate = rows.len() as u64 - done.new;
        insert_runs(&mut transaction, rows, &inserted)?;
        if done.new > 0 {
            transaction.execute("SELECT pg_notify($1, '')", &[&NOTIFY_CHANNEL])?;
        }
    }
    if let Some(position) = position {
        let pos = i64::try_from(position.pos).unwrap_or(i64::MAX);
        transaction.execute(
            "INSERT INTO anyhook_files (source, file, pos) VALUES ($1, $2, $3) \
             ON CONFLICT (source, file) DO UPDATE SET pos = GREATEST(anyhook_files.pos, excluded.pos)",
            &[&position.source, &position.file, &pos],
        )?;
    }
    transaction.commit()?;
    Ok(done)
}

/// `seq` by `id` of the rows that were inserted.
fn insert_events(
    transaction: &mut Transaction<'_>,
    rows: &[EventRow],
) -> Result<HashMap<String, i64>> {
    let mut parameters = Vec::new();
    let mut arrays: Vec<Box<dyn ToSql + Sync + '_>> = Vec::new();
    for (number, (_, column)) in (1..).zip(&EVENT_COLUMNS) {
        let (sql_type, array): (_, Box<dyn ToSql + Sync + '_>) = match column {
            ColumnReader::Text(read) => ("text", Box::new(read_column(rows, read))),
            ColumnReader::Int(read) => ("bigint", Box::new(read_column(rows, read))),
            ColumnReader::Real(read) => ("float8", Box::new(read_column(rows, read))),
        };
        parameters.push(format!("${number}::{sql_type}[]"));
        arrays.push(array);
    }
    let arrays: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(|array| &**array as _).collect();
    let sql = format!(
        "INSERT INTO anyhook_events ({}) SELECT * FROM UNNEST({}) \
         ON CONFLICT (id) DO NOTHING RETURNING id, seq",
        event_column_names(),
        parameters.join(", ")
    );
    let inserted = transaction.query(&sql, &arrays)?;
    inserted
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

fn read_column<'a, T>(rows: &'a [EventRow], read: impl Fn(&'a EventRow) -> T) -> Vec<T> {
    rows.iter().map(read).collect()
}

fn insert_runs(
    transaction: &mut Transaction<'_>,
    rows: &[EventRow],
    inserted: &HashMap<String, i64>,
) -> Result<()> {
    let mut done = HashSet::new();
    let (mut seqs, mut positions, mut durations) = (Vec::new(), Vec::new(), Vec::new());
    let (mut hooks, mut contents, mut manifests, mut outcomes) =
        <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
    for row in rows {
        // A batch may contain an id twice.
        let Some(seq) = inserted
            .get(&row.summary.id)
            .filter(|seq| done.insert(**seq))
        else {
            continue;
        };
        for (pos, run) in (0_i64..).zip(&row.runs) {
            seqs.push(*seq);
            positions.push(pos);
            hooks.push(run.hook.as_str());
            contents.push(run.content.as_str());
            manifests.push(run.manifest.as_str());
            outcomes.push(run.outcome.as_str());
            durations.push(run.duration_ms);
        }
    }
    if seqs.is_empty() {
        return Ok(());
    }
    transaction.execute(
        "INSERT INTO anyhook_runs (seq, pos, hook, content, manifest, outcome, duration_ms) \
         SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[])",
        &[&seqs, &positions, &hooks, &contents, &manifests, &outcomes, &durations],
    )?;
    Ok(())
}

fn migrate(client: &mut Client) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let mut transaction = client.transaction()?;
    // A new index of a large table takes its time.
    transaction.batch_execute("SET LOCAL statement_timeout = 0")?;
    // Two daemons may start at the same moment.
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK_KEY])?;
    transaction
        .batch_execute("CREATE TABLE IF NOT EXISTS anyhook_schema (version BIGINT NOT NULL)")?;
    let found: i64 = transaction
        .query_one("SELECT COALESCE(MAX(version), 0) FROM anyhook_schema", &[])?
        .try_get(0)?;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (version, step) in (1_i64..).zip(MIGRATIONS) {
        if version > found {
            transaction.batch_execute(step)?;
            transaction.execute(
                "INSERT INTO anyhook_schema (version) VALUES ($1)",
                &[&version],
            )?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn tls() -> Result<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(StoreError::Tls(
            "this machine has no certificate store; set SSL_CERT_FILE".to_owned(),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
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
            _ => row
                .try_get::<_, Option<String>>(number)?
                .map(SqlValue::Text),
        };
        Ok(value.unwrap_or(SqlValue::Null))
    });
    Ok(ResultRow::new(values.collect::<Result<_>>()?))
}
