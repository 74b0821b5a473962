//! A finding about a text that a user wrote: what, where, and what to do.
//!
//! `snippet` renders it for people.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;

use crate::word_enum::word_enum;

/// Byte offsets into the text, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

word_enum! {
    Severity { Info = "info", Warning = "warning", Error = "error" }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable, for scripts and documentation.
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// What to write at `span` instead, where that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Box<Value>>,
    pub span: Span,
    /// Where in the structure, like `hooks[2].handler.timeout`; empty for the whole.
    #[serde(rename = "field", skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl Diagnostic {
    pub fn new(
        severity: Severity,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            help: None,
            replacement: None,
            span,
            path: String::new(),
        }
    }

    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, span, message)
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, span, message)
    }

    pub fn info(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, code, span, message)
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The value that is certainly meant.
    #[must_use]
    pub fn replacement(mut self, value: impl Into<Value>) -> Self {
        self.replacement = Some(Box::new(value.into()));
        self
    }

    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}
