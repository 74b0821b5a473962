//! What can go wrong when a text is edited. Every message names the place, so
//! that the caller only has to put the file's name before it.

use crate::source::position;

/// Why an edit was refused. The text is never changed when one of these comes back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not valid in its format.
    #[error("line {line}, column {column}: {message}")]
    Parse {
        line: usize,
        column: usize,
        message: String,
    },
    /// A key on the path is there twice, and readers disagree about which one counts.
    #[error(
        "line {line}, column {column}: the key `{key}` is there twice (first on line {first_line}), and readers disagree about which one counts; keep one of them"
    )]
    DuplicateKey {
        key: String,
        first_line: usize,
        line: usize,
        column: usize,
    },
    /// Something on the path is not the kind of value that the path needs.
    #[error("line {line}, column {column}: `{at}` is {found}, but {expected} is needed here")]
    Kind {
        at: String,
        found: &'static str,
        expected: &'static str,
        line: usize,
        column: usize,
    },
    /// The path names an array element that is not there.
    #[error("`{at}` has no element {index}")]
    NoElement { at: String, index: usize },
    /// `set` writes new keys only.
    #[error("line {line}, column {column}: `{at}` is already set")]
    AlreadySet {
        at: String,
        line: usize,
        column: usize,
    },
    /// The value has no form in this format (TOML has no null, for instance).
    #[error("{what} cannot be written in this format")]
    Unwritable { what: String },
    /// The edit was computed, read back, and found to change more than it should.
    #[error("`{at}` cannot be edited here without touching something else")]
    Unsafe { at: String },
}

impl EditError {
    pub(crate) fn parse(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self::Parse {
            line,
            column,
            message: message.into(),
        }
    }
}
