//! Native payloads of unknown tools: a best guess at the envelope.
//!
//! For consumers that still receive what agents sent before OpenHook. Knows no
//! agent, only the names that agents have used for the same thing.

mod names;

use crate::data::{EndReason, ToolStatus};
use crate::envelope::{Envelope, ParseError};
use crate::event_type;
use crate::names::{end_reason, model_id, stable_id};
use crate::time::Timestamp;
pub(crate) use names::guess_event_type;
use names::{
    CALL_ID_KEYS, CWD_KEYS, DURATION_KEYS, EVENT_KEYS, INNER_WRAPPER_KEYS, INPUT_KEY,
    INPUT_TOKEN_KEYS, MODEL_KEYS, OUTPUT_TOKEN_KEYS, PATH_KEYS, PROMPT_KEYS, REASON_KEYS,
    ROOT_KEYS, SESSION_DURATION_KEYS, SESSION_KEYS, TIME_KEYS, TOOL_KEYS, TRANSCRIPT_KEYS,
    WRAPPER_KEYS,
};
use serde_json::{Map, Value};

/// An event type that a payload seems to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventGuess {
    pub event_type: &'static str,
    /// False if it is an approximation: the end of a turn is taken for the end of
    /// the session, because some agents report nothing else.
    pub exact: bool,
}

impl EventGuess {
    fn exact(event_type: &'static str) -> Self {
        let exact = true;
        Self { event_type, exact }
    }
}

/// The parts of an envelope that need no clock.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvelopeGuess {
    pub source: String,
    pub event: EventGuess,
    /// `None` if the payload has no session.
    pub session_id: Option<String>,
    /// `None` if the payload has no time.
    pub time: Option<String>,
    pub cwd: Option<String>,
    pub data: Map<String, Value>,
    /// The same for the same payload.
    pub id: String,
}

impl EnvelopeGuess {
    /// The envelope; `now` is used if the payload has no time, and `unknown` as
    /// the session's identifier if it has none.
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
    let value = first_value(payload, &SESSION_KEYS)?;
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The event, by its name (`Stop`, `SessionEnd`, `userPromptSubmitted`,
/// `agent-turn-complete`, …) or, for payloads without one, by their fields.
pub fn event_type(payload: &Value) -> Option<EventGuess> {
    let mut names = event_names(payload).peekable();
    // An event with an unknown name is another event, whatever its fields.
    if names.peek().is_none() {
        return guess_by_fields(payload);
    }
    names.find_map(guess_event_type)
}

/// A best guess at the envelope of a native payload. `None` if the event is
/// unknown, or if the payload is an envelope already.
///
/// ```
/// use openhook::legacy;
/// use serde_json::json;
///
/// let payload = json!({
///     "sessionId": "28a99d49", "timestamp": 1_794_774_049_055_i64, "cwd": "/home/dev/proj",
///     "prompt": "Say hello",
/// });
/// let envelope = legacy::guess_envelope(&payload, "some-agent").expect("a prompt")
///     .into_envelope("2026-01-01T00:00:00Z")?;
/// assert_eq!(envelope.event_type, "prompt.submit");
/// assert_eq!(envelope.time, "2026-11-15T20:20:49.055Z");
/// assert_eq!(envelope.data["prompt_length"], 9);
/// # Ok::<(), openhook::ParseError>(())
/// ```
pub fn guess_envelope(payload: &Value, source: &str) -> Option<EnvelopeGuess> {
    if crate::is_envelope(payload) {
        return None;
    }
    let mut event = event_type(payload)?;
    // An edit that does not name its file is still the end of a tool call.
    if event.event_type == event_type::FILE_WRITE && first_text(payload, &PATH_KEYS).is_none() {
        event.event_type = event_type::TOOL_END;
    }
    let session_id = session_id(payload);
    let session = session_id.as_deref().unwrap_or_default();
    Some(EnvelopeGuess {
        id: stable_id(&[source, session, event.event_type, &payload.to_string()]),
        source: source.to_owned(),
        event,
        time: time(payload),
        cwd: first_text(payload, &CWD_KEYS)
            .map(str::to_owned)
            .or_else(|| {
                let roots = first_value(payload, &ROOT_KEYS)?.as_array()?;
                roots.first()?.as_str().map(str::to_owned)
            }),
        data: data(payload, event),
        session_id,
    })
}

fn guess_by_fields(payload: &Value) -> Option<EventGuess> {
    let has = |names: &[&str]| names.iter().any(|name| payload.get(name).is_some());
    let exact = |event_type| Some(EventGuess::exact(event_type));
    if has(&TOOL_KEYS) {
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
            exact: false,
            ..EventGuess::exact(event_type::SESSION_END)
        });
    }
    if first_text(payload, &PROMPT_KEYS).is_some() && !has(&["transformedPrompt"]) {
        return exact(event_type::PROMPT_SUBMIT);
    }
    let reason = payload.get("reason").and_then(Value::as_str)?;
    end_reason(reason)?;
    exact(event_type::SESSION_END)
}

