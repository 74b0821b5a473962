//! The discovery file `.openhook.json`: which commands of a project receive which
//! events. Finding the file, trusting it and running the commands is up to the
//! caller.

use crate::event_type;
use crate::finding::{Finding, code, type_name};
use crate::validate::{check_version, excerpt, suggest_event_type};
use serde::Serialize;
use serde_json::Value;

/// The name of the file, at the root of a project.
pub const FILE_NAME: &str = ".openhook.json";

/// The pattern for every event.
const ALL_EVENTS: &str = "*";

/// A discovery file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Discovery {
    pub openhook: String,
    /// In calling order.
    pub hooks: Vec<Subscriber>,
}

/// A command that receives events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subscriber {
    /// A shell command; it receives the envelope on stdin.
    pub command: String,
    /// Event types, or `*` for all.
    pub events: Vec<String>,
    /// The producer does not wait for the command.
    #[serde(rename = "async")]
    pub is_async: bool,
    /// Seconds. Not part of version 0.1, which leaves the time limit open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// A parsed discovery file and the findings about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedDiscovery {
    /// `None` if the file as a whole cannot be used. A hook with an error is
    /// left out; the others are kept.
    pub discovery: Option<Discovery>,
    pub findings: Vec<Finding>,
}

impl Discovery {
    /// Parses and checks a discovery file.
    ///
    /// ```
    /// use openhook::Discovery;
    /// let parsed = Discovery::parse(r#"{
    ///   "openhook": "0.1",
    ///   "hooks": [
    ///     { "command": "otel-hooks hook --provider otlp", "events": ["session.end"], "async": true },
    ///     { "command": "./log.sh" }
    ///   ]
    /// }"#);
    /// assert!(parsed.findings.is_empty());
    /// let discovery = parsed.discovery.expect("a valid file");
    /// let commands: Vec<&str> =
    ///     discovery.subscribers("tool.start").map(|hook| hook.command.as_str()).collect();
    /// assert_eq!(commands, ["./log.sh"]);
    ///
    /// let broken = Discovery::parse("{\n  \"hooks\": [}\n");
    /// let at = broken.findings[0].position.expect("a syntax error has a position");
    /// assert_eq!((at.line, at.column), (2, 13));
    /// ```
    pub fn parse(text: &str) -> ParsedDiscovery {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_json::from_str(text) {
            Ok(value) => Self::from_value(&value),
            Err(error) => ParsedDiscovery {
                discovery: None,
                findings: vec![Finding::syntax(&error)],
            },
        }
    }

    /// [`parse`](Self::parse) for a JSON value.
    pub fn from_value(value: &Value) -> ParsedDiscovery {
        let mut findings = Vec::new();
        let discovery = Self::check(value, &mut findings);
        ParsedDiscovery {
            discovery,
            findings,
        }
    }

    fn check(value: &Value, findings: &mut Vec<Finding>) -> Option<Self> {
        let Value::Object(map) = value else {
            let found = type_name(value);
            let message = format!("a discovery file is one JSON object; this is {found}");
            findings.push(Finding::error(code::NOT_AN_OBJECT, "", message));
            return None;
        };
        let mut openhook = crate::VERSION.to_owned();
        match map.get("openhook") {
            Some(Value::String(text)) => {
                findings.extend(check_version(text));
                openhook.clone_from(text);
            }
            Some(other) => findings.push(wrong_type("/openhook", "a string", other)),
            None => {
                let message = "`openhook` is missing: the file has no version; \
                               add `\"openhook\": \"0.1\"`";
                findings.push(Finding::warning(code::MISSING_FIELD, "/openhook", message));
            }
        }
        let finding = match map.get("hooks") {
            Some(Value::Array(hooks)) => {
                let hooks = hooks.iter().enumerate();
                let hooks = hooks
                    .filter_map(|(index, hook)| Subscriber::check(hook, index, findings))
                    .collect();
                return Some(Self { openhook, hooks });
            }
            Some(other) => wrong_type("/hooks", "an array", other),
            None => {
                let message = "`hooks` is missing: it lists the commands; add \
                               `\"hooks\": [{ \"command\": \"…\" }]`";
                Finding::error(code::MISSING_FIELD, "/hooks", message)
            }
        };
        findings.push(finding);
        None
    }

    /// Whether any command receives events of this type.
    pub fn subscribes(&self, event_type: &str) -> bool {
        self.subscribers(event_type).next().is_some()
    }

