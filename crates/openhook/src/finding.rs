//! What validation reports about a value, with stable codes.

use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Against a recommendation, or unknown to this version; still processed.
    Warning,
    /// A violation of the protocol.
    Error,
}

impl FindingSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where a syntax error is, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SyntaxPosition {
    pub line: usize,
    pub column: usize,
}

/// One violation of the protocol, or one thing that a reader should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable and kebab-case, one of [`code::ALL`].
    pub code: &'static str,
    pub severity: FindingSeverity,
    /// JSON pointer to the value; empty for the whole document.
    pub field: String,
    /// What is wrong, why, and how to fix it.
    pub message: String,
    /// Set for syntax errors only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<SyntaxPosition>,
}

impl Finding {
    pub(crate) fn error(
        code: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity: FindingSeverity::Error,
            field: field.into(),
            message: message.into(),
            position: None,
        }
    }

    pub(crate) fn warning(
        code: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: FindingSeverity::Warning,
            ..Self::error(code, field, message)
        }
    }

    /// `field` is a JSON pointer; the message names its last segment.
    pub(crate) fn wrong_type(field: &str, expected: &str, found: &Value) -> Self {
        let name = field.rsplit('/').next().unwrap_or_default();
        let message = format!("`{name}` is {}; it must be {expected}", type_name(found));
        Self::error(code::WRONG_TYPE, field, message)
    }

    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        // serde_json repeats the position at the end of its message.
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        let (line, column) = (error.line(), error.column());
        let message = format!("not JSON at line {line}, column {column}: {what}");
        Self {
            position: Some(SyntaxPosition { line, column }),
            ..Self::error(code::SYNTAX, "", message)
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == FindingSeverity::Error
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

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The codes of findings. A code never changes its meaning.
pub mod code {
    crate::string_list::string_list! {
        /// Every code that validation can report.
        ALL: [21];
        /// The text is not JSON.
        SYNTAX = "syntax";
        /// The document is JSON, but not an object.
        NOT_AN_OBJECT = "not-an-object";
        /// A required field is absent.
        MISSING_FIELD = "missing-field";
        /// A field has another JSON type than the protocol requires.
        WRONG_TYPE = "wrong-type";
        /// A field that must identify something is the empty string.
        EMPTY_FIELD = "empty-field";
        /// `openhook` is not `MAJOR.MINOR`.
        BAD_VERSION = "bad-version";
        /// `openhook` is a version other than 0.1.
        UNKNOWN_VERSION = "unknown-version";
        /// `id` is not a UUID of version 4 or 7.
        ID_NOT_UUID = "id-not-uuid";
        /// `source` is not lowercase kebab-case.
        BAD_SOURCE = "bad-source";
        /// `type` is not dotted lowercase.
        BAD_TYPE = "bad-type";
        /// `type` is well formed but not one of the six.
        UNKNOWN_TYPE = "unknown-type";
        /// `time` is not an ISO 8601 date and time.
        BAD_TIME = "bad-time";
        /// `time` has no time zone.
        TIME_WITHOUT_ZONE = "time-without-zone";
        /// `context` is not a URI.
        CONTEXT_NOT_URI = "context-not-uri";
        /// A value outside a closed list.
        UNKNOWN_VALUE = "unknown-value";
        /// An integer below its minimum.
        OUT_OF_RANGE = "out-of-range";
        /// `start_line` is after `end_line`.
        INVERTED_RANGE = "inverted-range";
        /// `transcript_path` is not absolute.
        RELATIVE_TRANSCRIPT = "relative-transcript";
        /// A subscriber with an empty `events`: it is never called.
        NO_EVENTS = "no-events";
        /// An entry of `events` that no event type can ever equal.
        BAD_EVENT = "bad-event";
        /// An entry of `events` that version 0.1 does not have.
        UNKNOWN_EVENT = "unknown-event";
    }
}
