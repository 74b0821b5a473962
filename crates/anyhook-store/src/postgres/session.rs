//! Connections to PostgreSQL with the statements that they have prepared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhook_util::sync::lock;
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{CancelToken, Client, Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::cancel::QueryCancel;
use crate::error::{Result, StoreError};

const MAX_IDLE_SESSIONS: usize = 8;
const MAX_PREPARED_STATEMENTS: usize = 1000;
/// Times that a query begins again because a partition was dropped while it ran.
const MAX_READ_ATTEMPTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// An address with `options` of its own sets its own limit. Every statement here has an
/// index that fits it, and its plan does not depend on its arguments.
const SESSION_OPTIONS: &str = "-c statement_timeout=120s -c plan_cache_mode=force_generic_plan \
                               -c enable_seqscan=off -c jit=off";

pub(crate) type Arguments<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// `sslmode=require` means TLS with a certificate that this machine trusts; any other
    /// mode means none.
    pub(crate) fn new(mut config: Config) -> Result<Self> {
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("anyhook");
        }
        let options = match config.get_options() {
            // The last value counts.
            Some(own) => format!("{SESSION_OPTIONS} {own}"),
            None => SESSION_OPTIONS.to_owned(),
        };
        config.options(&options);
        let tls = match config.get_ssl_mode() {
            SslMode::Disable | SslMode::Prefer => None,
            _ => Some(tls()?),
        };
        Ok(Self { config, tls })
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        Ok(match &self.tls {
            Some(tls) => self.config.connect(tls.clone())?,
            None => self.config.connect(NoTls)?,
        })
    }

    /// Ends a running statement. Needs a connection of its own, so no caller waits for it.
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

/// One connection.
pub(crate) struct Session {
    pub client: Client,
    prepared: HashMap<String, postgres::Statement>,
}

impl Session {
    fn prepare(&mut self, sql: &str) -> Result<postgres::Statement> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        if self.prepared.len() >= MAX_PREPARED_STATEMENTS {
            self.prepared.clear();
        }
        let statement = self.client.prepare(sql)?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(&mut self, sql: &str, arguments: Arguments<'_>) -> Result<Vec<Row>> {
        // A request to cancel that comes between two statements ends neither.
        if QueryCancel::is_current_cancelled() {
            return Err(StoreError::Cancelled);
        }
        let statement = self.prepare(sql)?;
        Ok(self.client.query(&statement, arguments)?)
    }

    pub(crate) fn execute(&mut self, sql: &str, arguments: Arguments<'_>) -> Result<u64> {
        let statement = self.prepare(sql)?;
        Ok(self.client.execute(&statement, arguments)?)
    }

    /// The first column of the only row; `None` without a row.
    pub(crate) fn query_int(&mut self, sql: &str, arguments: Arguments<'_>) -> Result<Option<i64>> {
        let rows = self.query(sql, arguments)?;
        match rows.first() {
            Some(row) => Ok(row.try_get(0)?),
            None => Ok(None),
        }
    }

    /// Runs `work` between `begin` and `COMMIT`.
    fn transaction<T>(
        &mut self,
        begin: &str,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.client.batch_execute(begin)?;
        match work(self) {
            Ok(done) => {
                self.client.batch_execute("COMMIT")?;
                Ok(done)
            }
            Err(error) => {
                // A connection that is closed has rolled back.
                let _ = self.client.batch_execute("ROLLBACK");
                Err(error)
            }
        }
    }
}

pub(crate) struct Sessions {
    pub connector: Arc<Connector>,
    idle: Mutex<Vec<Session>>,
}

impl Sessions {
    pub(crate) fn new(connector: Connector) -> Self {
        Self {
            connector: Arc::new(connector),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Runs `work`, a second time on a new connection if the server closed the first one:
    /// `work` must be safe to repeat.
    pub(crate) fn with_session<T>(
        &self,
        mut work: impl FnMut(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let idle = lock(&self.idle).pop();
        if let Some(mut session) = idle {
            let done = work(&mut session);
            let is_closed = session.client.is_closed();
            self.put_back(session);
            if done.is_ok() || !is_closed {
                return done;
            }
            lock(&self.idle).clear();
        }
        let mut session = Session {
            client: self.connector.connect()?,
            prepared: HashMap::new(),
        };
        let done = work(&mut session);
        self.put_back(session);
        done
    }

    fn put_back(&self, session: Session) {
        let mut idle = lock(&self.idle);
        if !session.client.is_closed() && idle.len() < MAX_IDLE_SESSIONS {
            idle.push(session);
        }
    }

    /// Runs a query that sees the database at one moment and ends when it is cancelled.
    pub(crate) fn read_transaction<T>(
        &self,
        mut query: impl FnMut(&mut Session) -> Result<T>,
    ) -> Result<T> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        let mut attempts = 1;
        loop {
            let done = self.with_session(|session| {
                let cancel = QueryCancel::current();
                if let Some(cancel) = &cancel {
                    let (token, connector) = (session.client.cancel_token(), &self.connector);
                    let connector = connector.clone();
                    cancel.set_action(Box::new(move || connector.cancel(token)));
                }
                let done = session.transaction(BEGIN, &mut query);
                if let Some(cancel) = &cancel {
                    cancel.clear_action();
                }
                done
            });
            match done {
                Err(StoreError::Postgres(error))
                    if attempts < MAX_READ_ATTEMPTS && is_dropped_partition(&error) =>
                {
                    attempts += 1;
                }
                done => return done,
            }
        }
    }

    /// Runs a transaction beside those that write events. One that waits too long for a lock
    /// is given up: `None`.
    pub(crate) fn side_transaction<T>(
        &self,
        mut work: impl FnMut(&mut Session) -> Result<T>,
    ) -> Result<Option<T>> {
        let done = self.with_session(|session| session.transaction("BEGIN", &mut work));
        match done {
            Err(StoreError::Postgres(error))
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) =>
            {
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Runs a transaction while no other process writes.
    ///
    /// Writers take an advisory lock for the length of a transaction, so that `seq` becomes
    /// visible in order: a stream that has read up to 10 never misses a 9 that was committed
    /// later.
    pub(crate) fn write_transaction<T>(
        &self,
        mut work: impl FnMut(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.with_session(|session| {
            session.transaction("BEGIN", |session| {
                lock_writers(session)?;
                work(session)
            })
        })
    }
}

/// The key of an advisory lock: "anyhook" in ASCII.
const WRITER_LOCK_KEY: i64 = 0x0061_6e79_686f_6f6b;

fn lock_writers(session: &mut Session) -> Result<()> {
    session.query("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK_KEY])?;
    Ok(())
}

/// Retention may drop a partition after a query has read the list of them.
fn is_dropped_partition(error: &postgres::Error) -> bool {
    let codes = [
        SqlState::UNDEFINED_TABLE,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ];
    error.code().is_some_and(|code| codes.contains(code))
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
