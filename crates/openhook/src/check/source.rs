//! The state and the judgement of one source.

use super::Limits;
use super::report::{Example, Problem, Requirement, SourceReport, problem, requirement};
use super::seen::{Seen, fingerprint};
use super::session::{Session, middle};
use crate::data::{Data, ToolEnd, ToolStart};
use crate::event_type;
use crate::finding::Finding;
use crate::time::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// More event types than these are not counted one by one.
const MOST_TYPES: usize = 256;

#[derive(Debug, Default)]
struct Tally {
    count: u64,
    first: Option<Example>,
}

impl Tally {
    fn add(&mut self, line: u64, session_id: &str, detail: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(Example {
                line,
                session_id: session_id.to_owned(),
                detail: detail(),
            });
        }
    }
}

#[derive(Debug)]
pub(super) struct Source {
    envelopes: u64,
    sessions: u64,
    events: BTreeMap<String, Tally>,
    with_transcript: Tally,
    without_required: Tally,
    findings: BTreeMap<&'static str, u64>,
    invalid: Problem,
    duplicates: Problem,
    backwards: Problem,
    starts: Problem,
    ends: Problem,
    unended: Problem,
    after_end: Problem,
    open: HashMap<String, Session>,
    ended: Seen,
    limits: Limits,
}

/// One envelope, as far as it can be read.
pub(super) struct Event<'a> {
    pub line: u64,
    pub map: &'a Map<String, Value>,
    pub findings: &'a [Finding],
}

impl<'a> Event<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.map.get(name).and_then(Value::as_str)
    }
}

