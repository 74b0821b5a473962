//! Messages of the app-server as canonical events. Pure: no clock, no I/O; a
//! message without a time gives an event without one.
//!
//! Events come from what the *server* says: a client's request may be refused.
//! The one exception is a resumed thread, which the server announces only by the
//! answer to the client's `thread/resume`.
//!
//! `item/started` gives no event of its own for a tool. Nothing can be decided
//! there, and the approval request that may follow is the `before_tool_execute`
//! of the same item; one message is remembered so that the other is complete.

use anyhook_model::HookEvent;
use anyhook_model::event::{NATIVE, field};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::approval::Approval;
use crate::bounded::Bounded;
use crate::items::{message_of, prompt_of};
use crate::request::Shape;
use crate::tools::{Object, Tool, put, take_text, text};
use crate::wire::{Incoming, RequestId, parse};

/// The agent that this bridge speaks for.
pub const SOURCE: &str = "codex";

/// How much is remembered: generous for one user's threads, and bounded.
const THREADS: usize = 1024;
const ITEMS: usize = 512;
const REQUESTS: usize = 256;

#[derive(Debug)]
pub enum Seen {
    /// Nothing for hooks.
    Nothing,
    /// For hooks to know.
    Event(Box<HookEvent>),
    /// For hooks to answer.
    Approval(Box<Approval>),
    /// The server no longer waits for the answer to this request.
    Resolved(RequestId),
}

/// What the messages so far have told.
#[derive(Debug)]
pub struct Mapper {
    pub(crate) threads: Bounded<String, Thread>,
    pub(crate) items: Bounded<(String, String), Remembered>,
    /// Turns that have begun and whose prompt has not come yet.
    pub(crate) fresh_turns: Bounded<String, ()>,
    resuming: Bounded<RequestId, ()>,
}

#[derive(Debug, Default)]
pub(crate) struct Thread {
    cwd: Option<String>,
    path: Option<String>,
    model: Option<String>,
    pub(crate) last_message: Option<String>,
    subagent: bool,
    life: Life,
}

#[derive(Debug, Default, PartialEq)]
enum Life {
    #[default]
    Unknown,
    Open,
    Ended,
}

#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) thread: String,
    pub(crate) item: String,
    pub(crate) tool: Tool,
}

/// The part of a thread that events need; the rest, a whole history perhaps, is
/// skipped unread.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadHead {
    id: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    parent_thread_id: Option<String>,
}

/// The turns of a thread that was joined; only the last is looked at.
#[derive(Debug, Deserialize)]
struct JoinedResult<'a> {
    #[serde(borrow)]
    thread: JoinedThread<'a>,
}

#[derive(Debug, Deserialize)]
struct JoinedThread<'a> {
    #[serde(default, borrow)]
    turns: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct JoinedTurn {
    #[serde(default)]
    items: Vec<Object>,
}

#[derive(Debug, Deserialize)]
struct ThreadResult {
    thread: ThreadHead,
}

impl Default for Mapper {
    fn default() -> Self {
        Self {
            threads: Bounded::new(THREADS),
            items: Bounded::new(ITEMS),
            fresh_turns: Bounded::new(THREADS),
            resuming: Bounded::new(REQUESTS),
        }
    }
}

impl Mapper {
    /// A message of the client, on its way to the server.
    pub fn client(&mut self, message: &Incoming) {
        if let (Some(id), Some("thread/resume")) = (&message.id, message.method()) {
            self.resuming.insert(id.clone(), ());
        }
    }

    /// A message of the server.
    pub fn server(&mut self, message: &Incoming) -> Seen {
        let Some(method) = message.method() else {
            return self.answered(message);
        };
        if let Some(shape) = Shape::of(method) {
            return self.approval(message, method, shape);
        }
        let event = match method {
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
            "serverRequest/resolved" => {
                let id = message.params().get("requestId").cloned();
                return match id.and_then(|id| serde_json::from_value(id).ok()) {
                    Some(id) => Seen::Resolved(id),
                    None => Seen::Nothing,
                };
            }
            _ => None,
        };
        event.map_or(Seen::Nothing, |event| Seen::Event(Box::new(event)))
    }