    /// The commands that receive events of this type, in calling order.
    pub fn subscribers(&self, event_type: &str) -> impl Iterator<Item = &Subscriber> {
        self.hooks
            .iter()
            .filter(move |hook| hook.subscribes(event_type))
    }
}

impl Subscriber {
    /// Whether it receives events of this type. `*` is the only pattern.
    pub fn subscribes(&self, event_type: &str) -> bool {
        self.events
            .iter()
            .any(|event| event == ALL_EVENTS || event == event_type)
    }

    /// `None` if the entry has an error.
    fn check(hook: &Value, index: usize, findings: &mut Vec<Finding>) -> Option<Self> {
        let path = format!("/hooks/{index}");
        let Value::Object(map) = hook else {
            findings.push(wrong_type(&path, "an object", hook));
            return None;
        };
        let before = findings.len();
        let command = check_command(map.get("command"), format!("{path}/command"));
        let command = command.map_err(|finding| findings.push(finding)).ok();
        let events = check_events(map.get("events"), &format!("{path}/events"), findings);
        let is_async = match map.get("async") {
            None => false,
            Some(Value::Bool(is_async)) => *is_async,
            Some(other) => {
                findings.push(wrong_type(&format!("{path}/async"), "a boolean", other));
                false
            }
        };
        let timeout = map.get("timeout").and_then(|timeout| {
            let seconds = check_timeout(timeout, &format!("{path}/timeout"));
            seconds.map_err(|finding| findings.push(finding)).ok()
        });
        let is_valid = !findings.iter().skip(before).any(Finding::is_error);
        is_valid.then_some(Self {
            command: command?,
            events: events?,
            is_async,
            timeout,
        })
    }
}

fn check_command(command: Option<&Value>, field: String) -> Result<String, Finding> {
    let (code, message) = match command {
        Some(Value::String(text)) if text.trim().is_empty() => (
            code::EMPTY_FIELD,
            "`command` is empty: there is nothing to run; write a shell command",
        ),
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(other) => return Err(wrong_type(&field, "a string", other)),
        None => (
            code::MISSING_FIELD,
            "`command` is missing: it receives the events; write a shell command",
        ),
    };
    Err(Finding::error(code, field, message))
}

fn check_events(
    events: Option<&Value>,
    field: &str,
    findings: &mut Vec<Finding>,
) -> Option<Vec<String>> {
    let list = match events {
        None => return Some(vec![ALL_EVENTS.to_owned()]),
        Some(Value::Array(list)) => list,
        Some(other) => {
            findings.push(wrong_type(field, "an array of event types", other));
            return None;
        }
    };
    if list.is_empty() {
        let message = "`events` is empty: the command is never called; leave `events` out, \
                       or write `[\"*\"]`, for all";
        findings.push(Finding::warning(code::NO_EVENTS, field, message));
    }
    let mut events = Vec::with_capacity(list.len());
    for (index, event) in list.iter().enumerate() {
        let field = format!("{field}/{index}");
        match event {
            Value::String(event) => {
                findings.extend(check_event(event, field));
                events.push(event.clone());
            }
            other => findings.push(wrong_type(&field, "a string", other)),
        }
    }
    Some(events)
}

fn check_event(event: &str, field: String) -> Option<Finding> {
    if event == ALL_EVENTS || event_type::is_known(event) {
        return None;
    }
    let shown = excerpt(event);
    let suggestion = suggest_event_type(event).unwrap_or_default();
    let (code, message) = if event_type::is_well_formed(event) {
        let version = crate::VERSION;
        let message = format!(
            "`{shown}` is not an event of version {version}: the command may never be called{suggestion}"
        );
        (code::UNKNOWN_EVENT, message)
    } else {
        let message = format!(
            "`{shown}` matches nothing: `*` alone means all events, and there are no other patterns{suggestion}"
        );
        (code::BAD_EVENT, message)
    };
    Some(Finding::warning(code, field, message))
}

fn check_timeout(timeout: &Value, field: &str) -> Result<f64, Finding> {
    let Value::Number(number) = timeout else {
        return Err(wrong_type(field, "a number of seconds", timeout));
    };
    let seconds = number.as_f64().filter(|seconds| *seconds > 0.0);
    seconds.ok_or_else(|| {
        let message = format!("`timeout` is {number}: it is a number of seconds above 0");
        Finding::error(code::OUT_OF_RANGE, field, message)
    })
}

/// List elements have no name, so the message does not use one.
fn wrong_type(field: &str, expected: &str, found: &Value) -> Finding {
    let found = type_name(found);
    let message = format!("this is {found}; it must be {expected}");
    Finding::error(code::WRONG_TYPE, field, message)
}
