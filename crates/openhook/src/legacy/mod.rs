//! Native payloads of unknown tools: a best guess at the envelope.
//!
//! For consumers that still get what agents sent before OpenHook. Nothing here
//! knows an agent; it knows the names that agents have used for the same thing.

mod names;

use crate::data::{EndReason, ToolStatus};
use crate::envelope::{Envelope, ParseError};
use crate::event_type;
use crate::names::{end_reason, model_id, stable_id};
use crate::time::Timestamp;
pub(crate) use names::named;
use names::{
    CALL_IDS, CWDS, DURATIONS, EVENTS, INNER_WRAPPERS, INPUT, MODELS, PATHS, PROMPTS, REASONS,
    ROOTS, SESSIONS, TIMES, TOOLS, TRANSCRIPTS, WRAPPERS,
};
use serde_json::{Map, Value};

/// An event type that a payload seems to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventGuess {
    pub event_type: &'static str,
    /// False when it is only near: the end of a turn stands for the end of the
    /// session, because some agents report nothing else.
    pub exact: bool,
}

/// What can be said of an envelope without a clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    pub source: String,
    pub event: EventGuess,
    /// None when the payload names no session.
    pub session_id: Option<String>,
    /// None when the payload says no time.
    pub time: Option<String>,
    pub cwd: Option<String>,
    pub data: Map<String, Value>,
    /// The same for the same payload.
    pub id: String,
}

impl Guess {
    /// The envelope; `now` is for a payload that says no time. An unknown
    /// session is called `unknown`.
    pub fn into_envelope(self, now: &str) -> Result<Envelope, ParseError> {
        let session = self.session_id.unwrap_or_else(|| "unknown".to_owned());
        let mut envelope = Envelope::builder(self.source, self.event.event_type, session)
            .id(self.id)
            .time(self.time.unwrap_or_else(|| now.to_owned()))
            .data(self.data);
        if let Some(cwd) = self.cwd {
            envelope = envelope.directory(cwd);
        }
        envelope.build()
    }
}

