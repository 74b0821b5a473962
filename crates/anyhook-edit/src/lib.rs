//! Edits config files in place, as text, and takes the edits out again.
//!
//! The files belong to somebody else: comments, order, white space, line
//! endings and everything that this crate has never heard of stay as they are.
//! Two invariants hold for every operation on a text:
//!
//! - **Only insertions.** An edit is a list of insertions; undoing it removes
//!   those bytes and no others.
//! - **Read back.** A result is returned only after it was parsed again and
//!   says what was planned; otherwise the edit is refused.
//!
//! `edit`, `patch` and `undo` are pure; only `file`, `lock`, `log`,
//! `session` and `placed` touch the disk. No agent's name occurs here.

mod diff;
mod edit;
mod error;
mod file;
mod json;
mod list;
mod lock;
mod log;
mod node;
mod patch;
mod path;
mod placed;
mod session;
mod source;
mod toml;
mod undo;

pub use diff::diff;
pub use edit::{
    Edited, Format, Options, Removed, append, append_unless, get, remove_matching, set,
};
pub use error::EditError;
pub use file::{
    FileError, Step, Watch, read_text, real_path, remove_created, write_atomic, write_watched,
};
pub use lock::Lock;
pub use log::InstallLog;
pub use patch::{Action, Patch, Span, sha256};
pub use path::Key;
pub use placed::Placed;
pub use session::{Change, Draft, Site, Wish};
pub use undo::{How, Undone, undo, undo_all};
