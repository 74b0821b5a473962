//! Queries of the store, and their results.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Result, StoreError};
use crate::row::{EventRow, lowercase};

pub(crate) const DEFAULT_PAGE_SIZE: usize = 100;
pub const MAX_PAGE_SIZE: usize = 1000;

/// Which events to include. Absent fields do not narrow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventFilter {
    pub agent: Option<String>,
    pub session: Option<String>,
    /// Canonical, unified or native name.
    pub event: Option<String>,
    /// `allow`, `ask`, `deny`, or `none` for events without a decision.
    pub decision: Option<String>,
    pub tool: Option<String>,
    pub machine: Option<String>,
    pub user_id: Option<String>,
    pub project_id: Option<String>,
    pub workflow_id: Option<String>,
    /// Microseconds since 1970, inclusive.
    pub since_us: Option<i64>,
    /// Microseconds since 1970, exclusive.
    pub until_us: Option<i64>,
    /// Anywhere in the event, in any case.
    pub text: Option<String>,
}

impl EventFilter {
    /// Whether it can select calls of models too, which have an agent, a session and a time
    /// but nothing else of an event.
    pub fn selects_model_calls(&self) -> bool {
        let others = Self {
            agent: None,
            session: None,
            since_us: None,
            until_us: None,
            ..self.clone()
        };
        others == Self::default()
    }

    /// The same conditions as [`Statement::filter`](crate::sql::Statement::filter).
    pub fn matches(&self, row: &EventRow) -> bool {
        self.matches_summary(&row.summary)
            && self
                .text
                .as_deref()
                .is_none_or(|text| row.text.contains(&lowercase(text)))
    }

    /// The text as it is compared; `None` if any will do.
    pub(crate) fn search_text(&self) -> Option<String> {
        let text = self.text.as_deref().filter(|text| !text.is_empty());
        text.map(lowercase)
    }

    /// All conditions but the text, which a summary does not have.
    pub(crate) fn matches_summary(&self, summary: &EventSummary) -> bool {
        let is = |wanted: &Option<String>, actual: Option<&str>| {
            wanted.as_deref().is_none_or(|it| actual == Some(it))
        };
        let names = [
            Some(summary.event.as_str()),
            Some(&summary.unified),
            summary.native_event.as_deref(),
        ];
        let decision = match self.decision.as_deref() {
            Some("none") => summary.decision.is_none(),
            _ => is(&self.decision, summary.decision.as_deref()),
        };
        decision
            && names.iter().any(|name| is(&self.event, *name))
            && is(&self.agent, Some(&summary.agent))
            && is(&self.session, summary.session_id.as_deref())
            && is(&self.tool, summary.tool.as_deref())
            && is(&self.machine, summary.machine.as_deref())
            && is(&self.user_id, summary.user_id.as_deref())
            && is(&self.project_id, summary.project_id.as_deref())
            && is(&self.workflow_id, summary.workflow_id.as_deref())
            && self.since_us.is_none_or(|since| summary.time_us >= since)
            && self.until_us.is_none_or(|until| summary.time_us < until)
    }
}

/// One page of events or sessions, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageQuery {
    pub filter: EventFilter,
    pub cursor: Option<PageCursor>,
    /// 0 means [`DEFAULT_PAGE_SIZE`]; never more than [`MAX_PAGE_SIZE`].
    pub limit: usize,
}

impl PageQuery {
    pub(crate) fn size(&self) -> usize {
        match self.limit {
            0 => DEFAULT_PAGE_SIZE,
            limit => limit.min(MAX_PAGE_SIZE),
        }
    }
}

/// The position of the next page. Opaque to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCursor {
    pub(crate) time_us: i64,
    pub(crate) seq: i64,
}

impl std::fmt::Display for PageCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.time_us, self.seq)
    }
}

impl std::str::FromStr for PageCursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text
            .split_once('.')
            .and_then(|(time_us, seq)| Some((time_us.parse().ok()?, seq.parse().ok()?)));
        match parsed {
            Some((time_us, seq)) => Ok(Self { time_us, seq }),
            None => Err(StoreError::Cursor(text.chars().take(80).collect())),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Present when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An event as a timeline shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventSummary {
    /// The order of arrival in this store; grows, never reused. 0: not from a store.
    pub seq: i64,
    pub id: String,
    pub time: String,
    #[serde(skip)]
    pub time_us: i64,
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
    pub user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
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
    /// The number of hooks that ran or were skipped.
    pub hooks: i64,
    /// How many of them failed, or were not allowed to run.
    pub failed: i64,
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
    pub by_tool: Vec<NameCount>,
    pub by_event: Vec<NameCount>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NameCount {
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
    pub by_event: Vec<NameCount>,
    pub over_time: Timeline,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AgentStats {
    pub agent: String,
    pub events: i64,
    pub denials: i64,
    pub asks: i64,
    pub failures: i64,
    pub duration_ms: Latency,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The width of one bucket.
    pub seconds: i64,
    pub buckets: Vec<TimeBucket>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeBucket {
    pub start: String,
    pub events: i64,
    pub denials: i64,
}

/// How long events are kept. Absent limits delete nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Older events are deleted.
    pub max_age_s: Option<u64>,
    /// The oldest events are deleted until the rest is at most this size.
    pub max_bytes: Option<u64>,
    /// Only events up to this number are deleted: the others are not in the archive yet.
    pub exported_seq: Option<i64>,
}

impl Retention {
    /// Whether an event may be deleted, by its number.
    pub(crate) fn may_delete(&self, seq: i64) -> bool {
        self.exported_seq.is_none_or(|exported| seq <= exported)
    }

    /// Events before this time are deleted, in microseconds since 1970.
    pub(crate) fn cutoff_us(&self) -> Option<i64> {
        let age = i64::try_from(self.max_age_s?).unwrap_or(i64::MAX);
        let now_us = jiff::Timestamp::now().as_microsecond();
        Some(now_us.saturating_sub(age.saturating_mul(1_000_000)))
    }
}

/// The result of storing a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct IngestCounts {
    pub new: u64,
    /// Already stored, by id.
    pub duplicate: u64,
    /// Not records.
    pub refused: u64,
}

impl std::ops::AddAssign for IngestCounts {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.duplicate += other.duplicate;
        self.refused += other.refused;
    }
}
