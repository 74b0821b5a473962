//! Errors of editing a text. Every message has the position, so that callers
//! only need to put the file's name before it.

use crate::text::line_and_column;

/// Why an edit was refused. The text is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text has a syntax error.
    #[error("line {line}, column {column}: {message}")]
    Parse {
        line: usize,
        column: usize,
        message: String,
    },
    /// A key on the path occurs twice, and readers disagree about which one counts.
    #[error(
        "line {line}, column {column}: duplicate key `{key}` (first on line {first_line}); readers disagree about which one counts, so remove one"
    )]
    DuplicateKey {
        key: String,
        first_line: usize,
        line: usize,
        column: usize,
    },
    /// A value on the path has the wrong type.
    #[error("line {line}, column {column}: `{at}` must be {expected}, not {found}")]
    WrongType {
        at: String,
        found: &'static str,
        expected: &'static str,
        line: usize,
        column: usize,
    },
    /// The path has an index that the array does not have.
    #[error("`{at}` has no element {index}")]
    NoElement { at: String, index: usize },
    /// `set` writes new keys only.
    #[error("line {line}, column {column}: `{at}` is already set")]
    AlreadySet {
        at: String,
        line: usize,
        column: usize,
    },
    /// The format cannot express the value (TOML has no null, for example).
    #[error("{what} cannot be written in this format")]
    Unwritable { what: String },
    /// The result of the edit was parsed, and would change more than it should.
    #[error("`{at}` cannot be edited without changing other parts of the file")]
    Unsafe { at: String },
}

impl EditError {
    pub(crate) fn parse(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, offset);
        Self::Parse {
            line,
            column,
            message: message.into(),
        }
    }
}
