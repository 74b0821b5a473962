//! What can go wrong during an export.

use std::io;
use std::path::PathBuf;

use anyhook_store::StoreError;

pub type Result<T> = std::result::Result<T, ExportError>;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Journal(#[from] StoreError),
    #[error("could not write `{path}`: {source}")]
    State { path: PathBuf, source: io::Error },
    #[error("another export uses the position in `{path}`; stop it or pass `--cursor <NAME>`")]
    Locked { path: PathBuf },
    #[error("could not encode a message: {0}")]
    Encoding(String),
    /// A retry may succeed.
    #[error("`{endpoint}` is not available: {reason}")]
    Unavailable { endpoint: String, reason: String },
    /// A retry would fail the same way.
    #[error("`{endpoint}` refused the export: {message}")]
    Refused { endpoint: String, message: String },
    #[error("stopped while the receiver was not available")]
    Stopped,
}

impl ExportError {
    pub(crate) fn encoding(error: impl std::fmt::Display) -> Self {
        Self::Encoding(error.to_string())
    }
}
