//! The state and the result of one source.

use super::Limits;
use super::bounded_set::{BoundedSet, fingerprint};
use super::report::{Example, Problems, Requirement, SourceReport, problem, requirement};
use super::session::{OpenSession, middle};
use crate::data::{Data, ToolEnd, ToolStart};
use crate::envelope::REQUIRED_FIELDS;
use crate::event_type;
use crate::finding::{Finding, code};
use crate::time::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Event types beyond this number are not counted one by one.
const MAX_EVENT_TYPES: usize = 256;

#[derive(Debug, Default)]
struct Occurrences {
    count: u64,
    first: Option<Example>,
}

impl Occurrences {
    fn add(&mut self, line: u64, session_id: &str, detail: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(|| Example {
            line,
            session_id: session_id.to_owned(),
            detail: detail(),
        });
    }
}

#[derive(Debug, Default)]
pub(super) struct SourceState {
    envelopes: u64,
    sessions: u64,
    events: BTreeMap<String, Occurrences>,
    with_transcript: Occurrences,
    without_required: Occurrences,
    findings: BTreeMap<&'static str, u64>,
    problems: Problems,
    open: HashMap<String, OpenSession>,
    ended: BoundedSet,
    limits: Limits,
}

/// One envelope, which need not be valid.
pub(super) struct StreamEvent<'a> {
    pub line: u64,
    pub map: &'a Map<String, Value>,
    pub findings: &'a [Finding],
}

impl<'a> StreamEvent<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.map.get(name).and_then(Value::as_str)
    }

    fn data(&self) -> Option<&'a Map<String, Value>> {
        self.map.get("data").and_then(Value::as_object)
    }
}

