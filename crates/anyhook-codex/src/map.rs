//! Messages of the app-server as canonical events. Pure: no clock, no I/O; a
//! message without a time gives an event without one.
//!
//! Events come from messages of the *server*: a client's request may be refused.
//! The one exception is a resumed thread, which the server announces only by its
//! answer to the client's `thread/resume`.
//!
//! `item/started` of a tool gives no event. Nothing can be decided there, and the
//! approval request that may follow is the `before_tool_execute` of the same item;
//! the item is remembered so that the request is complete.

use anyhook_model::HookEvent;
use anyhook_model::event::{NATIVE, field};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::approval::Approval;
use crate::bounded_map::BoundedMap;
use crate::items::{agent_message, user_prompt};
use crate::request::ApprovalMethod;
use crate::tools::{Object, ToolCall, put, take_text, text};
use crate::wire::{IncomingMessage, RequestId, parse_raw};

/// The agent of all events of this crate.
pub const SOURCE: &str = "codex";

// How much is remembered: enough for one user's threads, and bounded.
const MAX_THREADS: usize = 1024;
const MAX_ITEMS: usize = 512;
const MAX_REQUESTS: usize = 256;

/// What a message of the server means for hooks.
#[derive(Debug)]
pub enum MappedMessage {
    Nothing,
    /// Hooks are notified.
    Event(Box<HookEvent>),
    /// Hooks may answer.
    Approval(Box<Approval>),
    /// The server no longer waits for the answer to this request.
    Resolved(RequestId),
}

/// Maps messages to events, with what earlier messages contained.
#[derive(Debug)]
pub struct Mapper {
    pub(crate) threads: BoundedMap<String, ThreadState>,
    /// Items that are in progress, by thread and item.
    pub(crate) items: BoundedMap<(String, String), ToolCall>,
    /// Turns that have begun and whose prompt has not come yet.
    pub(crate) new_turns: BoundedMap<String, ()>,
    resume_requests: BoundedMap<RequestId, ()>,
}

#[derive(Debug, Default)]
pub(crate) struct ThreadState {
    cwd: Option<String>,
    path: Option<String>,
    model: Option<String>,
    pub(crate) last_message: Option<String>,
    is_subagent: bool,
    phase: ThreadPhase,
}

#[derive(Debug, Default, PartialEq)]
enum ThreadPhase {
    #[default]
    Unknown,
    Open,
    Ended,
}

/// The part of a thread that events need; the rest, perhaps a long history, is
/// skipped.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadHeader {
    id: String,
    cwd: Option<String>,
    path: Option<String>,
    model: Option<String>,
    parent_thread_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ThreadResult<T> {
    thread: T,
}

/// The turns of a thread; only the last one is parsed.
#[derive(Debug, Deserialize)]
struct ThreadTurns<'a> {
    #[serde(default, borrow)]
    turns: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct TurnItems {
    #[serde(default)]
    items: Vec<Object>,
}

impl Default for Mapper {
    fn default() -> Self {
        Self {
            threads: BoundedMap::new(MAX_THREADS),
            items: BoundedMap::new(MAX_ITEMS),
            new_turns: BoundedMap::new(MAX_THREADS),
            resume_requests: BoundedMap::new(MAX_REQUESTS),
        }
    }
}

impl Mapper {
    /// Takes note of a message from the client to the server.
    pub fn observe_client(&mut self, message: &IncomingMessage) {
        if let (Some(id), Some("thread/resume")) = (&message.id, message.method()) {
            self.resume_requests.insert(id.clone(), ());
        }
    }

    /// Maps a message of the server.
    pub fn map_server(&mut self, message: &IncomingMessage) -> MappedMessage {
        let Some(method) = message.method() else {
            return mapped(self.thread_resumed(message));
        };
        if let Some(kind) = ApprovalMethod::from_name(method) {
            return self
                .approval(message, kind)
                .unwrap_or(MappedMessage::Nothing);
        }
        mapped(match method {
            "thread/started" => self.thread_started(message),
            "thread/archived" | "thread/archive" | "thread/closed" | "thread/deleted" => {
                self.thread_ended(message)
            }
            "turn/started" => self.turn_started(message),
            "turn/completed" => self.turn_completed(message),
            "item/started" => self.item_started(message),
            "item/completed" => self.item_completed(message),
            "item/fileChange/patchUpdated" => {
                self.patch_updated(message);
                None
            }
            "thread/tokenUsage/updated" => self.tokens_used(message),
            "thread/settings/updated" | "model/rerouted" => {
                self.model_changed(message);
                None
            }
            "serverRequest/resolved" => {
                let id = message.params().get("requestId").cloned();
                return id
                    .and_then(|id| serde_json::from_value(id).ok())
                    .map_or(MappedMessage::Nothing, MappedMessage::Resolved);
            }
            _ => None,
        })
    }

