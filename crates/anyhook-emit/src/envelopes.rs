//! One canonical event, as the envelopes that OpenHook has for it.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use openhook::{
    EndReason, Envelope, FileWrite, PromptSubmit, SessionEnd, SessionStart, Timestamp, ToolEnd,
    ToolStart, ToolStatus, end_reason, event_type, model_id, stable_id,
};
use serde_json::{Map, Value, json};

use crate::change::{self, Change};
use crate::memory::{Call, Course, Ended, Memory, Seen};
use crate::transcript;
use crate::world::{Session, World};

/// The key of [`Envelope::extensions`] for what the protocol has no place for:
/// `tool` (canonical), `mcp`, `agent_id` and `agent_type` of a subagent, and
/// `synthesized` on an event that the agent itself does not send.
pub const EXTENSION: &str = "dev.anyhook";

/// An event without a session is told under this name, as in [`openhook::legacy`].
const UNKNOWN: &str = "unknown";

/// What an agent leaves out and the caller wants told all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The agent never tells that a session begins: its first event does.
    pub synthesize_start: bool,
    /// The agent never tells that a session ends: every rest does, and the
    /// next event begins the session again.
    pub synthesize_end: bool,
}

/// The envelopes of an event of an agent that tells begin and end of sessions.
pub fn envelopes(event: &HookEvent, world: &dyn World) -> Vec<Envelope> {
    envelopes_with(event, world, Options::default())
}

/// The envelopes of an event, in their order. Each conforms to OpenHook 0.1.
///
/// The same native event gives the same ids, however often it is delivered.
/// Its `timestamp` must be the agent's own, or absent: a time that the caller
/// fills in would make every delivery another event. A call that was refused
/// never runs and should not be told.
///
/// Every event is worth passing, also those that give no envelope: a rest of
/// the agent, a path of the transcript, a name of the model are remembered.
pub fn envelopes_with(event: &HookEvent, world: &dyn World, options: Options) -> Vec<Envelope> {
    let teller = Teller::new(event, world, options);
    match event.event.as_str() {
        "session_start" => teller.session_start(),
        "session_end" => teller.session_end(false),
        "before_prompt" => teller.prompt(),
        "before_tool_execute" => teller.tool_start(),
        "after_tool_execute" | "after_tool_failure" => teller.tool_end(),
        "agent_stop" => teller.rest(),
        _ => teller.aside(),
    }
}

struct Teller<'a> {
    event: &'a HookEvent,
    world: &'a dyn World,
    options: Options,
    source: String,
    session: &'a str,
    /// The agent's own time, or nothing.
    mark: &'a str,
    at_ms: i64,
    time: String,
}

impl<'a> Teller<'a> {
    fn new(event: &'a HookEvent, world: &'a dyn World, options: Options) -> Self {
        let own = event.timestamp.as_deref().and_then(|text| {
            let time: Timestamp = text.parse().ok()?;
            Some((text, time.unix_millis()))
        });
        let (mark, at_ms, time) = if let Some((text, at_ms)) = own {
            (text, at_ms, text.to_owned())
        } else {
            let now = world.now_ms();
            let time = Timestamp::from_unix_millis(now).map(|now| now.to_string());
            let epoch = || "1970-01-01T00:00:00Z".to_owned();
            ("", now, time.unwrap_or_else(epoch))
        };
        Self {
            event,
            world,
            options,
            source: kebab_case(&event.source),
            session: event
                .session_id
                .as_deref()
                .filter(|id| !id.is_empty())
                .unwrap_or(UNKNOWN),
            mark,
            at_ms,
            time,
        }
    }

    fn session_start(&self) -> Vec<Envelope> {
        // The conversation was shortened; the session goes on.
        if self.event.text(field::START_SOURCE) == Some("compact") {
            return self.aside();
        }
        let digest = self.digest();
        let number = self.remember(|memory| {
            memory.start_session(self.at_ms);
            self.number(memory, &digest)
        });
        let id = self.id(event_type::SESSION_START, &[&digest, &number]);
        self.begin(id, false).into_iter().collect()
    }

