//! Errors of installing.

use std::path::PathBuf;

use anyhook_edit::FileError;

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("could not add hooks to `{}`: {why}", path.display())]
    CannotExtend { path: PathBuf, why: String },
    #[error("`{}` already exists; choose another name", .0.display())]
    HookExists(PathBuf),
    #[error("{agent} has no event `{event}`{hint}")]
    UnknownEvent {
        agent: String,
        event: String,
        hint: String,
    },
    #[error("{agent} has no {scope} file for hooks{hint}")]
    NoFile {
        agent: String,
        scope: &'static str,
        hint: &'static str,
    },
    #[error("{agent} does not read hooks from `{}`; it reads {known}", path.display())]
    NotItsFile {
        path: PathBuf,
        agent: String,
        known: String,
    },
    #[error("every name that {agent} accepts for a `{event}` script already exists in `{}`", folder.display())]
    NamesTaken {
        agent: String,
        event: String,
        folder: PathBuf,
    },
    #[error("anyhook has no plugin for {agent}")]
    NoPlugin { agent: String },
    #[error("`anyhook` {found}; add this program to PATH, or leave out `--command name`")]
    NameIsNotThisProgram { found: String },
    #[error("your home folder is not known, so there is no place that lasts for this program")]
    NoHome,
    #[error("could not keep this program in `{}`: {why}", path.display())]
    KeptProgram { path: PathBuf, why: String },
    #[error(transparent)]
    File(#[from] FileError),
}
