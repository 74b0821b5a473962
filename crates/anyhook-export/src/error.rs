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
}
