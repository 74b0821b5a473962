//! The envelope: one event, as one JSON object on a hook's stdin.
//!
//! Reading is lenient, so that an unknown version is processed best-effort;
//! [`crate::validate`] is what is strict.

use crate::data::Data;
use crate::finding::{Finding, code};
use crate::{uri, validate};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// The version of the protocol that this crate writes.
pub const VERSION: &str = "0.1";

/// An OpenHook event.
///
/// `parse(write(e)) = e` for every envelope, the fields of later versions
/// included: they are kept in [`unknown`](Self::unknown).
///
/// ```
/// use openhook::{Envelope, EndReason, SessionEnd, event_type};
///
/// let envelope = Envelope::builder("claude-code", event_type::SESSION_END, "sess_abc123")
///     .id("550e8400-e29b-41d4-a716-446655440000")
///     .time("2026-02-23T10:15:30.123Z")
///     .directory("/home/user/my-project")
///     .data(SessionEnd {
///         reason: Some(EndReason::UserExit),
///         duration_ms: Some(120_000),
///         ..SessionEnd::default()
///     })
///     .build()?;
///
/// let line = envelope.to_json_line();
/// assert!(line.ends_with("}\n"));
/// assert_eq!(Envelope::parse(&line)?, envelope);
/// assert_eq!(envelope.context.as_deref(), Some("file:///home/user/my-project"));
/// # Ok::<(), openhook::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Version of the protocol, `MAJOR.MINOR`.
    pub openhook: String,
    /// Unique identifier and idempotency key, a UUID.
    pub id: String,
    /// The tool that sends, lowercase kebab-case.
    pub source: String,
    /// `type` in JSON: dotted lowercase, see [`crate::event_type`].
    pub event_type: String,
    /// ISO 8601 with a time zone.
    pub time: String,
    /// Session, conversation or task; opaque.
    pub session_id: String,
    /// By type, see [`view`](Self::view). Empty and absent are the same.
    pub data: Map<String, Value>,
    /// Working directory at the time of the event.
    pub cwd: Option<String>,
    /// The agent's environment as a URI.
    pub context: Option<String>,
    /// Data of vendors. Empty and absent are the same.
    pub extensions: Map<String, Value>,
    /// Other top-level fields. A name of the fields above is not written from here.
    pub unknown: Map<String, Value>,
}

/// The names that [`Envelope::unknown`] cannot hold.
const FIELDS: [&str; 10] = [
    "openhook",
    "id",
    "source",
    "type",
    "time",
    "session_id",
    "data",
    "cwd",
    "context",
    "extensions",
];

/// Does this value claim to be an OpenHook envelope? Its `openhook` field says so.
pub fn is_envelope(value: &Value) -> bool {
    value.get("openhook").is_some()
}

impl Envelope {
    /// Starts an envelope of version 0.1. `id` and `time` must be given too:
    /// this crate has neither a clock nor a source of randomness.
    pub fn builder(
        source: impl Into<String>,
        event_type: impl Into<String>,
        session_id: impl Into<String>,
    ) -> Builder {
        Builder {
            envelope: Self {
                openhook: VERSION.to_owned(),
                id: String::new(),
                source: source.into(),
                event_type: event_type.into(),
                time: String::new(),
                session_id: session_id.into(),
                data: Map::new(),
                cwd: None,
                context: None,
                extensions: Map::new(),
                unknown: Map::new(),
            },
        }
    }

    /// Reads one envelope. Only what cannot be represented is refused: other
    /// JSON, absent required fields, and fields of another type.
    pub fn parse(json: &str) -> Result<Self, ParseError> {
        match serde_json::from_str(json) {
            Ok(value) => Self::from_value(value),
            Err(error) => Err(ParseError(vec![Finding::syntax(&error)])),
        }
    }

