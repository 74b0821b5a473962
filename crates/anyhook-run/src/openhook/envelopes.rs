//! Maps one canonical event to its OpenHook envelopes.

use std::borrow::Cow;

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use openhook::{
    EndReason, Envelope, FileWrite, PromptSubmit, SessionEnd, SessionStart, Timestamp, ToolEnd,
    ToolStart, ToolStatus, end_reason, event_type, model_id, stable_id,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::file_changes::{self, FileChange};
use super::machine::{Machine, SessionKey};
use super::make::rfc3339;
use super::session_memory::{
    SessionEndRecord, SessionMemory, SessionPhase, ToolCall, ToolCallEvent,
};
use super::transcript;

/// The key of [`Envelope::extensions`] for what the protocol does not define:
/// `tool` (canonical), `mcp`, `agent_id` and `agent_type` of a subagent, `cost_usd` of a
/// session that ends, and `synthesized` on an event that the agent itself does not send.
pub const EXTENSION: &str = "dev.anyhook";

/// Begins the session of an event that has none, and is the source of one without a name.
const UNKNOWN: &str = "unknown";

/// Which fields of an envelope name the folder of its event: `cwd` is the field of the
/// protocol's older text, `context` that of the newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderFields {
    Cwd,
    Context,
    #[default]
    Both,
}

impl FolderFields {
    /// Removes the field that is not wanted.
    pub fn apply(self, envelope: &mut Envelope) {
        match self {
            Self::Cwd => envelope.context = None,
            Self::Context => envelope.cwd = None,
            Self::Both => {}
        }
    }
}

/// Events that an agent does not send and that are synthesized.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EnvelopeOptions {
    /// The agent does not report the start of a session: its first event is it.
    pub synthesize_start: bool,
    /// The agent does not report the end of a session: every end of a turn is
    /// one, and the next event starts the session again.
    pub synthesize_end: bool,
    pub folder_fields: FolderFields,
    /// What the session has cost so far, in US dollars, if that is known.
    pub session_cost_usd: Option<f64>,
}

/// The envelopes of an event of an agent that reports start and end of sessions.
pub fn envelopes(event: &HookEvent, machine: &dyn Machine) -> Vec<Envelope> {
    envelopes_with(event, machine, EnvelopeOptions::default())
}

/// The envelopes of an event, in their order. Each conforms to OpenHook 0.1.
///
/// The same native event has the same ids, however often it is delivered. Its
/// `timestamp` must be the agent's own, or absent: a time that the caller fills
/// in would make every delivery a different event. A call that was refused never
/// runs and should not be passed.
///
/// Pass every event, also those without an envelope: the end of a turn, the path
/// of the transcript and the name of the model are remembered.
pub fn envelopes_with(
    event: &HookEvent,
    machine: &dyn Machine,
    options: EnvelopeOptions,
) -> Vec<Envelope> {
    let mapper = EnvelopeMapper::new(event, machine, options);
    match event.event.as_str() {
        "session_start" => mapper.session_start(),
        "session_end" => mapper.session_end(false),
        "before_prompt" => mapper.prompt(),
        "before_tool_execute" => mapper.tool_start(),
        "after_tool_execute" | "tool_use_failure" => mapper.tool_end(),
        "agent_stop" => mapper.turn_end(),
        _ => mapper.remember_only(),
    }
}

struct EnvelopeMapper<'a> {
    event: &'a HookEvent,
    machine: &'a dyn Machine,
    options: EnvelopeOptions,
    source: String,
    session: Cow<'a, str>,
    /// Under which the session is remembered.
    memory_key: Cow<'a, str>,
    /// The agent's own time, or nothing.
    mark: &'a str,
    at_ms: i64,
    time: String,
}

impl<'a> EnvelopeMapper<'a> {
    fn new(event: &'a HookEvent, machine: &'a dyn Machine, options: EnvelopeOptions) -> Self {
        let own = event.timestamp.as_deref().and_then(|text| {
            let time: Timestamp = text.parse().ok()?;
            Some((text, time.unix_millis()))
        });
        let (mark, at_ms, time) = if let Some((text, at_ms)) = own {
            (text, at_ms, text.to_owned())
        } else {
            let now = machine.now_ms();
            ("", now, rfc3339(now))
        };
        let id = event.session_id.as_deref().filter(|id| !id.is_empty());
        let folder = || format!("{UNKNOWN} {}", event.cwd.as_deref().unwrap_or_default());
        let mut mapper = Self {
            event,
            machine,
            options,
            source: kebab_case(&event.source),
            session: Cow::Borrowed(id.unwrap_or(UNKNOWN)),
            memory_key: id.map_or_else(|| Cow::Owned(folder()), Cow::Borrowed),
            mark,
            at_ms,
            time,
        };
        if id.is_none() {
            mapper.session = Cow::Owned(mapper.made_session());
        }
        mapper
    }

