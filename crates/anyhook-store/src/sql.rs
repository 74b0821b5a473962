//! The questions as SQL, written once for both databases.
//!
//! Owns the statements and the way from cells to answers. Opens no connection:
//! a [`Backend`](crate::backend::Backend) runs what is built here.

use crate::error::{Result, StoreError};
use crate::query::{EventFilter, EventSummary};
use crate::row::{fold, rfc3339};

/// The few words in which the two databases differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    fn placeholder(self, number: usize) -> String {
        match self {
            Self::Sqlite => format!("?{number}"),
            Self::Postgres => format!("${number}"),
        }
    }

    fn position(self) -> &'static str {
        match self {
            Self::Sqlite => "instr",
            Self::Postgres => "strpos",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    Int(i64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

/// One answered row, taken from left to right.
#[derive(Debug)]
pub struct Cells(std::vec::IntoIter<Cell>);

impl Cells {
    pub fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    pub fn int(&mut self) -> Result<i64> {
        match self.0.next() {
            Some(Cell::Int(number)) => Ok(number),
            Some(Cell::Null) => Ok(0),
            _ => Err(StoreError::Shape("a whole number")),
        }
    }

    pub fn real(&mut self) -> Result<f64> {
        match self.0.next() {
            Some(Cell::Real(number)) => Ok(number),
            Some(Cell::Null) => Ok(0.0),
            _ => Err(StoreError::Shape("a number")),
        }
    }

    pub fn text(&mut self) -> Result<String> {
        self.optional()?.ok_or(StoreError::Shape("a text"))
    }

    pub fn optional(&mut self) -> Result<Option<String>> {
        match self.0.next() {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Null) => Ok(None),
            _ => Err(StoreError::Shape("a text")),
        }
    }
}

/// A statement that grows together with its arguments.
#[derive(Debug, Clone)]
pub struct Statement {
    dialect: Dialect,
    pub sql: String,
    pub args: Vec<Arg>,
}

impl Statement {
    pub fn new(dialect: Dialect, sql: &str) -> Self {
        Self {
            dialect,
            sql: sql.to_owned(),
            args: Vec::new(),
        }
    }

    pub fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    pub fn bind(&mut self, arg: Arg) -> &mut Self {
        self.args.push(arg);
        let placeholder = self.dialect.placeholder(self.args.len());
        self.push(&placeholder)
    }

    pub fn int(&mut self, number: i64) -> &mut Self {
        self.bind(Arg::Int(number))
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bind(Arg::Text(text.replace('\0', "\u{fffd}")))
    }

    /// Appends ` AND …` for every field of the filter, on columns of `anyhook_events e`.
    pub fn filter(&mut self, filter: &EventFilter) -> &mut Self {
        for (column, value) in [
            ("agent", &filter.agent),
            ("session_id", &filter.session),
            ("tool", &filter.tool),
            ("machine", &filter.machine),
        ] {
            if let Some(value) = value {
                self.push(" AND e.").push(column).push(" = ").text(value);
            }
        }
        if let Some(event) = &filter.event {
            self.push(" AND (e.event = ").text(event);
            self.push(" OR e.type = ").text(event);
            self.push(" OR e.native_event = ").text(event).push(")");
        }
        match filter.decision.as_deref() {
            Some("none") => {
                self.push(" AND e.decision IS NULL");
            }
            Some(decision) => {
                self.push(" AND e.decision = ").text(decision);
            }
            None => {}
        }
        if let Some(since) = filter.since_us {
            self.push(" AND e.time_us >= ").int(since);
        }
        if let Some(until) = filter.until_us {
            self.push(" AND e.time_us < ").int(until);
        }
        if let Some(text) = filter.text.as_deref().filter(|text| !text.is_empty()) {
            let position = self.dialect.position();
            self.push(" AND ").push(position).push("(e.text, ");
            self.text(&fold(text)).push(") > 0");
        }
        self
    }
}

pub const SUMMARY: &str = "e.seq, e.id, e.time_us, e.kind, e.agent, e.event, e.type, e.native_event, \
     e.session_id, e.machine, e.cwd, e.tool, e.detail, e.decision, e.reason, e.duration_ms, e.hooks";

/// A summary, and the time it sorts by.
pub fn summary(cells: &mut Cells) -> Result<(EventSummary, i64)> {
    let seq = cells.int()?;
    let id = cells.text()?;
    let time_us = cells.int()?;
    let summary = EventSummary {
        seq,
        id,
        time: rfc3339(time_us),
        kind: cells.text()?,
        agent: cells.text()?,
        event: cells.text()?,
        unified: cells.text()?,
        native_event: cells.optional()?,
        session_id: cells.optional()?,
        machine: cells.optional()?,
        cwd: cells.optional()?,
        tool: cells.optional()?,
        detail: cells.optional()?,
        decision: cells.optional()?,
        reason: cells.optional()?,
        duration_ms: cells.real()?,
        hooks: cells.int()?,
    };
    Ok((summary, time_us))
}

/// Counts rows for which `condition` holds, as a 64-bit number in both databases.
pub fn count_if(condition: &str) -> String {
    format!("CAST(COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT)")
}

/// Nearest-rank percentiles of rows numbered `rn` of `n` by `duration_ms`.
pub const LATENCY: &str = "MAX(CASE WHEN rn = (n * 50 + 99) / 100 THEN duration_ms END), \
     MAX(CASE WHEN rn = (n * 95 + 99) / 100 THEN duration_ms END), \
     MAX(CASE WHEN rn = (n * 99 + 99) / 100 THEN duration_ms END), \
     MAX(duration_ms)";
