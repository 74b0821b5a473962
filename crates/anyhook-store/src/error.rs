//! What can go wrong between a caller and its database.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("could not open the store `{path}`: {source}")]
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("the store `{path}` cannot be written: {why}")]
    NotWritable { path: PathBuf, why: std::io::Error },
    #[error(
        "the store `{path}` is damaged ({why}); the journal is intact: move `{path}`, `{path}-wal` and `{path}-shm` away, and the store is rebuilt from the journal"
    )]
    Damaged { path: PathBuf, why: rusqlite::Error },
    #[error("the store `{path}` failed: {why}")]
    Failed { path: PathBuf, why: rusqlite::Error },
    #[error("the store failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("PostgreSQL failed: {}", postgres_text(.0))]
    Postgres(#[from] postgres::Error),
    #[error("invalid store address `{0}`; use a file path or postgres://user@host/database")]
    Address(String),
    #[error("could not set up TLS to PostgreSQL: {0}")]
    Tls(String),
    #[error(
        "the store was written by a newer anyhook (schema {found}, this one supports {known}); update anyhook or use another store"
    )]
    Newer { found: i64, known: i64 },
    #[error("invalid cursor `{0}`")]
    Cursor(String),
    #[error("could not read the journal file `{path}`: {source}")]
    Journal {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("could not compress a record: {0}")]
    Compression(std::io::Error),
    #[error("the query was cancelled")]
    Cancelled,
    #[error("the store returned an unexpected value; expected {0}")]
    Shape(&'static str),
}

impl StoreError {
    /// Whether SQLite could not open or write a file, without saying why.
    pub(crate) fn is_about_files(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
        let (Self::Sqlite(why) | Self::Open { source: why, .. }) = self else {
            return false;
        };
        let code = why.sqlite_error_code();
        code.is_some_and(|code| matches!(code, CannotOpen | PermissionDenied | ReadOnly))
    }

    /// Names the file of a SQLite error.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Sqlite(why) | Self::Open { source: why, .. } if is_damage(&why) => {
                Self::Damaged { path, why }
            }
            Self::Sqlite(why) => Self::Failed { path, why },
            other => other,
        }
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let code = error.sqlite_error_code();
    code.is_some_and(|code| matches!(code, DatabaseCorrupt | NotADatabase))
}

pub type Result<T> = std::result::Result<T, StoreError>;

/// The driver's own text is "db error"; the server's message is one level below.
fn postgres_text(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
