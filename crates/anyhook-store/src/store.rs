//! The seam: everything that a reader or writer of events can do, whatever the database.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhook_model::Record;

use crate::backend::{Backend, Mark, Wake, Watch};
use crate::error::{Result, StoreError};
use crate::query::{
    Count, Cursor, EventDetail, EventFilter, EventSummary, Ingested, Page, PageQuery, Retention,
    SessionDetail, SessionSummary, Stats,
};
use crate::row::{EventRow, rfc3339};
use crate::sql::{Cells, SUMMARY, Statement, count_if, summary};

/// Journal lines in, answers out. Calls block: an async caller uses a thread for them.
pub trait Store: Send + Sync {
    /// Takes what is not known by id; the mark moves in the same transaction.
    fn insert(&self, rows: &[EventRow], mark: Option<&Mark>) -> Result<Ingested>;

    /// How far a journal file was read; 0 when it is new.
    fn position(&self, source: &str, file: &str) -> Result<u64>;

    fn events(&self, query: &PageQuery) -> Result<Page<EventSummary>>;

    /// Events that arrived after `seq`, oldest first: the live stream, and its resumption.
    fn after(&self, seq: i64, filter: &EventFilter, limit: usize) -> Result<Vec<EventSummary>>;

    /// The highest `seq` so far; 0 when empty.
    fn last_seq(&self) -> Result<i64>;

    fn event(&self, id: &str) -> Result<Option<EventDetail>>;

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>>;

    /// The latest session of that id, of one agent when two agents use the same id.
    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>>;

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats>;

    /// Deletes what the limits no longer keep; says how many events went.
    fn retain(&self, retention: &Retention) -> Result<u64>;

    /// Calls `wake` after every commit of new events, until the watch is dropped.
    fn watch(&self, wake: Wake) -> Result<Watch>;

    /// Takes records that did not come from a local journal.
    fn ingest(&self, records: &[Record]) -> Result<Ingested> {
        let rows: Vec<_> = records.iter().filter_map(EventRow::from_record).collect();
        let mut done = self.insert(&rows, None)?;
        done.refused += (records.len() - rows.len()) as u64;
        Ok(done)
    }
}

impl<B: Backend> Store for B {
    fn insert(&self, rows: &[EventRow], mark: Option<&Mark>) -> Result<Ingested> {
        Backend::insert(self, rows, mark)
    }

    fn position(&self, source: &str, file: &str) -> Result<u64> {
        let mut statement = Statement::new(
            self.dialect(),
            "SELECT pos FROM anyhook_files WHERE source = ",
        );
        statement.text(source).push(" AND file = ").text(file);
        let pos = match self.select(&statement)?.first_mut() {
            Some(cells) => cells.int()?,
            None => 0,
        };
        Ok(u64::try_from(pos).unwrap_or_default())
    }

    fn events(&self, query: &PageQuery) -> Result<Page<EventSummary>> {
        let size = query.size();
        let mut statement = Statement::new(self.dialect(), "SELECT ");
        statement.push(SUMMARY);
        statement
            .push(" FROM anyhook_events e WHERE 1 = 1")
            .filter(&query.filter);
        if let Some(cursor) = query.cursor {
            statement.push(" AND (e.time_us < ").int(cursor.time_us);
            statement.push(" OR (e.time_us = ").int(cursor.time_us);
            statement.push(" AND e.seq < ").int(cursor.seq).push("))");
        }
        statement.push(" ORDER BY e.time_us DESC, e.seq DESC LIMIT ");
        statement.int(limit_of(size + 1));
        let found = self
            .select(&statement)?
            .iter_mut()
            .map(summary)
            .collect::<Result<Vec<_>>>()?;
        Ok(page(found, size, |(item, time_us)| {
            let cursor = Cursor {
                time_us: *time_us,
                seq: item.seq,
            };
            (cursor, item.clone())
        }))
    }

