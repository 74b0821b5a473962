//! The shared store: several daemons, one PostgreSQL database.
//!
//! Writers take an advisory lock for the length of a transaction, so that `seq`
//! becomes visible in order: a stream that has read up to 10 never misses a 9
//! that was committed later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postgres::config::SslMode;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::backend::{Backend, Mark, Wake, Watch};
use crate::error::{Result, StoreError};
use crate::query::Ingested;
use crate::row::EventRow;
use crate::sql::{Arg, Cell, Cells, Dialect, Statement};

const MIGRATIONS: [&str; 1] = [include_str!("../migrations/postgres/001.sql")];
const CHANNEL: &str = "anyhook_events";
/// Any constant will do; this one spells "anyhook".
const WRITER_LOCK: i64 = 0x0061_6e79_686f_6f6b;
const IDLE_CLIENTS: usize = 8;
const CONNECT: Duration = Duration::from_secs(10);

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

impl PostgresStore {
    /// Connects and brings the schema up to date. `sslmode=require` means TLS with
    /// a certificate that this machine trusts; any other mode means none.
    pub fn open(mut config: Config) -> Result<Self> {
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("anyhook");
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

    /// Everything that is done through here may be done twice: when the server went
    /// away in the middle, a second connection tries once more.
    fn with_client<T>(&self, mut work: impl FnMut(&mut Client) -> Result<T>) -> Result<T> {
        let idle = self.clients().pop();
        if let Some(mut client) = idle {
            let done = work(&mut client);
            if !client.is_closed() {
                self.give_back(client);
                return done;
            }
            if done.is_ok() {
                return done;
            }
            self.clients().clear();
        }
        let mut client = self.connector.connect()?;
        let done = work(&mut client);
        if !client.is_closed() {
            self.give_back(client);
        }
        done
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, client: Client) {
        let mut idle = self.clients();
        if idle.len() < IDLE_CLIENTS {
            idle.push(client);
        }
    }
}

impl Backend for PostgresStore {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn select(&self, statement: &Statement) -> Result<Vec<Cells>> {
        self.with_client(|client| {
            client
                .query(&statement.sql, &arguments(statement))?
                .iter()
                .map(cells)
                .collect()
        })
    }

    fn execute(&self, statement: &Statement) -> Result<u64> {
        self.with_client(|client| Ok(client.execute(&statement.sql, &arguments(statement))?))
    }

    fn insert(&self, rows: &[EventRow], mark: Option<&Mark>) -> Result<Ingested> {
        self.with_client(|client| insert(client, rows, mark))
    }

    fn watch(&self, wake: Wake) -> Result<Watch> {
        let connector = self.connector.clone();
        let mut client = listen(&connector)?;
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        std::thread::Builder::new()
            .name("anyhook-listen".to_owned())
            .spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if hear(&mut client, &wake, &over).is_ok() {
                        continue;
                    }
                    std::thread::sleep(Duration::from_secs(1));
                    if let Ok(again) = listen(&connector) {
                        client = again;
                        // Whatever was said in between was not heard.
                        wake();
                    }
                }
            })
            .map_err(|_| StoreError::Shape("a thread to listen in"))?;
        Ok(Watch(Box::new(move || stop.store(true, Ordering::Relaxed))))
    }

    fn shrink(&self) -> Result<()> {
        // Autovacuum makes the space usable again.
        Ok(())
    }
}

fn listen(connector: &Connector) -> Result<Client> {
    let mut client = connector.connect()?;
    client.batch_execute(&format!("LISTEN {CHANNEL}"))?;
    Ok(client)
}

fn hear(client: &mut Client, wake: &Wake, over: &AtomicBool) -> Result<()> {
    {
        let mut notifications = client.notifications();
        let mut waiting = notifications.timeout_iter(Duration::from_millis(500));
        while waiting.next()?.is_some() {
            wake();
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
    if client.is_closed() {
        return Err(StoreError::Shape("an open connection"));
    }
    Ok(())
}

fn insert(client: &mut Client, rows: &[EventRow], mark: Option<&Mark>) -> Result<Ingested> {
    let mut transaction = client.transaction()?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK])?;
    let mut done = Ingested::default();
    if !rows.is_empty() {
        let fresh = insert_events(&mut transaction, rows)?;
        done.new = fresh.len() as u64;
        done.duplicate = rows.len() as u64 - done.new;
        insert_runs(&mut transaction, rows, &fresh)?;
        if done.new > 0 {
            transaction.execute("SELECT pg_notify($1, '')", &[&CHANNEL])?;
        }
    }
    if let Some(mark) = mark {
        let pos = i64::try_from(mark.pos).unwrap_or(i64::MAX);
        transaction.execute(
            "INSERT INTO anyhook_files (source, file, pos) VALUES ($1, $2, $3) \
             ON CONFLICT (source, file) DO UPDATE SET pos = GREATEST(anyhook_files.pos, excluded.pos)",
            &[&mark.source, &mark.file, &pos],
        )?;
    }
    transaction.commit()?;
    Ok(done)
}

