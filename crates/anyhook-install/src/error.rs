//! Why something was not done.

use std::path::PathBuf;

use anyhook_edit::FileError;

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{agent} has no event `{event}`{hint}")]
    UnknownEvent {
        agent: String,
        event: String,
        hint: String,
    },
    #[error("{agent} has no {scope} file for hooks")]
    NoFile { agent: String, scope: &'static str },
    #[error("`{}` is not a file in which {agent} looks for hooks; those are: {known}", path.display())]
    NotItsFile {
        path: PathBuf,
        agent: String,
        known: String,
    },
    #[error("every name under which {agent} would find a script for `{event}` is taken in `{}`", folder.display())]
    NamesTaken {
        agent: String,
        event: String,
        folder: PathBuf,
    },
    #[error("there is no program to write for {agent}")]
    NoPlugin { agent: String },
    #[error(transparent)]
    File(#[from] FileError),
}