    fn after(&self, seq: i64, filter: &EventFilter, limit: usize) -> Result<Vec<EventSummary>> {
        let mut statement = Statement::new(self.dialect(), "SELECT ");
        statement.push(SUMMARY);
        statement
            .push(" FROM anyhook_events e WHERE e.seq > ")
            .int(seq);
        statement.filter(filter);
        statement
            .push(" ORDER BY e.seq LIMIT ")
            .int(limit_of(limit));
        self.select(&statement)?
            .iter_mut()
            .map(|cells| summary(cells).map(|(item, _)| item))
            .collect()
    }

    fn last_seq(&self) -> Result<i64> {
        let statement = Statement::new(
            self.dialect(),
            "SELECT COALESCE(MAX(seq), 0) FROM anyhook_events",
        );
        match self.select(&statement)?.first_mut() {
            Some(cells) => cells.int(),
            None => Ok(0),
        }
    }

    fn event(&self, id: &str) -> Result<Option<EventDetail>> {
        let mut statement = Statement::new(self.dialect(), "SELECT ");
        statement.push(SUMMARY);
        statement
            .push(", e.body FROM anyhook_events e WHERE e.id = ")
            .text(id);
        let mut rows = self.select(&statement)?;
        let Some(cells) = rows.first_mut() else {
            return Ok(None);
        };
        let (summary, _) = summary(cells)?;
        let record = serde_json::from_str(&cells.text()?)
            .map_err(|_| StoreError::Shape("a record as JSON"))?;
        Ok(Some(EventDetail { summary, record }))
    }

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>> {
        let size = query.size();
        let mut statement = session_statement(self.dialect());
        statement.filter(&query.filter);
        statement.push(" GROUP BY e.agent, e.session_id");
        if let Some(cursor) = query.cursor {
            statement
                .push(" HAVING (MAX(e.time_us) < ")
                .int(cursor.time_us);
            statement.push(" OR (MAX(e.time_us) = ").int(cursor.time_us);
            statement
                .push(" AND MAX(e.seq) < ")
                .int(cursor.seq)
                .push("))");
        }
        statement.push(" ORDER BY MAX(e.time_us) DESC, MAX(e.seq) DESC LIMIT ");
        statement.int(limit_of(size + 1));
        let found = self
            .select(&statement)?
            .iter_mut()
            .map(session_summary)
            .collect::<Result<Vec<_>>>()?;
        Ok(page(found, size, |(item, cursor)| (*cursor, item.clone())))
    }

    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>> {
        let mut filter = EventFilter {
            session: Some(id.to_owned()),
            agent: agent.map(str::to_owned),
            ..EventFilter::default()
        };
        let query = PageQuery {
            filter: filter.clone(),
            cursor: None,
            limit: 1,
        };
        let Some(summary) = self.sessions(&query)?.items.pop() else {
            return Ok(None);
        };
        filter.agent = Some(summary.agent.clone());
        Ok(Some(SessionDetail {
            by_tool: counts(self, "tool", &filter)?,
            by_event: counts(self, "event", &filter)?,
            summary,
        }))
    }

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats> {
        crate::stats::collect(self, filter, buckets)
    }

    fn retain(&self, retention: &Retention) -> Result<u64> {
        let mut gone = 0;
        if let Some(age) = retention.max_age_s {
            let age_us = i64::try_from(age)
                .unwrap_or(i64::MAX)
                .saturating_mul(1_000_000);
            let mut statement = Statement::new(
                self.dialect(),
                "DELETE FROM anyhook_events WHERE time_us < ",
            );
            statement.int(now_us().saturating_sub(age_us));
            gone += self.execute(&statement)?;
        }
        if let Some(bytes) = retention.max_bytes {
            let mut statement = Statement::new(
                self.dialect(),
                "DELETE FROM anyhook_events WHERE seq IN (SELECT seq FROM (SELECT seq, \
                 CAST(SUM(bytes) OVER (ORDER BY time_us DESC, seq DESC) AS BIGINT) AS weight \
                 FROM anyhook_events) t WHERE weight > ",
            );
            statement
                .int(i64::try_from(bytes).unwrap_or(i64::MAX))
                .push(")");
            gone += self.execute(&statement)?;
        }
        if gone > 0 {
            self.shrink()?;
        }
        Ok(gone)
    }

