//! The discovery file `.openhook.json`: which commands of a project want which
//! events. Finding the file, trusting it and running the commands is the
//! caller's business.

use crate::envelope::describe;
use crate::event_type;
use crate::finding::{Finding, code};
use crate::validate::{shown, version};
use serde::Serialize;
use serde_json::{Map, Value};

/// The name of the file, at the root of a project.
pub const FILE_NAME: &str = ".openhook.json";

/// Stands for every event.
const EVERY: &str = "*";

/// A discovery file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Discovery {
    pub openhook: String,
    /// In the order in which they are called.
    pub hooks: Vec<Subscriber>,
}

/// A command that wants events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subscriber {
    /// A shell command; it gets the envelope on stdin.
    pub command: String,
    /// Event types, or `*` for all.
    pub events: Vec<String>,
    /// `async` in JSON: nobody waits for the command's end.
    #[serde(rename = "async")]
    pub is_async: bool,
    /// Seconds. Not in the text of 0.1, which leaves the time limit open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// What was read, and what there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// None when the file as a whole cannot be used. A hook with an error is
    /// left out; the others stand.
    pub discovery: Option<Discovery>,
    pub findings: Vec<Finding>,
}

impl Discovery {
    /// Reads and checks a discovery file.
    ///
    /// ```
    /// use openhook::Discovery;
    /// let read = Discovery::read(r#"{
    ///   "openhook": "0.1",
    ///   "hooks": [
    ///     { "command": "otel-hooks hook --provider otlp", "events": ["session.end"], "async": true },
    ///     { "command": "./log.sh" }
    ///   ]
    /// }"#);
    /// assert!(read.findings.is_empty());
    /// let discovery = read.discovery.expect("a sound file");
    /// let commands: Vec<&str> =
    ///     discovery.subscribers("tool.start").map(|hook| hook.command.as_str()).collect();
    /// assert_eq!(commands, ["./log.sh"]);
    ///
    /// let broken = Discovery::read("{\n  \"hooks\": [}\n");
    /// let at = broken.findings[0].position.expect("a syntax error has a place");
    /// assert_eq!((at.line, at.column), (2, 13));
    /// ```
    pub fn read(text: &str) -> Read {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_json::from_str(text) {
            Ok(value) => Self::from_value(&value),
            Err(error) => Read {
                discovery: None,
                findings: vec![Finding::syntax(&error)],
            },
        }
    }

    /// [`read`](Self::read) for a value.
    pub fn from_value(value: &Value) -> Read {
        let mut findings = Vec::new();
        let discovery = Self::of(value, &mut findings);
        Read {
            discovery,
            findings,
        }
    }

    fn of(value: &Value, findings: &mut Vec<Finding>) -> Option<Self> {
        let Value::Object(map) = value else {
            findings.push(Finding::error(
                code::NOT_AN_OBJECT,
                "",
                format!(
                    "a discovery file is one JSON object; this is {}",
                    describe(value)
                ),
            ));
            return None;
        };
        let openhook = match map.get("openhook") {
            Some(Value::String(text)) => {
                version(text, findings);
                text.clone()
            }
            Some(other) => {
                findings.push(wrong_type("/openhook", "a string", other));
                crate::VERSION.to_owned()
            }
            None => {
                findings.push(Finding::warning(
                    code::MISSING_FIELD,
                    "/openhook",
                    "`openhook` is missing: the file does not say its version; \
                     add `\"openhook\": \"0.1\"`"
                        .to_owned(),
                ));
                crate::VERSION.to_owned()
            }
        };
        let hooks = match map.get("hooks") {
            Some(Value::Array(hooks)) => hooks,
            Some(other) => {
                findings.push(wrong_type("/hooks", "an array", other));
                return None;
            }
            None => {
                findings.push(Finding::error(
                    code::MISSING_FIELD,
                    "/hooks",
                    "`hooks` is missing: it lists the commands; add \
                     `\"hooks\": [{ \"command\": \"…\" }]`"
                        .to_owned(),
                ));
                return None;
            }
        };
        let hooks = hooks
            .iter()
            .enumerate()
            .filter_map(|(index, hook)| Subscriber::of(hook, &format!("/hooks/{index}"), findings))
            .collect();
        Some(Self { openhook, hooks })
    }

    /// Does anyone want events of this type?
    pub fn subscribes(&self, event_type: &str) -> bool {
        self.subscribers(event_type).next().is_some()
    }

    /// Those who want events of this type, in their order.
    pub fn subscribers(&self, event_type: &str) -> impl Iterator<Item = &Subscriber> {
        self.hooks
            .iter()
            .filter(move |hook| hook.subscribes(event_type))
    }
}