    fn begin(&self, id: String, synthesized: bool) -> Option<Envelope> {
        let model = self.event.text(field::MODEL).map(model_id);
        let data = SessionStart {
            model: model.as_deref(),
        };
        let mut extra = Map::new();
        if synthesized {
            extra.insert("synthesized".to_owned(), true.into());
        }
        self.envelope(event_type::SESSION_START, id, data.into(), extra)
    }

    fn prompt(&self) -> Vec<Envelope> {
        let prompt = self.event.text(field::PROMPT);
        // Some agents ask their hooks again after every tool, with no words.
        if prompt == Some("") {
            return self.aside();
        }
        let digest = self.digest();
        let (number, course) = self.remember(|memory| {
            let course = memory.go_on(self.at_ms);
            (self.number(memory, &digest), course)
        });
        let id = self.id(event_type::PROMPT_SUBMIT, &[&digest, &number]);
        let data = PromptSubmit {
            prompt_length: prompt.map(|prompt| prompt.chars().count() as u64),
        };
        let told = self.envelope(event_type::PROMPT_SUBMIT, id, data.into(), Map::new());
        self.after_begin(course, told.into_iter().collect())
    }

    fn tool_start(&self) -> Vec<Envelope> {
        let changes = change::changes(self.event);
        let key = self.call_key();
        let (call, course) = self.remember(|memory| {
            let course = memory.go_on(self.at_ms);
            let look = || change::absent(&changes, self.world);
            let digest = self.call_digest(&key);
            (memory.start_call(self.seen(&key, &digest), look), course)
        });
        let id = self.id(event_type::TOOL_START, &[&call, &key]);
        let data = ToolStart {
            tool_name: self.event.native_tool_name(),
            tool_call_id: Some(&call),
        };
        let told = self.envelope(event_type::TOOL_START, id, data.into(), self.tool_extra());
        self.after_begin(course, told.into_iter().collect())
    }

    fn tool_end(&self) -> Vec<Envelope> {
        let key = self.call_key();
        let (call, course, model) = self.remember(|memory| {
            let course = memory.go_on(self.at_ms);
            let digest = self.call_digest(&key);
            let call = memory.end_call(self.seen(&key, &digest));
            (call, course, memory.model.clone())
        });
        let succeeded = change::succeeded(self.event);
        let status = if succeeded {
            ToolStatus::Success
        } else {
            ToolStatus::Error
        };
        let data = ToolEnd {
            tool_name: self.event.native_tool_name(),
            tool_call_id: Some(&call.id),
            status: Some(status),
            duration_ms: self.said_duration().or(call.duration_ms),
        };
        let id = self.id(event_type::TOOL_END, &[&call.id, &key]);
        let told = self.envelope(event_type::TOOL_END, id, data.into(), self.tool_extra());
        let mut told: Vec<Envelope> = told.into_iter().collect();
        if succeeded {
            let changes = change::changes(self.event);
            let model = (!changes.is_empty())
                .then(|| self.model_now().or(model))
                .flatten()
                .map(|model| model_id(&model));
            told.extend(
                changes
                    .iter()
                    .filter_map(|change| self.file_write(change, &call, &key, model.as_deref())),
            );
        }
        self.after_begin(course, told)
    }

    fn file_write(
        &self,
        change: &Change<'_>,
        call: &Call,
        key: &str,
        model: Option<&str>,
    ) -> Option<Envelope> {
        let output = self.event.data.get(field::TOOL_OUTPUT);
        let operation = change.operation(call.absent.as_deref(), output, self.world)?;
        let lines = change.lines(operation, self.world);
        let data = FileWrite {
            path: Some(&change.path),
            operation: Some(operation),
            start_line: lines.map(|(start, _)| start),
            end_line: lines.map(|(_, end)| end),
            model,
            tool_call_id: Some(&call.id),
        };
        let id = self.id(event_type::FILE_WRITE, &[&call.id, key, &change.path]);
        self.envelope(event_type::FILE_WRITE, id, data.into(), self.tool_extra())
    }