    /// Remembers a thread that was in progress when this client joined it.
    pub(crate) fn thread_joined(&mut self, message: &IncomingMessage) {
        let Some(result) = message.result else {
            return;
        };
        let Some(found) = parse_raw::<ThreadResult<ThreadHeader>>(result) else {
            return;
        };
        let thread = found.thread.id.clone();
        self.open_thread(found.thread);
        let history = parse_raw::<ThreadResult<ThreadTurns>>(result);
        let last_turn = history.and_then(|found| parse_raw(found.thread.turns.last()?));
        for mut item in last_turn.map_or(Vec::new(), |turn: TurnItems| turn.items) {
            if text(&item, "status").as_deref() == Some("inProgress")
                && let Some(id) = text(&item, "id")
                && let Some(tool) = ToolCall::from_item(&mut item)
            {
                self.items.insert((thread.clone(), id), tool);
            }
        }
    }

    fn thread_resumed(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        self.resume_requests.remove(message.id.as_ref()?)?;
        let found = parse_raw::<ThreadResult<ThreadHeader>>(message.result?)?;
        let id = found.thread.id.clone();
        let known = self.threads.get(&id);
        let was_open = known.is_some_and(|thread| thread.phase == ThreadPhase::Open);
        self.open_thread(found.thread);
        if was_open {
            return None;
        }
        let mut event = self.event("session_start", message, Some(&id), &Object::new());
        put(&mut event.data, field::START_SOURCE, "resume");
        Some(event)
    }

    fn open_thread(&mut self, header: ThreadHeader) {
        let thread = self.threads.entry(header.id);
        thread.cwd = header.cwd.or(thread.cwd.take());
        thread.path = header.path.or(thread.path.take());
        thread.model = header.model.or(thread.model.take());
        thread.is_subagent = header.parent_thread_id.is_some();
        thread.phase = ThreadPhase::Open;
    }

    fn thread_started(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let params = params_object(message)?;
        let header: ThreadHeader = serde_json::from_value(params.get("thread")?.clone()).ok()?;
        let id = header.id.clone();
        let is_subagent = header.parent_thread_id.is_some();
        self.open_thread(header);
        let name = either(is_subagent, "subagent_start", "session_start");
        let mut event = self.event(name, message, Some(&id), &params);
        if is_subagent {
            put(&mut event.data, field::AGENT_ID, id);
            let role = params.get("thread").and_then(|it| it.get("agentRole"));
            if let Some(role) = role.and_then(Value::as_str) {
                put(&mut event.data, field::AGENT_TYPE, role);
            }
        } else {
            put(&mut event.data, field::START_SOURCE, "startup");
        }
        Some(with_native(event, params))
    }

    /// Archived, closed, deleted: the first of them ends the session. `thread/archive`
    /// is a client's request today and was once the notice.
    fn thread_ended(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let mut params = params_object(message)?;
        let id = take_text(&mut params, "threadId")?;
        let thread = self.threads.entry(id.clone());
        if thread.phase == ThreadPhase::Ended {
            return None;
        }
        thread.phase = ThreadPhase::Ended;
        let name = either(thread.is_subagent, "subagent_stop", "session_end");
        let mut event = self.event(name, message, Some(&id), &params);
        let reason = match event.native_event.as_str() {
            "thread/closed" => "closed",
            "thread/deleted" => "deleted",
            _ => "archived",
        };
        put(&mut event.data, field::REASON, reason);
        Some(with_native(event, params))
    }

    /// The prompt of a turn is its first item, and the event waits for it; a turn
    /// without one (a compaction) has no prompt. A turn without an `items` member is
    /// of the older protocol, where nothing follows.
    fn turn_started(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let mut params = params_object(message)?;
        let turn = params.get("turn")?.as_object()?;
        let items = turn.get("items").and_then(Value::as_array);
        let prompt = items.and_then(|items| items.iter().find_map(user_prompt));
        if items.is_some() && prompt.is_none() {
            if let Some(id) = text(turn, "id") {
                self.new_turns.insert(id, ());
            }
            return None;
        }
        let thread = take_text(&mut params, "threadId");
        let mut event = self.event("before_prompt", message, thread.as_deref(), &params);
        put_some(&mut event.data, field::PROMPT, prompt);
        Some(with_native(event, params))
    }