/// `seq` by `id` of the rows that were not known.
fn insert_events(
    transaction: &mut postgres::Transaction<'_>,
    rows: &[EventRow],
) -> Result<std::collections::HashMap<String, i64>> {
    type Texts<'a> = Vec<Option<&'a str>>;
    let texts = |part: fn(&EventRow) -> &str| -> Texts<'_> {
        rows.iter().map(|row| Some(part(row))).collect()
    };
    let optional = |part: fn(&EventRow) -> &Option<String>| -> Texts<'_> {
        rows.iter().map(|row| part(row).as_deref()).collect()
    };
    let ints =
        |part: fn(&EventRow) -> i64| -> Vec<i64> { rows.iter().map(part).collect::<Vec<_>>() };
    let durations: Vec<f64> = rows.iter().map(|row| row.duration_ms).collect();
    let found = transaction.query(
        "INSERT INTO anyhook_events (id, time_us, kind, agent, event, type, native_event, session_id, \
         machine, cwd, tool, detail, decision, reason, duration_ms, hooks, bytes, text, body) \
         SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], \
         $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], \
         $15::float8[], $16::bigint[], $17::bigint[], $18::text[], $19::text[]) \
         ON CONFLICT (id) DO NOTHING RETURNING id, seq",
        &[
            &texts(|row| &row.id),
            &ints(|row| row.time_us),
            &texts(|row| &row.kind),
            &texts(|row| &row.agent),
            &texts(|row| &row.event),
            &texts(|row| &row.unified),
            &optional(|row| &row.native_event),
            &optional(|row| &row.session_id),
            &optional(|row| &row.machine),
            &optional(|row| &row.cwd),
            &optional(|row| &row.tool),
            &optional(|row| &row.detail),
            &optional(|row| &row.decision),
            &optional(|row| &row.reason),
            &durations,
            &ints(|row| i64::try_from(row.runs.len()).unwrap_or(i64::MAX)),
            &ints(EventRow::bytes),
            &texts(|row| &row.text),
            &texts(|row| &row.body),
        ],
    )?;
    found
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

fn insert_runs(
    transaction: &mut postgres::Transaction<'_>,
    rows: &[EventRow],
    fresh: &std::collections::HashMap<String, i64>,
) -> Result<()> {
    let mut taken = std::collections::HashSet::new();
    let (mut seqs, mut places, mut durations) = (Vec::new(), Vec::new(), Vec::new());
    let (mut hooks, mut manifests, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        // One id may stand twice in a batch.
        let Some(seq) = fresh.get(&row.id).filter(|seq| taken.insert(**seq)) else {
            continue;
        };
        for (pos, run) in (0_i64..).zip(&row.runs) {
            seqs.push(*seq);
            places.push(pos);
            hooks.push(run.hook.as_str());
            manifests.push(run.manifest.as_str());
            outcomes.push(run.outcome.as_str());
            durations.push(run.duration_ms);
        }
    }
    if seqs.is_empty() {
        return Ok(());
    }
    transaction.execute(
        "INSERT INTO anyhook_runs (seq, pos, hook, manifest, outcome, duration_ms) \
         SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::float8[])",
        &[&seqs, &places, &hooks, &manifests, &outcomes, &durations],
    )?;
    Ok(())
}

fn migrate(client: &mut Client) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let mut transaction = client.transaction()?;
    // Two daemons may start at the same moment.
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK])?;
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
        .map(|arg| match arg {
            Arg::Int(number) => number as &(dyn ToSql + Sync),
            Arg::Text(text) => text,
        })
        .collect()
}

fn cells(row: &Row) -> Result<Cells> {
    let cells = row
        .columns()
        .iter()
        .enumerate()
        .map(|(number, column)| {
            let cell = match *column.type_() {
                Type::INT8 => row.try_get::<_, Option<i64>>(number)?.map(Cell::Int),
                Type::INT4 => row
                    .try_get::<_, Option<i32>>(number)?
                    .map(|value| Cell::Int(i64::from(value))),
                Type::FLOAT8 => row.try_get::<_, Option<f64>>(number)?.map(Cell::Real),
                _ => row.try_get::<_, Option<String>>(number)?.map(Cell::Text),
            };
            Ok(cell.unwrap_or(Cell::Null))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Cells::new(cells))
}