/// The session, under any of the names that it has had: `session_id`,
/// `sessionId`, `conversation_id`, `thread-id`, `taskId`, `trajectory_id`, …
///
/// ```
/// use serde_json::json;
/// let payload = json!({ "type": "agent-turn-complete", "thread-id": "t1" });
/// assert_eq!(openhook::legacy::session_id(&payload), Some("t1".to_owned()));
/// ```
pub fn session_id(payload: &Value) -> Option<String> {
    let value = look(payload, &SESSIONS)?;
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The event, by its name (`Stop`, `SessionEnd`, `userPromptSubmitted`,
/// `agent-turn-complete`, …) or, for payloads that do not name it, by the
/// fields that are there.
pub fn event_type(payload: &Value) -> Option<EventGuess> {
    let Value::Object(_) = payload else {
        return None;
    };
    let mut has_name = false;
    for object in objects(payload) {
        for key in EVENTS {
            if let Some(name) = object.get(key).and_then(Value::as_str) {
                if let Some(guess) = named(name) {
                    return Some(guess);
                }
                has_name = true;
            }
        }
    }
    // A named event that is not among ours is something else, whatever its fields.
    if has_name { None } else { by_shape(payload) }
}

/// A best guess at the envelope of a native payload. None when even the event
/// cannot be told, or when it is an envelope already.
///
/// ```
/// use openhook::legacy;
/// use serde_json::json;
///
/// let payload = json!({
///     "sessionId": "28a99d49", "timestamp": 1_794_774_049_055_i64, "cwd": "/home/dev/proj",
///     "prompt": "Say hello",
/// });
/// let envelope = legacy::guess(&payload, "some-agent").expect("a prompt")
///     .into_envelope("2026-01-01T00:00:00Z")?;
/// assert_eq!(envelope.event_type, "prompt.submit");
/// assert_eq!(envelope.time, "2026-11-15T20:20:49.055Z");
/// assert_eq!(envelope.data["prompt_length"], 9);
/// # Ok::<(), openhook::ParseError>(())
/// ```
pub fn guess(payload: &Value, source: &str) -> Option<Guess> {
    if crate::is_envelope(payload) {
        return None;
    }
    let mut event = event_type(payload)?;
    // An edit that does not name its file is still the end of a tool call.
    if event.event_type == event_type::FILE_WRITE && text(payload, &PATHS).is_none() {
        event.event_type = event_type::TOOL_END;
    }
    let session_id = session_id(payload);
    let session = session_id.as_deref().unwrap_or_default();
    Some(Guess {
        id: stable_id(&[source, session, event.event_type, &payload.to_string()]),
        source: source.to_owned(),
        event,
        time: time(payload),
        cwd: text(payload, &CWDS).map(str::to_owned).or_else(|| {
            let roots = look(payload, &ROOTS)?.as_array()?;
            roots.first()?.as_str().map(str::to_owned)
        }),
        data: data(payload, event),
        session_id,
    })
}

fn by_shape(payload: &Value) -> Option<EventGuess> {
    let has = |names: &[&str]| names.iter().any(|name| payload.get(name).is_some());
    let exact = |event_type| {
        Some(EventGuess {
            event_type,
            exact: true,
        })
    };
    if has(&TOOLS) {
        let ended = has(&[
            "toolResult",
            "tool_result",
            "tool_response",
            "toolResponse",
            "tool_output",
            "result",
            "output",
        ]);
        // An error report may name the tool as well; a call has arguments.
        let started = has(&[
            "toolArgs",
            "tool_args",
            "toolInput",
            "tool_input",
            "args",
            "arguments",
        ]);
        return match (ended, started) {
            (true, _) => exact(event_type::TOOL_END),
            (false, true) => exact(event_type::TOOL_START),
            (false, false) => None,
        };
    }
    if has(&["agentName", "agent_name"]) {
        return None;
    }
    let how = payload.get("source").and_then(Value::as_str);
    if has(&["initialPrompt", "initial_prompt"])
        || matches!(how, Some("new" | "startup" | "resume"))
    {
        return exact(event_type::SESSION_START);
    }
    if has(&["stopReason", "stop_reason"]) {
        return Some(EventGuess {
            event_type: event_type::SESSION_END,
            exact: false,
        });
    }
    if text(payload, &PROMPTS).is_some() && !has(&["transformedPrompt"]) {
        return exact(event_type::PROMPT_SUBMIT);
    }
    let reason = payload.get("reason").and_then(Value::as_str)?;
    end_reason(reason)?;
    exact(event_type::SESSION_END)
}

fn data(payload: &Value, event: EventGuess) -> Map<String, Value> {
    let mut data = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            data.insert(key.to_owned(), value);
        }
    };
    let string = |names: &[&str]| text(payload, names).map(Value::from);
    let call_id = || {
        string(&CALL_IDS).or_else(|| {
            let call = payload
                .get("tool_call")
                .or_else(|| payload.get("tool_result"))?;
            call.get("id")?.as_str().map(Value::from)
        })
    };
    let model = || text(payload, &MODELS).map(|model| Value::from(model_id(model)));
    match event.event_type {
        event_type::SESSION_START => put("model", model()),
        event_type::SESSION_END => {
            put("transcript_path", string(&TRANSCRIPTS));
            put("reason", reason(payload, event).map(Value::from));
            put("model", model());
            put(
                "duration_ms",
                whole(payload, &["session_duration_ms", "duration_ms"]),
            );
            put(
                "input_tokens",
                whole(payload, &["input_tokens", "inputTokens"]),
            );
            put(
                "output_tokens",
                whole(payload, &["output_tokens", "outputTokens"]),
            );
        }
        event_type::PROMPT_SUBMIT => {
            let length = text(payload, &PROMPTS).map(|prompt| prompt.chars().count() as u64);
            put("prompt_length", length.map(Value::from));
        }
        event_type::TOOL_START => {
            put("tool_name", string(&TOOLS));
            put("tool_call_id", call_id());
        }
        event_type::TOOL_END => {
            put("tool_name", string(&TOOLS));
            put("tool_call_id", call_id());
            put("status", Some(status(payload).as_str().into()));
            put("duration_ms", whole(payload, &DURATIONS));
        }
        event_type::FILE_WRITE => {
            put("path", string(&PATHS));
            put("model", model());
            put("tool_call_id", call_id());
        }
        _ => {}
    }
    data
}