    /// The session of an agent that does not name its sessions: those of other folders, and
    /// those that begin later, are other sessions.
    fn made_session(&self) -> String {
        let digest = self.digest();
        let starts = self.event.event == "session_start"
            && self.event.text(field::START_SOURCE) != Some("compact");
        let parts = [&*self.source, &*self.memory_key, &*self.at_ms.to_string()];
        let name = || format!("{UNKNOWN}-{}", stable_id(&parts));
        self.remember(|memory| {
            let begins = starts || (memory.has_ended() && !self.options.synthesize_end);
            memory.session_name(begins, &digest, name)
        })
    }

    fn session_start(&self) -> Vec<Envelope> {
        // The conversation was compacted; the session continues.
        if self.event.text(field::START_SOURCE) == Some("compact") {
            return self.remember_only();
        }
        let digest = self.digest();
        let number = self.remember(|memory| {
            memory.start_session(self.at_ms);
            self.number(memory, &digest)
        });
        let id = self.id(event_type::SESSION_START, &[&digest, &number]);
        self.session_start_envelope(id, false)
    }

    fn session_start_envelope(&self, id: String, synthesized: bool) -> Vec<Envelope> {
        let data = SessionStart {
            model: self.event.text(field::MODEL),
        };
        let extra = synthesized_extra(synthesized);
        self.envelope(event_type::SESSION_START, id, data.into(), extra)
    }

    fn prompt(&self) -> Vec<Envelope> {
        let prompt = self.event.text(field::PROMPT);
        // Some agents call their hooks again after every tool, with an empty prompt.
        if prompt == Some("") {
            return self.remember_only();
        }
        let digest = self.digest();
        let (number, phase) = self.remember(|memory| {
            let phase = memory.continue_session(self.at_ms);
            (self.number(memory, &digest), phase)
        });
        let id = self.id(event_type::PROMPT_SUBMIT, &[&digest, &number]);
        let data = PromptSubmit {
            prompt_length: prompt.map(|prompt| prompt.chars().count() as u64),
        };
        let envelopes = self.envelope(event_type::PROMPT_SUBMIT, id, data.into(), Map::new());
        self.with_session_start(phase, envelopes)
    }

    fn tool_start(&self) -> Vec<Envelope> {
        let changes = file_changes::changes(self.event);
        let key = self.call_key();
        let (call, phase) = self.remember(|memory| {
            let phase = memory.continue_session(self.at_ms);
            let absent_files = || file_changes::absent(&changes, self.machine);
            let call = memory.start_call(&self.call_event(&key), absent_files);
            (call, phase)
        });
        let id = self.id(event_type::TOOL_START, &[&call, &key]);
        let data = ToolStart {
            tool_name: self.event.native_tool_name(),
            tool_call_id: Some(&call),
        };
        let envelopes = self.envelope(event_type::TOOL_START, id, data.into(), self.tool_extra());
        self.with_session_start(phase, envelopes)
    }

    fn tool_end(&self) -> Vec<Envelope> {
        let key = self.call_key();
        let (call, phase, model) = self.remember(|memory| {
            let phase = memory.continue_session(self.at_ms);
            let call = memory.end_call(&self.call_event(&key));
            (call, phase, memory.model.clone())
        });
        let succeeded = file_changes::succeeded(self.event);
        let status = if succeeded {
            ToolStatus::Success
        } else {
            ToolStatus::Error
        };
        let data = ToolEnd {
            tool_name: self.event.native_tool_name(),
            tool_call_id: Some(&call.id),
            status: Some(status),
            duration_ms: self.reported_duration().or(call.duration_ms),
        };
        let id = self.id(event_type::TOOL_END, &[&call.id, &key]);
        let mut envelopes = self.envelope(event_type::TOOL_END, id, data.into(), self.tool_extra());
        if succeeded {
            let changes = file_changes::changes(self.event);
            let model = (!changes.is_empty())
                .then(|| self.current_model().or(model))
                .flatten()
                .map(|model| model_id(&model));
            for change in &changes {
                let written = self.file_write(change, &call, &key, model.as_deref());
                envelopes.extend(written.unwrap_or_default());
            }
        }
        self.with_session_start(phase, envelopes)
    }

