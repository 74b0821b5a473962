//! Findings: what validation says about a value, and the stable codes for it.

use serde::Serialize;
use std::fmt;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Recommended otherwise, or unknown to this version; still processed.
    Warning,
    /// The text of the protocol is violated.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where a syntax error is, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// One thing that is wrong, or that a reader should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable and kebab-case, one of [`code::ALL`].
    pub code: &'static str,
    pub severity: Severity,
    /// JSON pointer to the value; empty for the whole document.
    pub field: String,
    /// What is wrong, why, and what would be right.
    pub message: String,
    /// Only syntax errors know where in the text they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl Finding {
    pub(crate) fn error(code: &'static str, field: impl Into<String>, message: String) -> Self {
        Self {
            code,
            severity: Severity::Error,
            field: field.into(),
            message,
            position: None,
        }
    }

    pub(crate) fn warning(code: &'static str, field: impl Into<String>, message: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, field, message)
        }
    }

    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        // serde_json repeats the place at the end of its message.
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        let position = Position {
            line: error.line(),
            column: error.column(),
        };
        Self {
            position: Some(position),
            ..Self::error(
                code::SYNTAX,
                "",
                format!(
                    "not JSON at line {}, column {}: {what}",
                    position.line, position.column
                ),
            )
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: ", self.severity.as_str(), self.code)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// The codes. A code never changes its meaning.
pub mod code {
    /// The text is not JSON.
    pub const SYNTAX: &str = "syntax";
    /// The document is JSON, but no object.
    pub const NOT_AN_OBJECT: &str = "not-an-object";
    /// A required field is absent.
    pub const MISSING_FIELD: &str = "missing-field";
    /// A field has another JSON type than the text says.
    pub const WRONG_TYPE: &str = "wrong-type";
    /// A field that must identify something is the empty string.
    pub const EMPTY_FIELD: &str = "empty-field";
    /// `openhook` is not `MAJOR.MINOR`.
    pub const BAD_VERSION: &str = "bad-version";
    /// `openhook` is a version other than 0.1.
    pub const UNKNOWN_VERSION: &str = "unknown-version";
    /// `id` is not a UUID.
    pub const ID_NOT_UUID: &str = "id-not-uuid";
    /// `source` is not lowercase kebab-case.
    pub const BAD_SOURCE: &str = "bad-source";
    /// `type` is not dotted lowercase.
    pub const BAD_TYPE: &str = "bad-type";
    /// `type` has the right form and is not one of the six.
    pub const UNKNOWN_TYPE: &str = "unknown-type";
    /// `time` is not an ISO 8601 date and time.
    pub const BAD_TIME: &str = "bad-time";
    /// `time` does not say its time zone.
    pub const TIME_WITHOUT_ZONE: &str = "time-without-zone";
    /// `context` is not a URI.
    pub const CONTEXT_NOT_URI: &str = "context-not-uri";
    /// A value outside a closed list.
    pub const UNKNOWN_VALUE: &str = "unknown-value";
    /// An integer below its minimum.
    pub const OUT_OF_RANGE: &str = "out-of-range";
    /// `start_line` is after `end_line`.
    pub const INVERTED_RANGE: &str = "inverted-range";
    /// `transcript_path` is not absolute.
    pub const RELATIVE_TRANSCRIPT: &str = "relative-transcript";
    /// A subscriber with an empty `events`: it is never called.
    pub const NO_EVENTS: &str = "no-events";
    /// An entry of `events` that no event type can ever equal.
    pub const BAD_EVENT: &str = "bad-event";
    /// An entry of `events` that version 0.1 does not have.
    pub const UNKNOWN_EVENT: &str = "unknown-event";

    /// Every code that validation can give.
    pub const ALL: [&str; 21] = [
        SYNTAX,
        NOT_AN_OBJECT,
        MISSING_FIELD,
        WRONG_TYPE,
        EMPTY_FIELD,
        BAD_VERSION,
        UNKNOWN_VERSION,
        ID_NOT_UUID,
        BAD_SOURCE,
        BAD_TYPE,
        UNKNOWN_TYPE,
        BAD_TIME,
        TIME_WITHOUT_ZONE,
        CONTEXT_NOT_URI,
        UNKNOWN_VALUE,
        OUT_OF_RANGE,
        INVERTED_RANGE,
        RELATIVE_TRANSCRIPT,
        NO_EVENTS,
        BAD_EVENT,
        UNKNOWN_EVENT,
    ];
}
