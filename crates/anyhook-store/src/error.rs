//! What can go wrong between a caller and its database.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store `{path}` cannot be opened: {source}")]
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("the store failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("PostgreSQL failed: {}", postgres_text(.0))]
    Postgres(#[from] postgres::Error),
    #[error(
        "the store address `{0}` is not understood: give a file path or postgres://user@host/database"
    )]
    Address(String),
    #[error("TLS to PostgreSQL cannot be set up: {0}")]
    Tls(String),
    #[error(
        "the store was written by a newer anyhook (schema {found}, this one knows {known}): update anyhook, or name another store"
    )]
    Newer { found: i64, known: i64 },
    #[error("`{0}` is not a cursor that this store gave")]
    Cursor(String),
    #[error("the journal file `{path}` cannot be read: {source}")]
    Journal {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the store answered in a shape that was not asked for: {0}")]
    Shape(&'static str),
}

pub type Result<T> = std::result::Result<T, StoreError>;

/// The driver's own text is "db error"; what the server said is one level below.
fn postgres_text(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