impl Subscriber {
    /// Does it want events of this type? `*` is the only pattern.
    pub fn subscribes(&self, event_type: &str) -> bool {
        self.events
            .iter()
            .any(|event| event == EVERY || event == event_type)
    }

    fn of(hook: &Value, at: &str, findings: &mut Vec<Finding>) -> Option<Self> {
        let Value::Object(map) = hook else {
            findings.push(wrong_type(at, "an object", hook));
            return None;
        };
        let before = findings.len();
        let command = command(map, at, findings);
        let events = events(map, at, findings);
        let is_async = match map.get("async") {
            None => Some(false),
            Some(Value::Bool(is_async)) => Some(*is_async),
            Some(other) => {
                findings.push(wrong_type(&format!("{at}/async"), "a boolean", other));
                None
            }
        };
        let timeout = timeout(map, at, findings);
        let sound = !findings.iter().skip(before).any(Finding::is_error);
        sound.then_some(Self {
            command: command?,
            events: events?,
            is_async: is_async?,
            timeout,
        })
    }
}

fn command(map: &Map<String, Value>, at: &str, findings: &mut Vec<Finding>) -> Option<String> {
    let at = format!("{at}/command");
    match map.get("command") {
        Some(Value::String(text)) if text.trim().is_empty() => findings.push(Finding::error(
            code::EMPTY_FIELD,
            at,
            "`command` is empty: there is nothing to run; write a shell command".to_owned(),
        )),
        Some(Value::String(text)) => return Some(text.clone()),
        Some(other) => findings.push(wrong_type(&at, "a string", other)),
        None => findings.push(Finding::error(
            code::MISSING_FIELD,
            at,
            "`command` is missing: it is what gets the events; write a shell command".to_owned(),
        )),
    }
    None
}

fn events(map: &Map<String, Value>, at: &str, findings: &mut Vec<Finding>) -> Option<Vec<String>> {
    let at = format!("{at}/events");
    let list = match map.get("events") {
        None => return Some(vec![EVERY.to_owned()]),
        Some(Value::Array(list)) => list,
        Some(other) => {
            findings.push(wrong_type(&at, "an array of event types", other));
            return None;
        }
    };
    if list.is_empty() {
        findings.push(Finding::warning(
            code::NO_EVENTS,
            at.clone(),
            "`events` is empty: the command is never called; leave `events` out, or write `[\"*\"]`, for all"
                .to_owned(),
        ));
    }
    let mut events = Vec::with_capacity(list.len());
    for (index, event) in list.iter().enumerate() {
        let at = format!("{at}/{index}");
        match event {
            Value::String(event) => {
                if let Some(finding) = doubt(event, at) {
                    findings.push(finding);
                }
                events.push(event.clone());
            }
            other => findings.push(wrong_type(&at, "a string", other)),
        }
    }
    Some(events)
}

fn doubt(event: &str, at: String) -> Option<Finding> {
    if event == EVERY || event_type::is_known(event) {
        return None;
    }
    let meant = crate::legacy::named(event)
        .map(|guess| format!("; did you mean `{}`?", guess.event_type))
        .unwrap_or_default();
    Some(if event_type::is_well_formed(event) {
        Finding::warning(
            code::UNKNOWN_EVENT,
            at,
            format!(
                "`{}` is no event of version {}: the command may never be called{meant}",
                shown(event),
                crate::VERSION
            ),
        )
    } else {
        Finding::warning(
            code::BAD_EVENT,
            at,
            format!(
                "`{}` matches nothing: `*` alone stands for all events, and there are no other patterns{meant}",
                shown(event)
            ),
        )
    })
}

fn timeout(map: &Map<String, Value>, at: &str, findings: &mut Vec<Finding>) -> Option<f64> {
    let at = format!("{at}/timeout");
    match map.get("timeout")? {
        Value::Number(number) => {
            let seconds = number.as_f64().unwrap_or_default();
            if seconds > 0.0 {
                return Some(seconds);
            }
            findings.push(Finding::error(
                code::OUT_OF_RANGE,
                at,
                format!("`timeout` is {number}: it is a number of seconds above 0"),
            ));
        }
        other => findings.push(wrong_type(&at, "a number of seconds", other)),
    }
    None
}

fn wrong_type(at: &str, wanted: &str, found: &Value) -> Finding {
    Finding::error(
        code::WRONG_TYPE,
        at,
        format!("this is {}; it must be {wanted}", describe(found)),
    )
}
