//! What the judge found, as values. How it is shown is the caller's business.

use serde::Serialize;
use std::collections::BTreeMap;

/// The judgement of a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Lines or values that were given, blank lines included.
    pub lines: u64,
    /// Values that were judged: `lines` without the blank ones.
    pub envelopes: u64,
    /// Lines with an error, from whichever source; the first are told.
    pub invalid: Problem,
    /// By name.
    pub sources: Vec<SourceReport>,
}

/// The judgement of one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceReport {
    pub source: String,
    /// 3 discoverable, 2 observable, 1 minimal, 0 not conforming.
    pub level: u8,
    pub envelopes: u64,
    /// Sessions that were seen: those that ended, and those that did not.
    pub sessions: u64,
    /// Valid events by type.
    pub events: BTreeMap<String, u64>,
    /// Event types of version 0.1 that never occurred in a valid envelope.
    pub never: Vec<&'static str>,
    /// In the order of the levels.
    pub requirements: Vec<Requirement>,
    /// Only those that occurred.
    pub problems: Vec<Problem>,
    /// Errors and warnings of validation, by code.
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
    /// In words.
    pub text: &'static str,
    pub met: bool,
    /// How many envelopes show it.
    pub count: u64,
    /// The first that shows it; for an unmet one, the first that violates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
    /// What the count alone does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Something that should not be in a stream. It does not change the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    /// One of [`problem`].
    pub code: &'static str,
    pub count: u64,
    /// The first few.
    pub examples: Vec<Example>,
}

/// A place in the stream.
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
    /// How many examples are kept of each.
    pub const EXAMPLES: usize = 5;

    pub(super) fn new(code: &'static str) -> Self {
        Self {
            code,
            count: 0,
            examples: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, line: u64, session_id: &str, detail: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(Example {
                line,
                session_id: session_id.to_owned(),
                detail: detail(),
            });
        }
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
    /// A line with an error of validation.
    pub const INVALID: &str = "invalid-envelope";
    /// An `id` that an earlier envelope had.
    pub const DUPLICATE_ID: &str = "duplicate-id";
    /// A `time` before that of an earlier event of the session.
    pub const TIME_BACKWARDS: &str = "time-runs-backwards";
    /// A tool call that never ended.
    pub const START_WITHOUT_END: &str = "tool-start-without-end";
    /// The end of a tool call that never started.
    pub const END_WITHOUT_START: &str = "tool-end-without-start";
    /// A session of which no `session.end` came.
    pub const SESSION_WITHOUT_END: &str = "session-without-end";
    /// An event, not `session.start`, of a session that had ended.
    pub const AFTER_END: &str = "event-after-session-end";

    /// In the order in which a report lists them.
    pub const ALL: [&str; 7] = [
        INVALID,
        DUPLICATE_ID,
        TIME_BACKWARDS,
        START_WITHOUT_END,
        END_WITHOUT_START,
        SESSION_WITHOUT_END,
        AFTER_END,
    ];
}
