//! SQL statements that work in both databases.
//!
//! Owns the columns, the statement builder and the reading of result rows. Opens
//! no connection: a [`Store`](crate::Store) runs what is built here.

use rusqlite::types::Value as SqlValue;

use crate::error::{Result, StoreError};
use crate::query::EventFilter;
use crate::row::{EventRow, saturating_i64};

/// The few words in which the two databases differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlDialect {
    Sqlite,
    Postgres,
}

/// How the value of a column is taken from a row.
pub(crate) enum ColumnReader {
    Text(fn(&EventRow) -> Option<&str>),
    Int(fn(&EventRow) -> i64),
    Real(fn(&EventRow) -> f64),
}
use ColumnReader::{Int, Real, Text};

/// Every column of `anyhook_events` but `seq`.
pub(crate) const EVENT_COLUMNS: [(&str, ColumnReader); 22] = [
    ("id", Text(|row| Some(&row.summary.id))),
    ("time_us", Int(|row| row.summary.time_us)),
    ("kind", Text(|row| Some(&row.summary.kind))),
    ("agent", Text(|row| Some(&row.summary.agent))),
    ("event", Text(|row| Some(&row.summary.event))),
    ("type", Text(|row| Some(&row.summary.unified))),
    (
        "native_event",
        Text(|row| row.summary.native_event.as_deref()),
    ),
    ("session_id", Text(|row| row.summary.session_id.as_deref())),
    ("machine", Text(|row| row.summary.machine.as_deref())),
    ("user_id", Text(|row| row.summary.user_id.as_deref())),
    ("project_id", Text(|row| row.summary.project_id.as_deref())),
    (
        "workflow_id",
        Text(|row| row.summary.workflow_id.as_deref()),
    ),
    ("cwd", Text(|row| row.summary.cwd.as_deref())),
    ("tool", Text(|row| row.summary.tool.as_deref())),
    ("detail", Text(|row| row.summary.detail.as_deref())),
    ("decision", Text(|row| row.summary.decision.as_deref())),
    ("reason", Text(|row| row.summary.reason.as_deref())),
    ("duration_ms", Real(|row| row.summary.duration_ms)),
    ("hooks", Int(|row| row.summary.hooks)),
    ("bytes", Int(EventRow::bytes)),
    ("text", Text(|row| Some(&row.text))),
    ("body", Text(|row| Some(&row.body))),
];

/// The names of [`EVENT_COLUMNS`], with a comma between them.
pub(crate) fn event_column_names() -> String {
    EVENT_COLUMNS.map(|(name, _)| name).join(", ")
}

/// One result row, read from left to right.
#[derive(Debug)]
pub struct ResultRow(std::vec::IntoIter<SqlValue>);

impl ResultRow {
    pub fn new(values: Vec<SqlValue>) -> Self {
        Self(values.into_iter())
    }

    pub fn int(&mut self) -> Result<i64> {
        match self.0.next() {
            Some(SqlValue::Integer(number)) => Ok(number),
            Some(SqlValue::Null) => Ok(0),
            _ => Err(StoreError::Shape("an integer")),
        }
    }

    pub fn real(&mut self) -> Result<f64> {
        match self.0.next() {
            Some(SqlValue::Real(number)) => Ok(number),
            Some(SqlValue::Null) => Ok(0.0),
            _ => Err(StoreError::Shape("a number")),
        }
    }

    pub fn text(&mut self) -> Result<String> {
        self.optional()?.ok_or(StoreError::Shape("a text"))
    }

    pub fn optional(&mut self) -> Result<Option<String>> {
        match self.0.next() {
            Some(SqlValue::Text(text)) => Ok(Some(text)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(StoreError::Shape("a text")),
        }
    }
}

/// A statement that grows together with its arguments.
#[derive(Debug, Clone)]
pub struct Statement {
    dialect: SqlDialect,
    pub sql: String,
    pub args: Vec<SqlValue>,
}

impl Statement {
    pub fn new(dialect: SqlDialect, sql: impl Into<String>) -> Self {
        Self {
            dialect,
            sql: sql.into(),
            args: Vec::new(),
        }
    }

    pub fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    fn bind(&mut self, value: SqlValue) -> &mut Self {
        self.args.push(value);
        // Both databases count `$1`, `$2` … from left to right.
        let placeholder = format!("${}", self.args.len());
        self.push(&placeholder)
    }

    pub fn int(&mut self, number: i64) -> &mut Self {
        self.bind(SqlValue::Integer(number))
    }

    /// A number of rows.
    pub fn size(&mut self, size: usize) -> &mut Self {
        self.int(saturating_i64(size))
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bind(SqlValue::Text(text.replace('\0', "\u{fffd}")))
    }

    /// Appends ` AND …` for every field of the filter, on columns of `anyhook_events e`.
    pub fn filter(&mut self, filter: &EventFilter) -> &mut Self {
        for (column, value) in [
            ("agent", &filter.agent),
            ("session_id", &filter.session),
            ("tool", &filter.tool),
            ("machine", &filter.machine),
            ("user_id", &filter.user_id),
            ("project_id", &filter.project_id),
            ("workflow_id", &filter.workflow_id),
        ] {
            if let Some(value) = value {
                self.push(&format!(" AND e.{column} = ")).text(value);
            }
        }
        if let Some(event) = &filter.event {
            self.push(" AND (e.event = ").text(event);
            self.push(" OR e.type = ").text(event);
            self.push(" OR e.native_event = ").text(event).push(")");
        }
        match filter.decision.as_deref() {
            Some("none") => self.push(" AND e.decision IS NULL"),
            Some(decision) => self.push(" AND e.decision = ").text(decision),
            None => self,
        };
        if let Some(since) = filter.since_us {
            self.push(" AND e.time_us >= ").int(since);
        }
        if let Some(until) = filter.until_us {
            self.push(" AND e.time_us < ").int(until);
        }
        if let Some(text) = filter.search_text() {
            let position = match self.dialect {
                SqlDialect::Sqlite => "instr",
                SqlDialect::Postgres => "strpos",
            };
            self.push(&format!(" AND {position}(e.text, "));
            self.text(&text).push(") > 0");
        }
        self
    }
}

/// Counts rows for which `condition` holds, as a 64-bit number in both databases.
pub(crate) fn count_if(condition: &str) -> String {
    format!("CAST(COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT)")
}

/// Nearest-rank percentiles of rows numbered `rn` of `n` by `duration_ms`.
pub(crate) const LATENCY_COLUMNS: &str = "MAX(CASE WHEN rn = (n * 50 + 99) / 100 THEN duration_ms END), \
     MAX(CASE WHEN rn = (n * 95 + 99) / 100 THEN duration_ms END), \
     MAX(CASE WHEN rn = (n * 99 + 99) / 100 THEN duration_ms END), \
     MAX(duration_ms)";