fn reason(payload: &Value, event: EventGuess) -> Option<&'static str> {
    match text(payload, &REASONS) {
        Some(word) => end_reason(word),
        None if is_named_failure(payload) => Some(EndReason::Error.as_str()),
        None if !event.exact => Some(EndReason::Completed.as_str()),
        None => None,
    }
}

/// A call failed when anything says so; silence is success.
fn status(payload: &Value) -> ToolStatus {
    let yes = |names: &[&str]| look(payload, names) == Some(&Value::Bool(true));
    let no = |names: &[&str]| look(payload, names) == Some(&Value::Bool(false));
    let result_type = ["toolResult", "tool_result"].iter().find_map(|key| {
        let result = payload.get(key)?;
        result
            .get("resultType")
            .or_else(|| result.get("result_type"))?
            .as_str()
    });
    let error = look(payload, &["error", "tool_error", "toolError"]);
    let failed = is_named_failure(payload)
        || yes(&["isError", "is_error"])
        || no(&["success"])
        || error.is_some_and(|error| !matches!(error, Value::Null | Value::Bool(false)))
        || result_type.is_some_and(|kind| kind != "success");
    if failed {
        ToolStatus::Error
    } else {
        ToolStatus::Success
    }
}

/// `PostToolUseFailure`, `StopFailure`, `TaskError`.
fn is_named_failure(payload: &Value) -> bool {
    objects(payload)
        .flat_map(|object| {
            EVENTS
                .iter()
                .filter_map(move |key| object.get(*key)?.as_str())
        })
        .map(str::to_ascii_lowercase)
        .any(|name| name.ends_with("failure") || name.ends_with("error"))
}

fn time(payload: &Value) -> Option<String> {
    match look(payload, &TIMES)? {
        Value::String(text) => text.parse::<Timestamp>().ok().map(|_| text.clone()),
        Value::Number(number) => {
            // Seconds reach this only in the year 2286, milliseconds had it in 1970.
            const SECONDS_END: i64 = 10_000_000_000;
            let number = number.as_i64()?;
            let millis = if number.abs() < SECONDS_END {
                number * 1000
            } else {
                number
            };
            Timestamp::from_unix_millis(millis).map(|time| time.to_string())
        }
        _ => None,
    }
}

/// A count, rounded down: agents give durations with fractions too.
fn whole(payload: &Value, names: &[&str]) -> Option<Value> {
    let number = look(payload, names)?;
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let number = number.as_f64().filter(|n| (0.0..1e15).contains(n))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range, checked above; the fraction is meant to go"
    )]
    Some((number.floor() as u64).into())
}

fn text<'a>(payload: &'a Value, names: &[&str]) -> Option<&'a str> {
    objects(payload).find_map(|object| {
        names
            .iter()
            .find_map(|name| object.get(*name)?.as_str().filter(|text| !text.is_empty()))
    })
}

fn look<'a>(payload: &'a Value, names: &[&str]) -> Option<&'a Value> {
    objects(payload).find_map(|object| names.iter().find_map(|name| object.get(*name)))
}

/// The payload, then the objects in which some agents wrap their fields. Tool
/// arguments are not among them: what a model wrote must not be taken for facts.
fn objects(payload: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let top = payload.as_object();
    let names_a_tool = top.is_some_and(|top| TOOLS.iter().any(|name| top.contains_key(*name)));
    let outer = WRAPPERS
        .iter()
        // Beside a tool's name, `input` holds the arguments of the call.
        .filter(move |name| **name != INPUT || !names_a_tool)
        .filter_map(move |name| top?.get(*name)?.as_object());
    let middle = outer.clone().flat_map(inner);
    let deep = middle.clone().flat_map(inner);
    let deepest = deep.clone().flat_map(inner);
    top.into_iter()
        .chain(outer)
        .chain(middle)
        .chain(deep)
        .chain(deepest)
}

fn inner(object: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> + Clone {
    INNER_WRAPPERS
        .iter()
        .filter_map(|name| object.get(*name)?.as_object())
}