    /// A thread that was under way when we came: known from now on, not started.
    pub fn joined(&mut self, message: &Incoming) {
        let Some(found) = message.result.and_then(parse::<ThreadResult>) else {
            return;
        };
        let id = found.thread.id.clone();
        self.know(found.thread);
        let history = message.result.and_then(parse::<JoinedResult>);
        let last = history.and_then(|history| parse::<JoinedTurn>(history.thread.turns.last()?));
        for mut item in last.map(|turn| turn.items).unwrap_or_default() {
            if text(&item, "status").as_deref() == Some("inProgress")
                && let Some(call) = text(&item, "id")
                && let Some(tool) = Tool::of_item(&mut item)
            {
                self.remember(id.clone(), call, tool);
            }
        }
    }

    fn answered(&mut self, message: &Incoming) -> Seen {
        let resumed = message.id.as_ref().and_then(|id| self.resuming.remove(id));
        let found = message.result.filter(|_| resumed.is_some());
        let Some(found) = found.and_then(parse::<ThreadResult>) else {
            return Seen::Nothing;
        };
        let id = found.thread.id.clone();
        let was_open = self
            .threads
            .get(&id)
            .is_some_and(|thread| thread.life == Life::Open);
        self.know(found.thread);
        if was_open {
            return Seen::Nothing;
        }
        let mut event = self.event(
            "session_start",
            "thread/resume",
            message,
            Some(&id),
            &Object::new(),
        );
        put(&mut event.data, field::START_SOURCE, "resume");
        Seen::Event(Box::new(event))
    }

    fn know(&mut self, head: ThreadHead) {
        let thread = self.threads.entry(head.id);
        thread.cwd = head.cwd.or(thread.cwd.take());
        thread.path = head.path.or(thread.path.take());
        thread.model = head.model.or(thread.model.take());
        thread.subagent = head.parent_thread_id.is_some();
        thread.life = Life::Open;
    }

    fn thread_started(&mut self, message: &Incoming) -> Option<HookEvent> {
        let params = object(message)?;
        let head: ThreadHead = serde_json::from_value(params.get("thread")?.clone()).ok()?;
        let id = head.id.clone();
        let subagent = head.parent_thread_id.is_some();
        self.know(head);
        let name = if subagent {
            "subagent_start"
        } else {
            "session_start"
        };
        let mut event = self.event(name, "thread/started", message, Some(&id), &params);
        if subagent {
            put(&mut event.data, field::AGENT_ID, id);
            let role = params
                .get("thread")
                .and_then(|thread| thread.get("agentRole"));
            if let Some(role) = role.and_then(Value::as_str) {
                put(&mut event.data, field::AGENT_TYPE, role);
            }
        } else {
            put(&mut event.data, field::START_SOURCE, "startup");
        }
        native(&mut event, params);
        Some(event)
    }

    /// Archived, closed, deleted: the first of them ends the session. The name
    /// `thread/archive` is a client's request today and was once the notice.
    fn thread_ended(&mut self, message: &Incoming) -> Option<HookEvent> {
        let method = message.method()?;
        let mut params = object(message)?;
        let id = take_text(&mut params, "threadId")?;
        let thread = self.threads.entry(id.clone());
        let earlier = std::mem::replace(&mut thread.life, Life::Ended);
        let subagent = thread.subagent;
        if earlier == Life::Ended {
            return None;
        }
        let name = if subagent {
            "subagent_stop"
        } else {
            "session_end"
        };
        let mut event = self.event(name, method, message, Some(&id), &params);
        let reason = match method {
            "thread/closed" => "closed",
            "thread/deleted" => "deleted",
            _ => "archived",
        };
        put(&mut event.data, field::REASON, reason);
        native(&mut event, params);
        Some(event)
    }

