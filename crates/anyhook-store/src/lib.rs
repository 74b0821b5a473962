//! The record of what agents did.
//!
//! Owns the way from journal lines (and OpenHook envelopes) into a database, and
//! the questions that the daemon and the command line ask of it. Two databases
//! stand behind one seam, [`Store`]: an embedded SQLite file, and PostgreSQL for
//! several daemons. Knows no agent, runs no hook, prints nothing.

mod backend;
mod error;
pub mod journal;
pub mod openhook;
mod postgres;
mod query;
mod row;
pub mod scan;
mod sql;
mod sqlite;
mod stats;
mod store;
mod tally;

pub use backend::{Mark, Wake, Watch};
pub use error::{Result, StoreError};
pub use postgres::PostgresStore;
pub use query::{
    AgentStats, Bucket, Count, Cursor, EventDetail, EventFilter, EventSummary, HookStats, Ingested,
    Latency, OverTime, PAGE_DEFAULT, PAGE_MAX, Page, PageQuery, Retention, SessionDetail,
    SessionSummary, Stats,
};
pub use row::{EventRow, RunRow, micros, moment, rfc3339, seconds, unified_type};
pub use sqlite::SqliteStore;
pub use store::{Store, open};