impl SourceState {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            ended: BoundedSet::new(limits.ids),
            limits,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, event: &StreamEvent<'_>, ids: &mut BoundedSet) {
        self.envelopes += 1;
        for finding in event.findings {
            *self.findings.entry(finding.code).or_default() += 1;
        }
        let session = event.text("session_id").unwrap_or_default();
        let error = event.findings.iter().find(|finding| finding.is_error());
        if let Some(error) = error {
            self.problems
                .add(problem::INVALID, event.line, session, || error.to_string());
        }
        let is_version = |finding: &&Finding| finding.code == code::UNKNOWN_VERSION;
        if let Some(warning) = event.findings.iter().find(is_version) {
            let message = || warning.message.clone();
            self.problems
                .add(problem::UNKNOWN_VERSION, event.line, session, message);
        }
        let required = event.findings.iter().find(|finding| is_required(finding));
        if let Some(violation) = required {
            self.without_required
                .add(event.line, session, || violation.to_string());
        }
        if let Some(id) = event.text("id").filter(|id| !id.is_empty())
            && !ids.insert(id_fingerprint(id))
        {
            // The same event again: the idempotency key exists so that it is ignored.
            self.problems
                .add(problem::DUPLICATE_ID, event.line, session, || id.to_owned());
            return;
        }
        let Some(kind) = event.text("type") else {
            return;
        };
        if error.is_none() {
            self.count(kind, event, session);
        }
        if event.text("session_id").is_some() {
            self.follow(kind, event, session);
        }
    }

    /// Only for valid envelopes: others are not evidence.
    fn count(&mut self, kind: &str, event: &StreamEvent<'_>, session: &str) {
        if self.events.len() < MAX_EVENT_TYPES || self.events.contains_key(kind) {
            let occurrences = self.events.entry(kind.to_owned()).or_default();
            occurrences.add(event.line, session, String::new);
        }
        let path = event
            .data()
            .and_then(|data| data.get("transcript_path")?.as_str());
        if kind == event_type::SESSION_END
            && let Some(path) = path
        {
            self.with_transcript
                .add(event.line, session, || path.to_owned());
        }
    }

    /// Follows sessions and tool calls, invalid envelopes included: an end with
    /// an unknown status is still an end.
    fn follow(&mut self, kind: &str, event: &StreamEvent<'_>, id: &str) {
        let line = event.line;
        let key = fingerprint(&[id]);
        if self.ended.contains(key) {
            if kind == event_type::SESSION_START {
                self.ended.remove(key);
            } else {
                self.problems
                    .add(problem::AFTER_END, line, id, || kind.to_owned());
                return;
            }
        }
        if !self.open.contains_key(id) {
            self.sessions += 1;
            if self.open.len() >= self.limits.open_sessions {
                self.forget_older_sessions();
            }
            self.open.insert(id.to_owned(), OpenSession::new(line));
        }
        let Some(session) = self.open.get_mut(id) else {
            return;
        };
        session.last_line = line;
        if let Some(text) = event.text("time")
            && let Ok(time) = text.parse::<Timestamp>()
            && let Some(earlier) = session.advance_time(time, line)
        {
            self.problems.add(problem::TIME_BACKWARDS, line, id, || {
                format!("{text} is before the time of line {earlier}")
            });
        }
        match Data::from_map(kind, event.data().unwrap_or(&Map::new())) {
            Data::ToolStart(ToolStart {
                tool_name,
                tool_call_id,
            }) => {
                if session.open_calls() >= self.limits.open_calls {
                    session.forget_older_calls(id, &mut self.problems);
                }
                session.start_call(&call_key(tool_name, tool_call_id), line);
            }
            Data::ToolEnd(ToolEnd {
                tool_name,
                tool_call_id,
                ..
            }) => {
                let key = call_key(tool_name, tool_call_id);
                if !session.end_call(&key) {
                    self.problems.add(problem::END_WITHOUT_START, line, id, || {
                        format!("{key} ended and did not start")
                    });
                }
            }
            Data::SessionEnd(_) => {
                self.ended.insert(key);
                if let Some(session) = self.open.remove(id) {
                    session.close(id, &mut self.problems);
                }
            }
            _ => {}
        }
    }

    fn forget_older_sessions(&mut self) {
        let middle = middle(self.open.values().map(|session| session.last_line));
        let forgotten = self
            .open
            .extract_if(|_, session| session.last_line <= middle)
            .collect();
        self.report_unended(forgotten);
    }

    fn report_unended(&mut self, mut sessions: Vec<(String, OpenSession)>) {
        sessions.sort_by_key(|(_, session)| session.first_line);
        for (id, session) in sessions {
            self.problems.add(
                problem::SESSION_WITHOUT_END,
                session.first_line,
                &id,
                || format!("last event at line {}", session.last_line),
            );
            session.close(&id, &mut self.problems);
        }
    }

    pub(super) fn report(mut self, source: String, declared: DeclaredSupport) -> SourceReport {
        let open = self.open.drain().collect();
        self.report_unended(open);
        let requirements = self.requirements(declared);
        let level = (1..=3)
            .take_while(|level| {
                requirements
                    .iter()
                    .filter(|each| each.level == *level)
                    .all(|each| each.met)
            })
            .last()
            .unwrap_or(0);
        SourceReport {
            source,
            level,
            envelopes: self.envelopes,
            sessions: self.sessions,
            never: event_type::ALL
                .into_iter()
                .filter(|kind| !self.events.contains_key(*kind))
                .collect(),
            events: self
                .events
                .into_iter()
                .map(|(kind, occurrences)| (kind, occurrences.count))
                .collect(),
            requirements,
            problems: self.problems.into_sorted(),
            findings: self.findings,
        }
    }

    fn requirements(&self, declared: DeclaredSupport) -> Vec<Requirement> {
        let emits = |kind: &str, code, level| {
            let occurrences = self.events.get(kind);
            let count = occurrences.map_or(0, |occurrences| occurrences.count);
            Requirement {
                code,
                level,
                text: format!("emits `{kind}` events"),
                met: count > 0,
                count,
                example: occurrences.and_then(|occurrences| occurrences.first.clone()),
                note: None,
            }
        };
        let invalid = &self.without_required;
        let required_fields = Requirement {
            code: requirement::REQUIRED_FIELDS,
            level: 1,
            text: "every envelope has all required fields in valid form".to_owned(),
            met: invalid.count == 0,
            count: self.envelopes - invalid.count,
            example: invalid.first.clone(),
            note: (invalid.count > 0)
                .then(|| format!("{} of {} envelopes do not", invalid.count, self.envelopes)),
        };
        let session_end = emits(event_type::SESSION_END, requirement::SESSION_END, 1);
        let (paths, ends) = (self.with_transcript.count, session_end.count);
        let transcript_path = Requirement {
            code: requirement::TRANSCRIPT_PATH,
            level: 2,
            text: "`session.end` has `data.transcript_path` if there is a transcript".to_owned(),
            met: paths > 0 || !declared.transcripts,
            count: paths,
            example: self.with_transcript.first.clone(),
            note: if !declared.transcripts {
                Some("the source is declared to have no transcripts".to_owned())
            } else if paths < ends {
                Some(format!("{paths} of {ends} `session.end` events have it"))
            } else {
                None
            },
        };
        let discovery = Requirement {
            code: requirement::DISCOVERY,
            level: 3,
            text: "supports the discovery file `.openhook.json`".to_owned(),
            met: declared.discovery,
            count: u64::from(declared.discovery),
            example: None,
            note: (!declared.discovery)
                .then(|| "a stream cannot show it; the caller has to declare it".to_owned()),
        };
        vec![
            session_end,
            required_fields,
            emits(event_type::SESSION_START, requirement::SESSION_START, 2),
            emits(event_type::PROMPT_SUBMIT, requirement::PROMPT_SUBMIT, 2),
            emits(event_type::TOOL_START, requirement::TOOL_START, 2),
            emits(event_type::TOOL_END, requirement::TOOL_END, 2),
            transcript_path,
            discovery,
        ]
    }
}

/// What a stream cannot show and the caller declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredSupport {
    pub discovery: bool,
    pub transcripts: bool,
}

/// Whether the finding is an error of a field that every envelope has.
fn is_required(finding: &Finding) -> bool {
    let name = finding.field.strip_prefix('/');
    finding.is_error() && name.is_some_and(|name| REQUIRED_FIELDS.contains(&name))
}

fn id_fingerprint(id: &str) -> u128 {
    // A UUID in its form with hyphens is its own fingerprint.
    match uuid::Uuid::try_parse(id) {
        Ok(uuid) if id.len() == 36 => uuid.as_u128(),
        _ => fingerprint(&[id]),
    }
}

/// Calls without an id are paired by tool name.
fn call_key(name: Option<&str>, id: Option<&str>) -> String {
    match (name, id) {
        (_, Some(id)) => format!("call `{id}`"),
        (Some(name), None) => format!("tool `{name}`"),
        (None, None) => "a call without a name".to_owned(),
    }
}