    fn file_write(
        &self,
        change: &FileChange<'_>,
        call: &ToolCall,
        key: &str,
        model: Option<&str>,
    ) -> Option<Vec<Envelope>> {
        let output = self.event.data.get(field::TOOL_OUTPUT);
        let operation = change.operation(call.absent.as_deref(), output, self.machine)?;
        let lines = change.lines(operation, self.machine);
        let data = FileWrite {
            path: Some(&change.path),
            operation: Some(operation),
            start_line: lines.map(|(start, _)| start),
            end_line: lines.map(|(_, end)| end),
            model,
            tool_call_id: Some(&call.id),
        };
        let id = self.id(event_type::FILE_WRITE, &[&call.id, key, &change.path]);
        Some(self.envelope(event_type::FILE_WRITE, id, data.into(), self.tool_extra()))
    }

    fn turn_end(&self) -> Vec<Envelope> {
        if self.options.synthesize_end {
            return self.session_end(true);
        }
        let digest = self.digest();
        self.remember(|memory| {
            memory.number(&digest);
            memory.continue_session(self.at_ms);
            memory.end_turn();
        });
        Vec::new()
    }

    fn session_end(&self, synthesized: bool) -> Vec<Envelope> {
        let digest = self.digest();
        let ended = self.remember(|memory| {
            let number = self.number(memory, &digest);
            let duration = memory
                .started_ms
                .and_then(|start| u64::try_from(self.at_ms.saturating_sub(start)).ok());
            memory.end_session(SessionEndRecord {
                id: self.id(event_type::SESSION_END, &[&digest, &number]),
                duration_ms: duration,
                model: memory.model.clone(),
                transcript: memory.transcript.clone(),
            })
        });
        let transcript = self.text(field::TRANSCRIPT_PATH);
        let transcript = transcript.or(ended.transcript.as_deref());
        let tail =
            transcript.and_then(|path| self.machine.read_tail(path, transcript::MAX_TOTALS_BYTES));
        let totals = tail.as_ref().and_then(transcript::totals);
        let model = self
            .event
            .text(field::MODEL)
            .map(str::to_owned)
            .or_else(|| tail.as_ref().and_then(transcript::model))
            .or(ended.model);
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
                .reported_duration()
                .filter(|_| !synthesized)
                .or(ended.duration_ms),
            input_tokens: self
                .reported_count("input_tokens")
                .or(totals.map(|totals| totals.input)),
            output_tokens: self
                .reported_count("output_tokens")
                .or(totals.map(|totals| totals.output)),
        };
        let mut extra = synthesized_extra(synthesized);
        if let Some(usd) = self.options.session_cost_usd {
            extra.insert("cost_usd".to_owned(), usd.into());
        }
        self.envelope(event_type::SESSION_END, ended.id, data.into(), extra)
    }

    /// An event that has no envelope.
    fn remember_only(&self) -> Vec<Envelope> {
        let digest = self.digest();
        self.remember(|memory| {
            memory.number(&digest);
        });
        Vec::new()
    }

    /// The envelopes, after a synthesized start of the session if one is needed.
    fn with_session_start(&self, phase: SessionPhase, envelopes: Vec<Envelope>) -> Vec<Envelope> {
        let is_synthesized = match phase {
            SessionPhase::Started => self.options.synthesize_start,
            SessionPhase::Reopened => self.options.synthesize_end,
            SessionPhase::Running => false,
        };
        let cause = envelopes.first().filter(|_| is_synthesized);
        let id = cause.map(|cause| self.id(event_type::SESSION_START, &[&cause.id]));
        let start = id.map(|id| self.session_start_envelope(id, true));
        start.into_iter().flatten().chain(envelopes).collect()
    }

    /// Nothing if the envelope would not conform to OpenHook.
    fn envelope(
        &self,
        kind: &str,
        id: String,
        data: Map<String, Value>,
        mut extra: Map<String, Value>,
    ) -> Vec<Envelope> {
        for key in [field::AGENT_ID, field::AGENT_TYPE] {
            if let Some(value) = self.event.text(key) {
                extra.insert(key.to_owned(), value.into());
            }
        }
        let mut envelope = Envelope::builder(&*self.source, kind, &*self.session)
            .id(id)
            .time(&*self.time)
            .data(data);
        if let Some(cwd) = self.event.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            envelope = envelope.directory(cwd);
        }
        if !extra.is_empty() {
            envelope = envelope.extension(EXTENSION, extra);
        }
        let mut envelope = envelope.build().ok();
        if let Some(envelope) = &mut envelope {
            self.options.folder_fields.apply(envelope);
        }
        envelope.into_iter().collect()
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
        let mut all = vec![
            &*self.source,
            &*self.session,
            &self.event.native_event,
            kind,
        ];
        all.extend(parts);
        stable_id(&all)
    }

    /// A digest of the event: two events that differ in anything that the agent
    /// sent have different ones.
    fn digest(&self) -> String {
        let event = self.event;
        let mut data = event.data.clone();
        // It may be long, and the rest identifies the event.
        data.shift_remove(field::TOOL_OUTPUT);
        let content = json!([
            event.event,
            event.native_event,
            self.mark,
            data,
            event.metadata
        ]);
        stable_id(&[&content.to_string()])
    }

    fn call_key(&self) -> String {
        let tool = self.event.native_tool_name().unwrap_or_default();
        let input = self.event.data.get(field::TOOL_INPUT);
        stable_id(&[tool, &input.map(Value::to_string).unwrap_or_default()])
    }

    fn call_event<'b>(&'b self, key: &'b str) -> ToolCallEvent<'b> {
        let id = self.text(field::TOOL_CALL_ID);
        let native = &self.event.native_event;
        ToolCallEvent {
            id,
            key,
            tool: self.event.native_tool_name().unwrap_or_default(),
            mark: self.mark,
            at_ms: self.at_ms,
            digest: stable_id(&[native, self.mark, id.unwrap_or_default(), key]),
            scope: [&self.source, &self.session],
        }
    }

    /// The number of an event; empty if the agent gives a time.
    fn number(&self, memory: &mut SessionMemory, digest: &str) -> String {
        let number = memory.number(digest);
        let number = self.mark.is_empty().then(|| number.to_string());
        number.unwrap_or_default()
    }

    fn remember<T>(&self, change: impl Fn(&mut SessionMemory) -> T) -> T {
        let session = SessionKey {
            source: &self.source,
            id: &self.memory_key,
        };
        let noted = |memory: &mut SessionMemory| {
            let note = |key, place: &mut Option<String>| {
                if let Some(value) = self.text(key)
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
        self.machine
            .remember(session, &mut |memory| answer = Some(noted(memory)));
        // A machine that does not call has no memory.
        answer.unwrap_or_else(|| noted(&mut SessionMemory::default()))
    }

    /// The current model: of the event, or the last one of the transcript.
    fn current_model(&self) -> Option<String> {
        if let Some(model) = self.event.text(field::MODEL) {
            return Some(model.to_owned());
        }
        let path = self.event.text(field::TRANSCRIPT_PATH)?;
        let tail = self.machine.read_tail(path, transcript::MAX_MODEL_BYTES)?;
        transcript::model(&tail)
    }

    /// A text of the event that is not empty.
    fn text(&self, key: &str) -> Option<&'a str> {
        self.event.text(key).filter(|text| !text.is_empty())
    }

    fn reported_duration(&self) -> Option<u64> {
        rounded_count(self.event.data.get(field::DURATION_MS)?)
    }

    fn reported_count(&self, key: &str) -> Option<u64> {
        let native = || self.event.metadata.get(anyhook_model::event::NATIVE);
        let value = self.event.data.get(key).or_else(|| native()?.get(key))?;
        rounded_count(value)
    }
}

fn synthesized_extra(synthesized: bool) -> Map<String, Value> {
    let entry = synthesized.then(|| ("synthesized".to_owned(), true.into()));
    entry.into_iter().collect()
}

/// A count, even if an agent gives fractions.
fn rounded_count(value: &Value) -> Option<u64> {
    /// Above this a float has no fractions to round.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?.round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and in range"
        )]
        (0.0..=MAX_EXACT_INTEGER)
            .contains(&number)
            .then_some(number as u64)
    })
}

/// Slugs are kebab-case; other names are converted.
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