impl Source {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            envelopes: 0,
            sessions: 0,
            events: BTreeMap::new(),
            with_transcript: Tally::default(),
            without_required: Tally::default(),
            findings: BTreeMap::new(),
            invalid: Problem::new(problem::INVALID),
            duplicates: Problem::new(problem::DUPLICATE_ID),
            backwards: Problem::new(problem::TIME_BACKWARDS),
            starts: Problem::new(problem::START_WITHOUT_END),
            ends: Problem::new(problem::END_WITHOUT_START),
            unended: Problem::new(problem::SESSION_WITHOUT_END),
            after_end: Problem::new(problem::AFTER_END),
            open: HashMap::new(),
            ended: Seen::new(limits.ids),
            limits,
        }
    }

    pub(super) fn add(&mut self, event: &Event<'_>, ids: &mut Seen) {
        self.envelopes += 1;
        for finding in event.findings {
            *self.findings.entry(finding.code).or_default() += 1;
        }
        let session = event.text("session_id").unwrap_or_default();
        let error = event.findings.iter().find(|finding| finding.is_error());
        if let Some(error) = error {
            self.invalid.add(event.line, session, || error.to_string());
        }
        let required = event.findings.iter().find(|finding| is_required(finding));
        if let Some(violation) = required {
            self.without_required
                .add(event.line, session, || violation.to_string());
        }
        if let Some(id) = event.text("id").filter(|id| !id.is_empty())
            && !ids.insert(id_fingerprint(id))
        {
            // The same event again: an idempotency key is there to ignore it.
            self.duplicates.add(event.line, session, || id.to_owned());
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

    /// Only valid envelopes are evidence.
    fn count(&mut self, kind: &str, event: &Event<'_>, session: &str) {
        if let Some(tally) = self.events.get_mut(kind) {
            tally.add(event.line, session, String::new);
        } else if self.events.len() < MOST_TYPES {
            let mut tally = Tally::default();
            tally.add(event.line, session, String::new);
            self.events.insert(kind.to_owned(), tally);
        }
        let path = event
            .map
            .get("data")
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
    fn follow(&mut self, kind: &str, event: &Event<'_>, id: &str) {
        let line = event.line;
        let key = fingerprint(&[id]);
        if self.ended.contains(key) {
            if kind == event_type::SESSION_START {
                self.ended.remove(key);
            } else {
                self.after_end.add(line, id, || kind.to_owned());
                return;
            }
        }
        if !self.open.contains_key(id) {
            self.sessions += 1;
            if self.open.len() >= self.limits.open_sessions {
                self.forget_older_sessions();
            }
            self.open.insert(id.to_owned(), Session::new(line));
        }
        let Some(session) = self.open.get_mut(id) else {
            return;
        };
        session.last_line = line;
        if let Some(text) = event.text("time")
            && let Ok(time) = text.parse::<Timestamp>()
            && let Some(earlier) = session.tick(time, line)
        {
            self.backwards.add(line, id, || {
                format!("{text} is before the time of line {earlier}")
            });
        }
        let nothing = Map::new();
        let data = event.map.get("data").and_then(Value::as_object);
        match Data::read(kind, data.unwrap_or(&nothing)) {
            Data::ToolStart(ToolStart {
                tool_name,
                tool_call_id,
            }) => {
                if session.open_calls() >= self.limits.open_calls {
                    session.forget_older_calls(id, &mut self.starts);
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
                    self.ends
                        .add(line, id, || format!("{key} ended and did not start"));
                }
            }
            Data::SessionEnd(_) => {
                self.ended.insert(key);
                if let Some(session) = self.open.remove(id) {
                    session.close(id, &mut self.starts);
                }
            }
            _ => {}
        }
    }

    fn forget_older_sessions(&mut self) {
        let middle = middle(self.open.values().map(|session| session.last_line));
        let gone = self
            .open
            .extract_if(|_, session| session.last_line <= middle)
            .collect();
        self.give_up(gone);
    }

    fn give_up(&mut self, mut sessions: Vec<(String, Session)>) {
        sessions.sort_by_key(|(_, session)| session.first_line);
        for (id, session) in sessions {
            self.unended.add(session.first_line, &id, || {
                format!("last event at line {}", session.last_line)
            });
            session.close(&id, &mut self.starts);
        }
    }

    pub(super) fn report(mut self, source: String, evidence: Evidence) -> SourceReport {
        let open = self.open.drain().collect();
        self.give_up(open);
        let requirements = self.requirements(evidence);
        let level = (1..=3)
            .take_while(|level| {
                requirements
                    .iter()
                    .filter(|each| each.level == *level)
                    .all(|each| each.met)
            })
            .last()
            .unwrap_or(0);
        let problems = [
            self.invalid,
            self.duplicates,
            self.backwards,
            self.starts,
            self.ends,
            self.unended,
            self.after_end,
        ];
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
                .map(|(kind, tally)| (kind, tally.count))
                .collect(),
            requirements,
            problems: problems.into_iter().filter(|each| each.count > 0).collect(),
            findings: self.findings,
        }
    }

    fn requirements(&self, evidence: Evidence) -> Vec<Requirement> {
        let emits = |code, level, kind: &str, text| {
            let tally = self.events.get(kind);
            let count = tally.map_or(0, |tally| tally.count);
            Requirement {
                code,
                level,
                text,
                met: count > 0,
                count,
                example: tally.and_then(|tally| tally.first.clone()),
                note: None,
            }
        };
        let ends = self
            .events
            .get(event_type::SESSION_END)
            .map_or(0, |tally| tally.count);
        let bad = &self.without_required;
        let paths = self.with_transcript.count;
        vec![
            emits(
                requirement::SESSION_END,
                1,
                event_type::SESSION_END,
                "emits `session.end` events",
            ),
            Requirement {
                code: requirement::REQUIRED_FIELDS,
                level: 1,
                text: "every envelope has all required fields, in their form",
                met: bad.count == 0,
                count: self.envelopes - bad.count,
                example: bad.first.clone(),
                note: (bad.count > 0)
                    .then(|| format!("{} of {} envelopes do not", bad.count, self.envelopes)),
            },
            emits(
                requirement::SESSION_START,
                2,
                event_type::SESSION_START,
                "emits `session.start` events",
            ),
            emits(
                requirement::PROMPT_SUBMIT,
                2,
                event_type::PROMPT_SUBMIT,
                "emits `prompt.submit` events",
            ),
            emits(
                requirement::TOOL_START,
                2,
                event_type::TOOL_START,
                "emits `tool.start` events",
            ),
            emits(
                requirement::TOOL_END,
                2,
                event_type::TOOL_END,
                "emits `tool.end` events",
            ),
            Requirement {
                code: requirement::TRANSCRIPT_PATH,
                level: 2,
                text: "`session.end` has `data.transcript_path` when there is one",
                met: paths > 0 || !evidence.transcripts,
                count: paths,
                example: self.with_transcript.first.clone(),
                note: if !evidence.transcripts {
                    Some("the source is said to have no transcripts".to_owned())
                } else if paths < ends {
                    Some(format!("{paths} of {ends} `session.end` events have it"))
                } else {
                    None
                },
            },
            Requirement {
                code: requirement::DISCOVERY,
                level: 3,
                text: "supports the discovery file `.openhook.json`",
                met: evidence.discovery,
                count: u64::from(evidence.discovery),
                example: None,
                note: (!evidence.discovery)
                    .then(|| "a stream cannot show it; the caller can say so".to_owned()),
            },
        ]
    }
}

/// What a stream cannot show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    pub discovery: bool,
    pub transcripts: bool,
}

/// A violation of a field that every envelope has.
fn is_required(finding: &Finding) -> bool {
    const REQUIRED: [&str; 6] = [
        "/openhook",
        "/id",
        "/source",
        "/type",
        "/time",
        "/session_id",
    ];
    finding.is_error() && REQUIRED.contains(&finding.field.as_str())
}

fn id_fingerprint(id: &str) -> u128 {
    // The hyphens make a UUID 36 bytes; its 16 are its own fingerprint.
    match uuid::Uuid::try_parse(id) {
        Ok(uuid) if id.len() == 36 => uuid.as_u128(),
        _ => fingerprint(&[id]),
    }
}

/// Calls without an id are paired by their tool's name.
fn call_key(name: Option<&str>, id: Option<&str>) -> String {
    match (name, id) {
        (_, Some(id)) => format!("call `{id}`"),
        (Some(name), None) => format!("tool `{name}`"),
        (None, None) => "a nameless call".to_owned(),
    }
}
