//! The record of what agents did.
//!
//! Owns the way from journal lines (and OpenHook envelopes) into a database, and
//! the queries of the daemon and the command line. Two databases implement one
//! trait, [`Store`]: an embedded SQLite file, and PostgreSQL for several daemons.
//! Knows no agent, runs no hook, prints nothing.

#![deny(clippy::disallowed_methods)]

mod body;
mod cancel;
mod error;
mod identifiers;
pub mod journal;
mod names;
pub mod openhook;
mod postgres;
mod query;
mod reading;
mod rollup;
mod row;
pub mod scan;
mod session_changes;
mod sketch;
mod sql;
mod sqlite;
mod stats;
mod stats_counter;
mod store;

pub use cancel::QueryCancel;
pub use error::{Result, StoreError};
pub use postgres::PostgresStore;
pub use query::{
    AgentStats, EventDetail, EventFilter, EventSummary, HookStats, IngestCounts, Latency,
    MAX_PAGE_SIZE, NameCount, Page, PageCursor, PageQuery, Retention, SessionDetail,
    SessionSummary, Stats, TimeBucket, Timeline,
};
pub use row::{
    EventRow, RunRow, call_text, parse_duration_seconds, parse_micros, parse_time_or_age,
    rfc3339_micros, truncated,
};
pub use sql::{ResultRow, Statement};
pub use sqlite::SqliteStore;
pub use store::{JournalPosition, Store, UpgradeProgress, WakeFn, WatchGuard, open};
