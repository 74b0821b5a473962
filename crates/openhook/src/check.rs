//! Checks a recorded stream: the conformance level of each source, and events
//! that are out of order.
//!
//! One pass, one envelope at a time, in bounded memory: open sessions and tool
//! calls up to [`Limits`], and 16 bytes for each remembered event id and ended
//! session.

mod bounded_set;
mod report;
mod session;
mod source;

pub use report::{Example, Problem, Requirement, SourceReport, StreamReport, problem, requirement};

use crate::event_type;
use crate::finding::Finding;
use crate::validate;
use bounded_set::BoundedSet;
use serde_json::Value;
use source::{DeclaredSupport, SourceState, StreamEvent};
use std::collections::{BTreeMap, BTreeSet};

/// How much a [`StreamChecker`] remembers. Beyond a limit the oldest entries are
/// dropped: open sessions and calls then count as unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Event ids among which every duplicate is found, and ended sessions per
    /// source. At most twice as many are kept, at 16 bytes each.
    pub ids: usize,
    /// Per source.
    pub open_sessions: usize,
    /// Per session.
    pub open_calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ids: 1 << 20,
            open_sessions: 1 << 16,
            open_calls: 1 << 12,
        }
    }
}

/// Checks a stream of envelopes.
///
/// ```
/// use openhook::StreamChecker;
/// let stream = r#"{"openhook":"0.1","id":"550e8400-e29b-41d4-a716-446655440000","source":"demo","type":"session.end","time":"2026-02-23T10:15:30Z","session_id":"s1"}
/// {"openhook":"0.1","id":"550e8400-e29b-41d4-a716-446655440001","source":"demo","type":"tool.start","time":"2026-02-23T10:15:31Z","session_id":"s2"}"#;
///
/// let mut checker = StreamChecker::new();
/// for line in stream.lines() {
///     checker.push_line(line);
/// }
/// let report = checker.finish();
/// let demo = &report.sources[0];
/// assert_eq!(demo.level, 1);
/// assert_eq!(demo.problem("tool-start-without-end").map(|p| p.examples[0].line), Some(2));
/// assert!(demo.never.contains(&"prompt.submit"));
/// ```
#[derive(Debug)]
pub struct StreamChecker {
    lines: u64,
    envelopes: u64,
    invalid: Problem,
    sources: BTreeMap<String, SourceState>,
    ids: BoundedSet,
    limits: Limits,
    discovery: bool,
    without_transcripts: BTreeSet<String>,
}

impl Default for StreamChecker {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamChecker {
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self {
            lines: 0,
            envelopes: 0,
            invalid: Problem::new(problem::INVALID),
            sources: BTreeMap::new(),
            ids: BoundedSet::new(limits.ids),
            limits,
            discovery: false,
            without_transcripts: BTreeSet::new(),
        }
    }

    /// Declares that the sources support `.openhook.json`: level 3 requires it,
    /// and a stream cannot show it.
    #[must_use]
    pub fn with_discovery(mut self, supported: bool) -> Self {
        self.discovery = supported;
        self
    }

    /// Declares that a source has no transcripts, so level 2 does not require
    /// their path.
    #[must_use]
    pub fn without_transcripts(mut self, source: impl Into<String>) -> Self {
        self.without_transcripts.insert(source.into());
        self
    }

    /// Adds a line of a stream. Blank lines are counted and skipped. Returns the
    /// findings of [`crate::validate`], or the syntax error.
    pub fn push_line(&mut self, line: &str) -> Vec<Finding> {
        if line.trim().is_empty() {
            self.lines += 1;
            return Vec::new();
        }
        match serde_json::from_str(line) {
            Ok(value) => self.push(&value),
            Err(error) => {
                self.lines += 1;
                self.envelopes += 1;
                let finding = Finding::syntax(&error);
                self.invalid.add(self.lines, "", || finding.to_string());
                vec![finding]
            }
        }
    }

    /// Adds an envelope; it counts as a line.
    pub fn push(&mut self, envelope: &Value) -> Vec<Finding> {
        self.lines += 1;
        self.envelopes += 1;
        let findings = validate(envelope);
        let text = |name| envelope.get(name).and_then(Value::as_str);
        if let Some(error) = findings.iter().find(|finding| finding.is_error()) {
            let session = text("session_id").unwrap_or_default();
            self.invalid.add(self.lines, session, || error.to_string());
        }
        // An envelope without a valid source counts for no source.
        if let Value::Object(map) = envelope
            && let Some(name) = text("source").filter(|name| event_type::is_kebab_case(name))
        {
            let event = StreamEvent {
                line: self.lines,
                map,
                findings: &findings,
            };
            let source = self.sources.entry(name.to_owned());
            let source = source.or_insert_with(|| SourceState::new(self.limits));
            source.add(&event, &mut self.ids);
        }
        findings
    }

    /// Ends the stream: what is open now never ended.
    pub fn finish(self) -> StreamReport {
        let declared = |name: &str| DeclaredSupport {
            discovery: self.discovery,
            transcripts: !self.without_transcripts.contains(name),
        };
        StreamReport {
            lines: self.lines,
            envelopes: self.envelopes,
            invalid: self.invalid,
            sources: self
                .sources
                .into_iter()
                .map(|(name, source)| {
                    let declared = declared(&name);
                    source.report(name, declared)
                })
                .collect(),
        }
    }
}
