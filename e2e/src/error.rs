//! Errors of the runner itself; a client that misbehaves is an outcome, not an error.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {what} `{path}`: {source}")]
    File {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`{path}` is not valid: {message}")]
    Data { path: PathBuf, message: String },
    #[error("unknown client `{0}`; `list` shows the available ones")]
    NoClient(String),
    #[error("unknown situation `{0}`; they are the files of `situations/`")]
    NoSituation(String),
    #[error("`{client}` has no mode `{mode}`")]
    NoMode { client: String, mode: String },
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: io::Error },
    #[error("`{command}` failed ({status}):\n{output}")]
    Command {
        command: String,
        status: String,
        output: String,
    },
    #[error("`{0}` is not built; run `cargo build -p anyhook-e2e`")]
    NotBuilt(&'static str),
    #[error("the session left no result: {0}")]
    NoResult(String),
    #[error("no Python 3.12 or newer was found; the clients from PyPI need one")]
    NoPython,
    #[error("no cache folder: set ANYHOOK_E2E_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
}

pub type Result<T> = std::result::Result<T, Error>;

/// Adds a path to an I/O error.
pub(crate) trait AtPath<T> {
    fn at(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::File {
            what,
            path: path.into(),
            source,
        })
    }
}