fn data(payload: &Value, event: EventGuess) -> Map<String, Value> {
    let string = |names: &[&str]| first_text(payload, names).map(Value::from);
    let call_id = || {
        string(&CALL_ID_KEYS).or_else(|| {
            let call = payload
                .get("tool_call")
                .or_else(|| payload.get("tool_result"))?;
            call.get("id")?.as_str().map(Value::from)
        })
    };
    let model = || first_text(payload, &MODEL_KEYS).map(Value::from);
    let fields = match event.event_type {
        event_type::SESSION_START => vec![("model", model())],
        event_type::SESSION_END => vec![
            ("transcript_path", string(&TRANSCRIPT_KEYS)),
            ("reason", reason(payload, event).map(Value::from)),
            ("model", model()),
            ("duration_ms", count(payload, &SESSION_DURATION_KEYS)),
            ("input_tokens", count(payload, &INPUT_TOKEN_KEYS)),
            ("output_tokens", count(payload, &OUTPUT_TOKEN_KEYS)),
        ],
        event_type::PROMPT_SUBMIT => {
            let length = first_text(payload, &PROMPT_KEYS).map(|prompt| prompt.chars().count());
            vec![("prompt_length", length.map(Value::from))]
        }
        event_type::TOOL_START => {
            vec![
                ("tool_name", string(&TOOL_KEYS)),
                ("tool_call_id", call_id()),
            ]
        }
        event_type::TOOL_END => vec![
            ("tool_name", string(&TOOL_KEYS)),
            ("tool_call_id", call_id()),
            ("status", Some(status(payload).as_str().into())),
            ("duration_ms", count(payload, &DURATION_KEYS)),
        ],
        event_type::FILE_WRITE => vec![
            ("path", string(&PATH_KEYS)),
            (
                "model",
                model().and_then(|model| Some(model_id(model.as_str()?).into())),
            ),
            ("tool_call_id", call_id()),
        ],
        _ => Vec::new(),
    };
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

fn reason(payload: &Value, event: EventGuess) -> Option<&'static str> {
    match first_text(payload, &REASON_KEYS) {
        Some(word) => end_reason(word),
        None if is_named_failure(payload) => Some(EndReason::Error.as_str()),
        None if !event.exact => Some(EndReason::Completed.as_str()),
        None => None,
    }
}

/// A call failed if any field indicates it, and succeeded otherwise.
fn status(payload: &Value) -> ToolStatus {
    let yes = |names: &[&str]| first_value(payload, names) == Some(&Value::Bool(true));
    let no = |names: &[&str]| first_value(payload, names) == Some(&Value::Bool(false));
    let result_type = ["toolResult", "tool_result"].iter().find_map(|key| {
        let result = payload.get(key)?;
        result
            .get("resultType")
            .or_else(|| result.get("result_type"))?
            .as_str()
    });
    let error = first_value(payload, &["error", "tool_error", "toolError"]);
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

/// Whether the event is named like `PostToolUseFailure`, `StopFailure` or `TaskError`.
fn is_named_failure(payload: &Value) -> bool {
    event_names(payload)
        .map(str::to_ascii_lowercase)
        .any(|name| name.ends_with("failure") || name.ends_with("error"))
}

fn event_names(payload: &Value) -> impl Iterator<Item = &str> {
    objects(payload).flat_map(|object| {
        EVENT_KEYS
            .iter()
            .filter_map(|key| object.get(*key)?.as_str())
    })
}

fn time(payload: &Value) -> Option<String> {
    match first_value(payload, &TIME_KEYS)? {
        Value::String(text) => text.parse::<Timestamp>().ok().map(|_| text.clone()),
        Value::Number(number) => {
            // In seconds this is the year 2286, in milliseconds 1970.
            const MAX_SECONDS: i64 = 10_000_000_000;
            let number = number.as_i64()?;
            let millis = if number.abs() < MAX_SECONDS {
                number * 1000
            } else {
                number
            };
            Timestamp::from_unix_millis(millis).map(|time| time.to_string())
        }
        _ => None,
    }
}

/// A count, rounded down: some agents report durations with fractions.
fn count(payload: &Value, names: &[&str]) -> Option<Value> {
    let number = first_value(payload, names)?;
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let number = number.as_f64().filter(|n| (0.0..1e15).contains(n))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range, checked above; the fraction is dropped on purpose"
    )]
    Some((number.floor() as u64).into())
}

fn first_text<'a>(payload: &'a Value, names: &[&str]) -> Option<&'a str> {
    objects(payload).find_map(|object| {
        names
            .iter()
            .find_map(|name| object.get(*name)?.as_str().filter(|text| !text.is_empty()))
    })
}

fn first_value<'a>(payload: &'a Value, names: &[&str]) -> Option<&'a Value> {
    objects(payload).find_map(|object| names.iter().find_map(|name| object.get(*name)))
}

/// The payload, then the objects in which some agents wrap their fields. Tool
/// arguments are excluded: what a model wrote must not be taken for facts.
fn objects(payload: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let top = payload.as_object();
    let names_a_tool = top.is_some_and(|top| TOOL_KEYS.iter().any(|name| top.contains_key(*name)));
    let outer = WRAPPER_KEYS
        .iter()
        // Next to a tool's name, `input` contains the arguments of the call.
        .filter(move |name| **name != INPUT_KEY || !names_a_tool)
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
    INNER_WRAPPER_KEYS
        .iter()
        .filter_map(|name| object.get(*name)?.as_object())
}