    /// [`parse`](Self::parse) for a value that is read already.
    pub fn from_value(value: Value) -> Result<Self, ParseError> {
        let Value::Object(mut map) = value else {
            return Err(ParseError(validate(&value)));
        };
        let mut findings = Vec::new();
        let mut required = |map: &mut Map<String, Value>, name: &str| match map.remove(name) {
            Some(Value::String(text)) => text,
            None => {
                findings.push(missing(name));
                String::new()
            }
            Some(other) => {
                findings.push(wrong_type(name, "a string", &other));
                String::new()
            }
        };
        let openhook = required(&mut map, "openhook");
        let id = required(&mut map, "id");
        let source = required(&mut map, "source");
        let event_type = required(&mut map, "type");
        let time = required(&mut map, "time");
        let session_id = required(&mut map, "session_id");
        let mut text = |map: &mut Map<String, Value>, name: &str| match map.remove(name) {
            Some(Value::String(text)) => Some(text),
            None | Some(Value::Null) => None,
            Some(other) => {
                findings.push(wrong_type(name, "a string", &other));
                None
            }
        };
        let cwd = text(&mut map, "cwd");
        let context = text(&mut map, "context");
        let mut object = |map: &mut Map<String, Value>, name: &str| match map.remove(name) {
            Some(Value::Object(object)) => object,
            None | Some(Value::Null) => Map::new(),
            Some(other) => {
                findings.push(wrong_type(name, "an object", &other));
                Map::new()
            }
        };
        let data = object(&mut map, "data");
        let extensions = object(&mut map, "extensions");
        if !findings.is_empty() {
            return Err(ParseError(findings));
        }
        Ok(Self {
            openhook,
            id,
            source,
            event_type,
            time,
            session_id,
            data,
            cwd,
            context,
            extensions,
            unknown: map,
        })
    }

    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (name, value) in self.texts() {
            map.insert(name.to_owned(), value.into());
        }
        if !self.data.is_empty() {
            map.insert("data".to_owned(), self.data.clone().into());
        }
        for (name, value) in self.places() {
            map.insert(name.to_owned(), value.into());
        }
        if !self.extensions.is_empty() {
            map.insert("extensions".to_owned(), self.extensions.clone().into());
        }
        for (name, value) in self.later_fields() {
            map.insert(name.clone(), value.clone());
        }
        Value::Object(map)
    }

    /// The envelope on one line, with the line's end: what a hook gets on stdin
    /// and what a recorded stream consists of.
    pub fn to_json_line(&self) -> String {
        let mut line = self.to_value().to_string();
        line.push('\n');
        line
    }

    /// `data`, typed.
    ///
    /// ```
    /// use openhook::{Data, Envelope};
    /// # let json = r#"{"openhook":"0.1","id":"1","source":"a","type":"tool.start",
    /// #   "time":"2026-01-01T00:00:00Z","session_id":"s","data":{"tool_name":"Bash"}}"#;
    /// let envelope = Envelope::parse(json)?;
    /// match envelope.view() {
    ///     Data::ToolStart(tool) => assert_eq!(tool.tool_name, Some("Bash")),
    ///     _ => unreachable!(),
    /// }
    /// # Ok::<(), openhook::ParseError>(())
    /// ```
    pub fn view(&self) -> Data<'_> {
        Data::read(&self.event_type, &self.data)
    }

    /// Everything that [`crate::validate`] has to say.
    pub fn findings(&self) -> Vec<Finding> {
        validate(&self.to_value())
    }

    /// The directory that the agent works in: `cwd`, or `context` when it is a file URI.
    pub fn directory(&self) -> Option<String> {
        self.cwd
            .clone()
            .or_else(|| uri::file_path(self.context.as_deref()?))
    }

    fn texts(&self) -> [(&'static str, &str); 6] {
        [
            ("openhook", &self.openhook),
            ("id", &self.id),
            ("source", &self.source),
            ("type", &self.event_type),
            ("time", &self.time),
            ("session_id", &self.session_id),
        ]
    }

    fn places(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("cwd", &self.cwd), ("context", &self.context)]
            .into_iter()
            .filter_map(|(name, place)| Some((name, place.as_deref()?)))
    }

    fn later_fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.unknown
            .iter()
            .filter(|(name, _)| !FIELDS.contains(&name.as_str()))
    }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.texts() {
            map.serialize_entry(name, value)?;
        }
        if !self.data.is_empty() {
            map.serialize_entry("data", &self.data)?;
        }
        for (name, value) in self.places() {
            map.serialize_entry(name, value)?;
        }
        if !self.extensions.is_empty() {
            map.serialize_entry("extensions", &self.extensions)?;
        }
        for (name, value) in self.later_fields() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Makes an [`Envelope`]; see there for an example.
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    envelope: Envelope,
}

impl Builder {
    /// A UUID; [`crate::stable_id`] makes one that is the same for the same event.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.envelope.id = id.into();
        self
    }

    pub fn time(mut self, time: impl Into<String>) -> Self {
        self.envelope.time = time.into();
        self
    }

    /// One of the views, or a map.
    pub fn data(mut self, data: impl Into<Map<String, Value>>) -> Self {
        self.envelope.data = data.into();
        self
    }

    /// Both fields for an agent that works in a directory: `cwd`, of the older
    /// text, and `context`, of the newer one.
    pub fn directory(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.envelope.context = uri::is_absolute_path(&path).then(|| uri::file_uri(&path));
        self.envelope.cwd = Some(path);
        self
    }

    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.envelope.cwd = Some(cwd.into());
        self
    }

    pub fn context(mut self, uri: impl Into<String>) -> Self {
        self.envelope.context = Some(uri.into());
        self
    }

    pub fn extension(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.envelope.extensions.insert(key.into(), value.into());
        self
    }

    /// The envelope, when nothing in it violates the protocol.
    pub fn build(self) -> Result<Envelope, ParseError> {
        let errors: Vec<Finding> = self
            .envelope
            .findings()
            .into_iter()
            .filter(Finding::is_error)
            .collect();
        if errors.is_empty() {
            Ok(self.envelope)
        } else {
            Err(ParseError(errors))
        }
    }
}

/// Why there is no envelope: every reason, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError(Vec<Finding>);

impl ParseError {
    pub fn findings(&self) -> &[Finding] {
        &self.0
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

pub(crate) fn missing(name: &str) -> Finding {
    Finding::error(
        code::MISSING_FIELD,
        format!("/{name}"),
        format!(
            "`{name}` is missing: every envelope has it; add {}",
            example(name)
        ),
    )
}

pub(crate) fn wrong_type(name: &str, wanted: &str, found: &Value) -> Finding {
    Finding::error(
        code::WRONG_TYPE,
        format!("/{name}"),
        format!("`{name}` is {}; it must be {wanted}", describe(found)),
    )
}

fn example(name: &str) -> &'static str {
    match name {
        "openhook" => r#"`"openhook": "0.1"`"#,
        "id" => "a UUID",
        "source" => r#"the tool's name, as in `"source": "claude-code"`"#,
        "type" => r#"the event, as in `"type": "session.end"`"#,
        "time" => r#"an ISO 8601 time with its zone, as in `"time": "2026-02-23T10:15:30.123Z"`"#,
        _ => "the session's identifier",
    }
}

pub(crate) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
