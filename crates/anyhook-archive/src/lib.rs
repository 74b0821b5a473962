//! Stored events as Parquet files in a folder or an S3 bucket, for other query engines.
//!
//! Owns the files' schema, their names and what was exported so far. Each event is exported
//! once, also when an export is killed at any moment. Runs no hook and prints nothing.

#![deny(clippy::disallowed_methods)]

mod archive;
mod error;
mod place;
mod schema;
mod state;

pub use archive::{Archive, ExportCounts};
pub use error::{ArchiveError, Result};
pub use schema::{SCHEMA, SCHEMA_VERSION};
