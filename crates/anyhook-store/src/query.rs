//! What can be asked of the store, and what it answers.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Result, StoreError};
use crate::row::{EventRow, fold};

pub const PAGE_DEFAULT: usize = 100;
pub const PAGE_MAX: usize = 1000;

/// Which events. Absent fields do not narrow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventFilter {
    pub agent: Option<String>,
    pub session: Option<String>,
    /// Canonical, unified or native name.
    pub event: Option<String>,
    /// `allow`, `ask`, `deny`, or `none` for events that nobody decided.
    pub decision: Option<String>,
    pub tool: Option<String>,
    pub machine: Option<String>,
    /// Microseconds of the epoch, included.
    pub since_us: Option<i64>,
    /// Microseconds of the epoch, not included.
    pub until_us: Option<i64>,
    /// Found anywhere in the event, whatever its case.
    pub text: Option<String>,
}

impl EventFilter {
    /// What the databases are asked in SQL.
    pub fn matches(&self, row: &EventRow) -> bool {
        let is = |wanted: &Option<String>, has: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| has == Some(wanted))
        };
        let named = self.event.as_deref().is_none_or(|event| {
            row.event == event || row.unified == event || row.native_event.as_deref() == Some(event)
        });
        let decided = match self.decision.as_deref() {
            Some("none") => row.decision.is_none(),
            Some(decision) => row.decision.as_deref() == Some(decision),
            None => true,
        };
        named
            && decided
            && is(&self.agent, Some(&row.agent))
            && is(&self.session, row.session_id.as_deref())
            && is(&self.tool, row.tool.as_deref())
            && is(&self.machine, row.machine.as_deref())
            && self.since_us.is_none_or(|since| row.time_us >= since)
            && self.until_us.is_none_or(|until| row.time_us < until)
            && self
                .text
                .as_deref()
                .is_none_or(|text| row.text.contains(&fold(text)))
    }
}

/// A page of something, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageQuery {
    pub filter: EventFilter,
    pub cursor: Option<Cursor>,
    /// 0 means [`PAGE_DEFAULT`]; never more than [`PAGE_MAX`].
    pub limit: usize,
}

impl PageQuery {
    pub(crate) fn size(&self) -> usize {
        match self.limit {
            0 => PAGE_DEFAULT,
            limit => limit.min(PAGE_MAX),
        }
    }
}

/// Where the next page begins. Opaque to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) time_us: i64,
    pub(crate) seq: i64,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.time_us, self.seq)
    }
}

impl std::str::FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || StoreError::Cursor(text.chars().take(80).collect());
        let (time_us, seq) = text.split_once('.').ok_or_else(wrong)?;
        Ok(Self {
            time_us: time_us.parse().map_err(|_| wrong())?,
            seq: seq.parse().map_err(|_| wrong())?,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Present when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One line of a timeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventSummary {
    /// Order of arrival in this store; grows, never reused.
    pub seq: i64,
    pub id: String,
    pub time: String,
    pub kind: String,
    pub agent: String,
    /// Canonical name: `before_tool_execute`.
    pub event: String,
    /// Unified type: `BEFORE_TOOL`.
    #[serde(rename = "type")]
    pub unified: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub duration_ms: f64,
    /// How many hooks it met.
    pub hooks: i64,
}

/// One event with its whole record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventDetail {
    #[serde(flatten)]
    pub summary: EventSummary,
    pub record: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionSummary {
    pub session_id: String,
    pub agent: String,
    pub first: String,
    pub last: String,
    pub events: i64,
    pub tools: i64,
    pub denials: i64,
    pub asks: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionDetail {
    #[serde(flatten)]
    pub summary: SessionSummary,
    pub by_tool: Vec<Count>,
    pub by_event: Vec<Count>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    pub name: String,
    pub count: i64,
    pub denials: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    pub events: i64,
    pub denials: i64,
    pub asks: i64,
    pub failures: i64,
    pub sessions: i64,
    pub by_agent: Vec<AgentStats>,
    /// Slowest (p95) first.
    pub by_hook: Vec<HookStats>,
    pub by_event: Vec<Count>,
    pub over_time: OverTime,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentStats {
    pub agent: String,
    pub events: i64,
    pub denials: i64,
    pub asks: i64,
    pub failures: i64,
    pub duration_ms: Latency,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HookStats {
    pub agent: String,
    pub hook: String,
    pub manifest: String,
    pub runs: i64,
    pub denials: i64,
    /// Errors, warnings and timeouts.
    pub troubles: i64,
    pub duration_ms: Latency,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// Width of one bucket.
    pub seconds: i64,
    pub buckets: Vec<Bucket>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bucket {
    pub start: String,
    pub events: i64,
    pub denials: i64,
}

/// What to keep. Absent limits do not delete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Events older than this many seconds go.
    pub max_age_s: Option<u64>,
    /// The oldest go until the rest weighs no more.
    pub max_bytes: Option<u64>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    pub new: u64,
    /// Known already, by id.
    pub duplicate: u64,
    /// Not records at all.
    pub refused: u64,
}

impl std::ops::AddAssign for Ingested {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.duplicate += other.duplicate;
        self.refused += other.refused;
    }
}