    fn rest(&self) -> Vec<Envelope> {
        if self.options.synthesize_end {
            return self.session_end(true);
        }
        let digest = self.digest();
        self.remember(|memory| {
            memory.number(&digest);
            memory.go_on(self.at_ms);
            memory.end_turn();
        });
        Vec::new()
    }

    fn session_end(&self, synthesized: bool) -> Vec<Envelope> {
        let digest = self.digest();
        let ended = self.remember(|memory| {
            let number = self.number(memory, &digest);
            let duration = memory
                .started_ms()
                .and_then(|start| u64::try_from(self.at_ms.saturating_sub(start)).ok());
            memory.end_session(Ended {
                id: self.id(event_type::SESSION_END, &[&digest, &number]),
                duration_ms: duration,
                model: memory.model.clone(),
                transcript: memory.transcript.clone(),
            })
        });
        let transcript = self
            .event
            .text(field::TRANSCRIPT_PATH)
            .filter(|path| !path.is_empty())
            .or(ended.transcript.as_deref());
        let tail = transcript.and_then(|path| self.world.read_tail(path, transcript::TOTALS_LIMIT));
        let totals = tail.as_ref().and_then(transcript::totals);
        let model = self
            .event
            .text(field::MODEL)
            .map(str::to_owned)
            .or_else(|| tail.as_ref().and_then(transcript::model))
            .or(ended.model)
            .map(|model| model_id(&model));
        let reason = self.event.text(field::REASON).and_then(end_reason);
        let reason = match (reason.and_then(EndReason::parse), synthesized) {
            (None, true) => Some(EndReason::Completed),
            (reason, _) => reason,
        };
        let data = SessionEnd {
            transcript_path: transcript,
            reason,
            model: model.as_deref(),
            duration_ms: self
                .said_duration()
                .filter(|_| !synthesized)
                .or(ended.duration_ms),
            input_tokens: self
                .said_count("input_tokens")
                .or(totals.map(|totals| totals.input)),
            output_tokens: self
                .said_count("output_tokens")
                .or(totals.map(|totals| totals.output)),
        };
        let mut extra = Map::new();
        if synthesized {
            extra.insert("synthesized".to_owned(), true.into());
        }
        let told = self.envelope(event_type::SESSION_END, ended.id, data.into(), extra);
        told.into_iter().collect()
    }

    /// An event that OpenHook has no place for.
    fn aside(&self) -> Vec<Envelope> {
        let digest = self.digest();
        self.remember(|memory| {
            memory.number(&digest);
        });
        Vec::new()
    }

    /// What is told, after the begin of the session where that is told here.
    fn after_begin(&self, course: Course, told: Vec<Envelope>) -> Vec<Envelope> {
        let is_told = match course {
            Course::Begun => self.options.synthesize_start,
            Course::Reopened => self.options.synthesize_end,
            Course::Running => false,
        };
        let cause = told.first().filter(|_| is_told);
        let begin = cause
            .and_then(|cause| self.begin(self.id(event_type::SESSION_START, &[&cause.id]), true));
        begin.into_iter().chain(told).collect()
    }

