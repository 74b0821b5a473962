//! Edits config files in place, as text, and undoes the edits.
//!
//! The files belong to other programs: comments, order, white space, line
//! endings and everything that this crate does not know stay as they are.
//! Two invariants hold for every operation on a text:
//!
//! - **Insert or take out.** An edit is a list of insertions, or of removed pieces;
//!   undoing it removes, or puts back, those bytes and no others.
//! - **Read back.** A result is returned only after it was parsed again and has
//!   the planned content; otherwise the edit is refused.
//!
//! `edit`, `patch`, `removal` and `undo` are pure; only `file`, `lock`, `install_log`,
//! `editable_file` and `generated_file` touch the disk. No agent's name occurs
//! here.

#![deny(clippy::disallowed_methods)]

mod diff;
mod edit;
mod editable_file;
mod edited_document;
mod error;
mod file;
mod generated_file;
mod install_log;
mod json;
mod list;
mod lock;
mod patch;
mod path;
mod removal;
mod text;
mod toml;
mod tree;
mod undo;
mod yaml;

pub use diff::diff;
pub use edit::{EditOptions, EditedText, RemovedElements, edit, get, remove_matching};
pub use editable_file::{ContentChange, EditFn, EditableFile, Reinstall, TakeOutFn, TextEditor};
pub use error::EditError;
pub use file::{
    FileError, WriteObserver, WriteStep, hard_link_count, make_executable, read_text, real_path,
    remove_created, write_atomic, write_observed,
};
pub use generated_file::GeneratedFile;
pub use install_log::InstallLog;
pub use lock::FileLock;
pub use patch::{EditAction, InsertedText, Patch};
pub use path::Key;
pub use removal::{FallbackPlace, Removal, put_back, take_out};
pub use undo::{UndoMethod, UndoResult, undo, undo_all};
pub use yaml::yaml_text;