    fn turn_completed(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let mut params = params_object(message)?;
        let id = take_text(&mut params, "threadId");
        let mut turn = params.remove("turn")?.as_object()?.clone();
        if let Some(turn_id) = text(&turn, "id") {
            self.new_turns.remove(&turn_id);
        }
        let thread = id.clone().map(|id| self.threads.entry(id));
        let is_subagent = thread.as_ref().is_some_and(|thread| thread.is_subagent);
        let remembered = thread.and_then(|thread| thread.last_message.take());
        let items = turn.get("items").and_then(Value::as_array);
        let last_message = items
            .and_then(|items| items.iter().rev().find_map(agent_message))
            .or(remembered);

        let name = either(is_subagent, "subagent_stop", "agent_stop");
        let mut event = self.event(name, message, id.as_deref(), &turn);
        let data = &mut event.data;
        if let Some(status) = take_text(&mut turn, "status") {
            put(data, field::STATUS, canonical_status(&status));
            put(data, field::REASON, status);
        }
        put_some(data, field::ERROR, error_message(&turn));
        move_value(&mut turn, "durationMs", data, field::DURATION_MS);
        put_some(data, field::LAST_MESSAGE, last_message);
        put_some(data, field::AGENT_ID, id.filter(|_| is_subagent));
        put(&mut params, "turn", Value::Object(turn));
        Some(with_native(event, params))
    }

    /// Comes after each call of the model, and once more when a thread is resumed; the
    /// running total tells the two apart.
    fn tokens_used(&mut self, message: &IncomingMessage) -> Option<HookEvent> {
        let mut params = params_object(message)?;
        let thread = take_text(&mut params, "threadId")?;
        params.get("tokenUsage")?.as_object()?;
        let event = self.event("after_model", message, Some(&thread), &params);
        Some(with_native(event, params))
    }

    fn model_changed(&mut self, message: &IncomingMessage) {
        let params = params_object(message).unwrap_or_default();
        let settings = params.get("threadSettings").and_then(Value::as_object);
        let model = settings.and_then(|settings| text(settings, "model"));
        let model = model.or_else(|| text(&params, "toModel"));
        if let (Some(thread), Some(model)) = (text(&params, "threadId"), model) {
            self.threads.entry(thread).model = Some(model);
        }
    }

    pub(crate) fn event(
        &self,
        name: &str,
        message: &IncomingMessage,
        thread: Option<&str>,
        params: &Object,
    ) -> HookEvent {
        let known = thread.and_then(|id| self.threads.get(&id.to_owned()));
        let ms = message.emitted_at.and_then(parse_raw).or_else(|| {
            ["startedAtMs", "completedAtMs"]
                .iter()
                .find_map(|key| params.get(*key)?.as_i64())
        });
        let mut data = Object::new();
        if let Some(known) = known {
            put_some(&mut data, field::MODEL, known.model.clone());
            put_some(&mut data, field::TRANSCRIPT_PATH, known.path.clone());
        }
        HookEvent {
            event: name.into(),
            source: SOURCE.into(),
            // Only the answer to this request gives an event.
            native_event: message.method().unwrap_or("thread/resume").into(),
            session_id: thread.map(str::to_owned),
            timestamp: ms.and_then(anyhook_util::time::rfc3339_millis),
            cwd: known.and_then(|known| known.cwd.clone()),
            data,
            ..HookEvent::default()
        }
    }
}

fn mapped(event: Option<HookEvent>) -> MappedMessage {
    event.map_or(MappedMessage::Nothing, |event| {
        MappedMessage::Event(Box::new(event))
    })
}

fn either<'a>(condition: bool, yes: &'a str, no: &'a str) -> &'a str {
    if condition { yes } else { no }
}

pub(crate) fn params_object(message: &IncomingMessage) -> Option<Object> {
    match message.params() {
        Value::Object(params) => Some(params),
        _ => None,
    }
}

pub(crate) fn canonical_status(status: &str) -> &'static str {
    either(status == "completed", "success", "error")
}

/// The text of the member `error`, or the member itself if it has no text.
pub(crate) fn error_message(item: &Object) -> Option<Value> {
    let error = item.get("error").filter(|error| !error.is_null())?;
    Some(error.get("message").unwrap_or(error).clone())
}

pub(crate) fn put_some(object: &mut Object, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        put(object, key, value);
    }
}

/// Moves a member that is not null to its canonical key.
pub(crate) fn move_value(from: &mut Object, key: &str, to: &mut Object, to_key: &str) {
    if from.get(key).is_some_and(|value| !value.is_null())
        && let Some(value) = from.remove(key)
    {
        put(to, to_key, value);
    }
}

/// Adds what has no canonical key.
pub(crate) fn with_native(mut event: HookEvent, rest: Object) -> HookEvent {
    if !rest.is_empty() {
        put(&mut event.metadata, NATIVE, Value::Object(rest));
    }
    event
}
