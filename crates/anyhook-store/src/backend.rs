//! What a database must do for the store: run a statement, take a batch, say when something came.

use std::sync::Arc;

use crate::error::Result;
use crate::query::Ingested;
use crate::row::EventRow;
use crate::sql::{Cells, Dialect, Statement};

/// How far a journal file has been read; kept in the same transaction as its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Whose journal: one per machine and user.
    pub source: String,
    pub file: String,
    pub pos: u64,
}

/// Called after events were committed, by this process or (PostgreSQL) another.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Ends its watch when dropped.
pub struct Watch(pub(crate) Box<dyn FnMut() + Send>);

impl Drop for Watch {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

pub trait Backend: Send + Sync {
    fn dialect(&self) -> Dialect;
    fn select(&self, statement: &Statement) -> Result<Vec<Cells>>;
    /// Rows changed.
    fn execute(&self, statement: &Statement) -> Result<u64>;
    /// All rows that are not known by id, and the mark, or nothing at all.
    fn insert(&self, rows: &[EventRow], mark: Option<&Mark>) -> Result<Ingested>;
    fn watch(&self, wake: Wake) -> Result<Watch>;
    /// Gives space back after a deletion.
    fn shrink(&self) -> Result<()>;
}
