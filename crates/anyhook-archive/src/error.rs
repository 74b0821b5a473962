//! What can go wrong between a store and its archive.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(
        "invalid place `{0}` for an archive; use a folder or s3://bucket/prefix with AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set"
    )]
    Address(String),
    #[error("could not create the folder `{path}`: {source}")]
    Folder {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("another export of the same store to `{place}` is running; wait for it or stop it")]
    Busy { place: String },
    #[error(
        "events of an older version are still being moved in the store; try again when `anyhook status` no longer shows that"
    )]
    Upgrading,
    #[error("could not reach the archive: {0}")]
    Place(#[from] object_store::Error),
    #[error("could not write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    #[error(
        "`{path}` in the archive was written by a newer anyhook or is damaged ({why}); update anyhook or export to another place"
    )]
    State { path: String, why: String },
    #[error(transparent)]
    Store(#[from] anyhook_store::StoreError),
    #[error("could not start the runtime for the archive: {0}")]
    Runtime(std::io::Error),
}

pub type Result<T> = std::result::Result<T, ArchiveError>;