    fn watch(&self, wake: Wake) -> Result<Watch> {
        Backend::watch(self, wake)
    }
}

/// How many events of each value of `column`, most first.
pub(crate) fn counts<B: Backend + ?Sized>(
    backend: &B,
    column: &'static str,
    filter: &EventFilter,
) -> Result<Vec<Count>> {
    let mut statement = Statement::new(backend.dialect(), "SELECT e.");
    statement.push(column).push(", COUNT(*), ");
    statement.push(&count_if("e.decision = 'deny'"));
    statement
        .push(" FROM anyhook_events e WHERE e.")
        .push(column)
        .push(" IS NOT NULL");
    statement.filter(filter);
    statement.push(" GROUP BY e.").push(column);
    statement
        .push(" ORDER BY COUNT(*) DESC, e.")
        .push(column)
        .push(" LIMIT 100");
    backend
        .select(&statement)?
        .iter_mut()
        .map(|cells| {
            Ok(Count {
                name: cells.text()?,
                count: cells.int()?,
                denials: cells.int()?,
            })
        })
        .collect()
}

fn session_statement(dialect: crate::sql::Dialect) -> Statement {
    let mut statement = Statement::new(
        dialect,
        "SELECT e.session_id, e.agent, MIN(e.time_us), MAX(e.time_us), MAX(e.seq), COUNT(*), ",
    );
    for condition in [
        "e.type = 'BEFORE_TOOL'",
        "e.decision = 'deny'",
        "e.decision = 'ask'",
    ] {
        statement.push(&count_if(condition)).push(", ");
    }
    statement
        .push("MAX(e.cwd), MAX(e.machine) FROM anyhook_events e WHERE e.session_id IS NOT NULL");
    statement
}

fn session_summary(cells: &mut Cells) -> Result<(SessionSummary, Cursor)> {
    let session_id = cells.text()?;
    let agent = cells.text()?;
    let first = cells.int()?;
    let cursor = Cursor {
        time_us: cells.int()?,
        seq: cells.int()?,
    };
    let summary = SessionSummary {
        session_id,
        agent,
        first: rfc3339(first),
        last: rfc3339(cursor.time_us),
        events: cells.int()?,
        tools: cells.int()?,
        denials: cells.int()?,
        asks: cells.int()?,
        cwd: cells.optional()?,
        machine: cells.optional()?,
    };
    Ok((summary, cursor))
}

fn page<T, U>(found: Vec<U>, size: usize, split: impl Fn(&U) -> (Cursor, T)) -> Page<T> {
    let more = found.len() > size;
    let (cursors, items): (Vec<_>, Vec<_>) = found.iter().take(size).map(split).unzip();
    Page {
        items,
        next: cursors
            .last()
            .filter(|_| more)
            .map(std::string::ToString::to_string),
    }
}

fn limit_of(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|age| i64::try_from(age.as_micros()).ok())
        .unwrap_or_default()
}

/// A store by its address: `postgres://…`, or the path of a SQLite file.
pub fn open(address: &str) -> Result<std::sync::Arc<dyn Store>> {
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        let config = postgres::Config::from_str(address)
            .map_err(|_| StoreError::Address(without_password(address)))?;
        return Ok(std::sync::Arc::new(crate::postgres::PostgresStore::open(
            config,
        )?));
    }
    let path = address.strip_prefix("sqlite://").unwrap_or(address);
    if path.is_empty() || path.contains("://") {
        return Err(StoreError::Address(without_password(address)));
    }
    Ok(std::sync::Arc::new(crate::sqlite::SqliteStore::open(
        std::path::Path::new(path),
    )?))
}

fn without_password(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => address.to_owned(),
    }
}