    /// Today a turn's prompt comes as its first item, and the event waits for
    /// it; a turn that has none (a compaction) is no prompt. A turn without an
    /// `items` member is of the older shape, where nothing follows.
    fn turn_started(&mut self, message: &Incoming) -> Option<HookEvent> {
        let mut params = object(message)?;
        let turn = params.get("turn")?.as_object()?;
        let items = turn.get("items").and_then(Value::as_array);
        let prompt = items.and_then(|items| items.iter().find_map(prompt_of));
        if items.is_some() && prompt.is_none() {
            if let Some(id) = text(turn, "id") {
                self.fresh_turns.insert(id, ());
            }
            return None;
        }
        let thread = take_text(&mut params, "threadId");
        let mut event = self.event(
            "before_prompt",
            "turn/started",
            message,
            thread.as_deref(),
            &params,
        );
        if let Some(prompt) = prompt {
            put(&mut event.data, field::PROMPT, prompt);
        }
        native(&mut event, params);
        Some(event)
    }

    fn turn_completed(&mut self, message: &Incoming) -> Option<HookEvent> {
        let mut params = object(message)?;
        let id = take_text(&mut params, "threadId");
        let mut turn = params.remove("turn")?.as_object()?.clone();
        if let Some(turn_id) = text(&turn, "id") {
            self.fresh_turns.remove(&turn_id);
        }
        let thread = id.clone().map(|id| self.threads.entry(id));
        let subagent = thread.as_ref().is_some_and(|thread| thread.subagent);
        let remembered = thread.and_then(|thread| thread.last_message.take());
        let items = turn.get("items").and_then(Value::as_array);
        let said = items
            .and_then(|items| items.iter().rev().find_map(message_of))
            .or(remembered);

        let name = if subagent {
            "subagent_stop"
        } else {
            "agent_stop"
        };
        let mut event = self.event(name, "turn/completed", message, id.as_deref(), &turn);
        if let Some(status) = take_text(&mut turn, "status") {
            let outcome = if status == "completed" {
                "success"
            } else {
                "error"
            };
            put(&mut event.data, field::STATUS, outcome);
            put(&mut event.data, field::REASON, status);
        }
        if let Some(error) = turn.get("error").filter(|error| !error.is_null()) {
            let message = error.get("message").unwrap_or(error).clone();
            put(&mut event.data, field::ERROR, message);
        }
        place(&mut turn, "durationMs", &mut event.data, field::DURATION_MS);
        if let Some(said) = said {
            put(&mut event.data, field::LAST_MESSAGE, said);
        }
        if let (true, Some(id)) = (subagent, id) {
            put(&mut event.data, field::AGENT_ID, id);
        }
        put(&mut params, "turn", Value::Object(turn));
        native(&mut event, params);
        Some(event)
    }

    pub(crate) fn event(
        &self,
        name: &str,
        native: &str,
        message: &Incoming,
        thread: Option<&str>,
        params: &Object,
    ) -> HookEvent {
        let known = thread.and_then(|id| self.threads.get(&id.to_owned()));
        let ms = message.emitted_at_ms().or_else(|| {
            ["startedAtMs", "completedAtMs"]
                .iter()
                .find_map(|key| params.get(*key)?.as_i64())
        });
        let mut data = Object::new();
        if let Some(known) = known {
            for (key, value) in [
                (field::MODEL, &known.model),
                (field::TRANSCRIPT_PATH, &known.path),
            ] {
                if let Some(value) = value {
                    put(&mut data, key, value.as_str());
                }
            }
        }
        HookEvent {
            event: name.into(),
            source: SOURCE.into(),
            native_event: native.into(),
            session_id: thread.map(str::to_owned),
            timestamp: ms.and_then(rfc3339),
            cwd: known.and_then(|known| known.cwd.clone()),
            data,
            ..HookEvent::default()
        }
    }
}

/// RFC 3339 of milliseconds since 1970.
pub(crate) fn rfc3339(ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    Some(format!("{time:.3}"))
}

pub(crate) fn object(message: &Incoming) -> Option<Object> {
    match message.params() {
        Value::Object(params) => Some(params),
        _ => None,
    }
}

/// Moves a member that has a value to its canonical place.
pub(crate) fn place(from: &mut Object, key: &str, to: &mut Object, as_key: &str) {
    if from.get(key).is_some_and(|value| !value.is_null())
        && let Some(value) = from.remove(key)
    {
        put(to, as_key, value);
    }
}

pub(crate) fn native(event: &mut HookEvent, rest: Object) {
    if !rest.is_empty() {
        put(&mut event.metadata, NATIVE, Value::Object(rest));
    }
}
