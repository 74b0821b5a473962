//! The result of a check, as values. Presenting it is up to the caller.

use serde::Serialize;
use std::collections::BTreeMap;

/// The result for a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamReport {
    /// Lines or values of the input, blank lines included.
    pub lines: u64,
    /// `lines` without the blank ones.
    pub envelopes: u64,
    /// Lines with an error, from any source.
    pub invalid: Problem,
    /// Sorted by name.
    pub sources: Vec<SourceReport>,
}

/// The result for one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceReport {
    pub source: String,
    /// 3 discoverable, 2 observable, 1 minimal, 0 not conforming.
    pub level: u8,
    pub envelopes: u64,
    /// All sessions, ended or not.
    pub sessions: u64,
    /// Valid events by type.
    pub events: BTreeMap<String, u64>,
    /// Event types of version 0.1 that never occurred in a valid envelope.
    pub never: Vec<&'static str>,
    /// In the order of the levels.
    pub requirements: Vec<Requirement>,
    /// Only those that occurred.
    pub problems: Vec<Problem>,
    /// Number of validation errors and warnings, by code.
    pub findings: BTreeMap<&'static str, u64>,
}

impl SourceReport {
    pub fn problem(&self, code: &str) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.code == code)
    }

    pub fn requirement(&self, code: &str) -> Option<&Requirement> {
        self.requirements.iter().find(|each| each.code == code)
    }
}

/// A requirement of a conformance level, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Requirement {
    pub code: &'static str,
    /// The level that needs it.
    pub level: u8,
    /// For people.
    pub text: String,
    pub met: bool,
    /// Number of envelopes that show it.
    pub count: u64,
    /// The first that shows it; for an unmet one, the first that violates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
    /// Explains the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A problem of a stream. It does not change the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    /// One of [`problem`].
    pub code: &'static str,
    pub count: u64,
    /// The first ones, at most [`Problem::MAX_EXAMPLES`].
    pub examples: Vec<Example>,
}

/// A position in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Counted from 1.
    pub line: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Problem {
    pub const MAX_EXAMPLES: usize = 5;

    pub(super) fn new(code: &'static str) -> Self {
        Self {
            code,
            count: 0,
            examples: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, line: u64, session_id: &str, detail: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < Self::MAX_EXAMPLES {
            self.examples.push(Example {
                line,
                session_id: session_id.to_owned(),
                detail: detail(),
            });
        }
    }
}

/// The problems of one source, by code.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(
        &mut self,
        code: &'static str,
        line: u64,
        session_id: &str,
        detail: impl FnOnce() -> String,
    ) {
        if let Some(known) = self.0.iter_mut().find(|known| known.code == code) {
            known.add(line, session_id, detail);
        } else {
            let mut problem = Problem::new(code);
            problem.add(line, session_id, detail);
            self.0.push(problem);
        }
    }

    /// In the order of [`problem::ALL`].
    pub(super) fn into_sorted(mut self) -> Vec<Problem> {
        self.0
            .sort_by_key(|each| problem::ALL.iter().position(|code| *code == each.code));
        self.0
    }
}

/// Codes of [`Requirement`].
pub mod requirement {
    pub const SESSION_END: &str = "session-end";
    pub const REQUIRED_FIELDS: &str = "required-fields";
    pub const SESSION_START: &str = "session-start";
    pub const PROMPT_SUBMIT: &str = "prompt-submit";
    pub const TOOL_START: &str = "tool-start";
    pub const TOOL_END: &str = "tool-end";
    pub const TRANSCRIPT_PATH: &str = "transcript-path";
    pub const DISCOVERY: &str = "discovery";
}

/// Codes of [`Problem`].
pub mod problem {
    crate::string_list::string_list! {
        /// In the order of a report.
        ALL: [8];
        /// A line with a validation error.
        INVALID = "invalid-envelope";
        /// An envelope of another version of the protocol than 0.1.
        UNKNOWN_VERSION = "unknown-version";
        /// An `id` of an earlier envelope.
        DUPLICATE_ID = "duplicate-id";
        /// A `time` before that of an earlier event of the session.
        TIME_BACKWARDS = "time-runs-backwards";
        /// A tool call that never ended.
        START_WITHOUT_END = "tool-start-without-end";
        /// The end of a tool call that never started.
        END_WITHOUT_START = "tool-end-without-start";
        /// A session without `session.end`.
        SESSION_WITHOUT_END = "session-without-end";
        /// An event other than `session.start` after the end of its session.
        AFTER_END = "event-after-session-end";
    }
}