    fn envelope(
        &self,
        kind: &str,
        id: String,
        data: Map<String, Value>,
        mut extra: Map<String, Value>,
    ) -> Option<Envelope> {
        for key in [field::AGENT_ID, field::AGENT_TYPE] {
            if let Some(value) = self.event.text(key) {
                extra.insert(key.to_owned(), value.into());
            }
        }
        let mut envelope = Envelope::builder(&*self.source, kind, self.session)
            .id(id)
            .time(&*self.time)
            .data(data);
        if let Some(cwd) = self.event.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            envelope = envelope.directory(cwd);
        }
        if !extra.is_empty() {
            envelope = envelope.extension(EXTENSION, extra);
        }
        envelope.build().ok()
    }

    fn tool_extra(&self) -> Map<String, Value> {
        let mut extra = Map::new();
        if let Some(tool) = self.event.tool_name()
            && Some(tool) != self.event.native_tool_name()
        {
            extra.insert("tool".to_owned(), tool.into());
        }
        if let Some((server, tool)) = self.event.mcp() {
            extra.insert("mcp".to_owned(), json!({"server": server, "tool": tool}));
        }
        extra
    }

    fn id(&self, kind: &str, parts: &[&str]) -> String {
        let mut all = vec![&*self.source, self.session, &self.event.native_event, kind];
        all.extend(parts);
        stable_id(&all)
    }

    /// What the event says, in short: two events that differ in anything that
    /// the agent said have different ones.
    fn digest(&self) -> String {
        let event = self.event;
        let mut data = event.data.clone();
        // It may be long, and the rest tells the event.
        data.shift_remove(field::TOOL_OUTPUT);
        let said = json!([
            event.event,
            event.native_event,
            self.mark,
            data,
            event.metadata
        ]);
        stable_id(&[&said.to_string()])
    }

    fn call_key(&self) -> String {
        let tool = self.event.native_tool_name().unwrap_or_default();
        let input = self.event.data.get(field::TOOL_INPUT);
        stable_id(&[tool, &input.map(Value::to_string).unwrap_or_default()])
    }

    fn call_digest(&self, key: &str) -> String {
        let id = self.event.text(field::TOOL_CALL_ID).unwrap_or_default();
        stable_id(&[&self.event.native_event, self.mark, id, key])
    }

    fn seen<'b>(&'b self, key: &'b str, digest: &'b str) -> Seen<'b> {
        Seen {
            id: self
                .event
                .text(field::TOOL_CALL_ID)
                .filter(|id| !id.is_empty()),
            key,
            tool: self.event.native_tool_name().unwrap_or_default(),
            mark: self.mark,
            at_ms: self.at_ms,
            digest,
            scope: [&self.source, self.session],
        }
    }

    /// The number of an event that does not say when it was.
    fn number(&self, memory: &mut Memory, digest: &str) -> String {
        let number = memory.number(digest);
        if self.mark.is_empty() {
            number.to_string()
        } else {
            String::new()
        }
    }

    fn remember<T>(&self, change: impl Fn(&mut Memory) -> T) -> T {
        let session = Session {
            source: &self.source,
            id: self.session,
        };
        let noted = |memory: &mut Memory| {
            let note = |key, place: &mut Option<String>| {
                if let Some(value) = self.event.text(key).filter(|value| !value.is_empty())
                    && place.as_deref() != Some(value)
                {
                    *place = Some(value.to_owned());
                }
            };
            note(field::MODEL, &mut memory.model);
            note(field::TRANSCRIPT_PATH, &mut memory.transcript);
            change(memory)
        };
        let mut answer = None;
        self.world
            .remember(session, &mut |memory| answer = Some(noted(memory)));
        // A world that does not call has no memory.
        answer.unwrap_or_else(|| noted(&mut Memory::default()))
    }

    /// The model at work: as the event says, or as the transcript ends.
    fn model_now(&self) -> Option<String> {
        if let Some(model) = self.event.text(field::MODEL) {
            return Some(model.to_owned());
        }
        let path = self.event.text(field::TRANSCRIPT_PATH)?;
        let tail = self.world.read_tail(path, transcript::MODEL_LIMIT)?;
        transcript::model(&tail)
    }

    fn said_duration(&self) -> Option<u64> {
        self.event.data.get(field::DURATION_MS).and_then(whole)
    }

    fn said_count(&self, key: &str) -> Option<u64> {
        let native = || self.event.metadata.get(anyhook_model::event::NATIVE);
        let value = self.event.data.get(key).or_else(|| native()?.get(key))?;
        whole(value)
    }
}

/// A count, also when an agent gives fractions.
fn whole(value: &Value) -> Option<u64> {
    /// Above this a float has no fractions to round.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?.round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and in range"
        )]
        (0.0..=EXACT).contains(&number).then_some(number as u64)
    })
}

/// Slugs are kebab-case; whatever else a caller gives becomes so.
fn kebab_case(name: &str) -> String {
    let words: Vec<String> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let joined = words.join("-");
    match joined.chars().next() {
        None => UNKNOWN.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("agent-{joined}"),
        Some(_) => joined,
    }
}
