//! The envelope: one event, as one JSON object on a hook's stdin.
//!
//! Parsing is lenient, so that an unknown version is processed best-effort;
//! [`crate::validate`] is strict.

use crate::data::Data;
use crate::finding::{Finding, code};
use crate::{uri, validate};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Envelope {
    /// Version of the protocol, `MAJOR.MINOR`.
    pub openhook: String,
    /// Unique identifier and idempotency key, a UUID.
    pub id: String,
    /// The tool that sends the event, lowercase kebab-case.
    pub source: String,
    /// Dotted lowercase, see [`crate::event_type`].
    #[serde(rename = "type")]
    pub event_type: String,
    /// ISO 8601 with a time zone.
    pub time: String,
    /// Session, conversation or task; opaque.
    pub session_id: String,
    /// By type, see [`view`](Self::view). Empty and absent are the same.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Working directory at the time of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The agent's environment as a URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Vendor-specific data. Empty and absent are the same.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// Other top-level fields. The names of the fields above are not written from here.
    #[serde(flatten, serialize_with = "serialize_unknown")]
    pub unknown: Map<String, Value>,
}

pub(crate) const REQUIRED_FIELDS: [&str; 6] =
    ["openhook", "id", "source", "type", "time", "session_id"];
const OPTIONAL_FIELDS: [&str; 4] = ["data", "cwd", "context", "extensions"];

fn serialize_unknown<S: Serializer>(
    unknown: &Map<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let is_unknown =
        |name: &str| !REQUIRED_FIELDS.contains(&name) && !OPTIONAL_FIELDS.contains(&name);
    serializer.collect_map(unknown.iter().filter(|(name, _)| is_unknown(name)))
}

/// Whether this value claims to be an OpenHook envelope: it has the field `openhook`.
pub fn is_envelope(value: &Value) -> bool {
    value.get("openhook").is_some()
}

impl Envelope {
    /// Starts an envelope of version 0.1. Set `id` and `time` as well: this
    /// crate has neither a clock nor a source of randomness.
    pub fn builder(
        source: impl Into<String>,
        event_type: impl Into<String>,
        session_id: impl Into<String>,
    ) -> EnvelopeBuilder {
        EnvelopeBuilder(Self {
            openhook: VERSION.to_owned(),
            source: source.into(),
            event_type: event_type.into(),
            session_id: session_id.into(),
            ..Self::default()
        })
    }

    /// Parses one envelope. Rejects only what it cannot represent: other JSON,
    /// absent required fields, and fields of another type.
    pub fn parse(json: &str) -> Result<Self, ParseError> {
        match serde_json::from_str(json) {
            Ok(value) => Self::from_value(value),
            Err(error) => Err(ParseError(vec![Finding::syntax(&error)])),
        }
    }

    /// [`parse`](Self::parse) for a JSON value.
    pub fn from_value(value: Value) -> Result<Self, ParseError> {
        let Value::Object(mut map) = value else {
            return Err(ParseError(validate(&value)));
        };
        let mut findings = Vec::new();
        let mut take_text = |name: &str, is_required| match map.remove(name) {
            Some(Value::String(text)) => Some(text),
            None if is_required => {
                findings.push(missing(name));
                None
            }
            None | Some(Value::Null) if !is_required => None,
            other => {
                let found = other.unwrap_or_default();
                findings.push(Finding::wrong_type(&format!("/{name}"), "a string", &found));
                None
            }
        };
        let [openhook, id, source, event_type, time, session_id] =
            REQUIRED_FIELDS.map(|name| take_text(name, true).unwrap_or_default());
        let [cwd, context] = ["cwd", "context"].map(|name| take_text(name, false));
        let [data, extensions] = ["data", "extensions"].map(|name| match map.remove(name) {
            Some(Value::Object(object)) => object,
            None | Some(Value::Null) => Map::new(),
            Some(other) => {
                findings.push(Finding::wrong_type(
                    &format!("/{name}"),
                    "an object",
                    &other,
                ));
                Map::new()
            }
        });
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
        json!(self)
    }

    /// The envelope on one line with a line break: the stdin of a hook, and one
    /// line of a recorded stream.
    pub fn to_json_line(&self) -> String {
        format!("{}\n", self.to_value())
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
        Data::from_map(&self.event_type, &self.data)
    }

    /// The findings of [`crate::validate`].
    pub fn findings(&self) -> Vec<Finding> {
        validate(&self.to_value())
    }

    /// The agent's working directory: `cwd`, or `context` if it is a file URI.
    pub fn directory(&self) -> Option<String> {
        self.cwd
            .clone()
            .or_else(|| uri::file_path(self.context.as_deref()?))
    }
}

impl TryFrom<Value> for Envelope {
    type Error = ParseError;

    fn try_from(value: Value) -> Result<Self, ParseError> {
        Self::from_value(value)
    }
}

/// Builds an [`Envelope`]; see there for an example.
#[derive(Debug, Clone)]
#[must_use]
pub struct EnvelopeBuilder(Envelope);

impl EnvelopeBuilder {
    /// A UUID; [`crate::stable_id`] makes one that is the same for the same event.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.0.id = id.into();
        self
    }

    pub fn time(mut self, time: impl Into<String>) -> Self {
        self.0.time = time.into();
        self
    }

    /// One of the views of `data`, or a map.
    pub fn data(mut self, data: impl Into<Map<String, Value>>) -> Self {
        self.0.data = data.into();
        self
    }

    /// Sets both fields for a working directory: `cwd` of the older text of the
    /// protocol and `context` of the newer one.
    pub fn directory(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.0.context = uri::is_absolute_path(&path).then(|| uri::file_uri(&path));
        self.0.cwd = Some(path);
        self
    }

    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.0.cwd = Some(cwd.into());
        self
    }

    pub fn context(mut self, uri: impl Into<String>) -> Self {
        self.0.context = Some(uri.into());
        self
    }

    pub fn extension(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.extensions.insert(key.into(), value.into());
        self
    }

    /// The envelope, if nothing in it violates the protocol.
    pub fn build(self) -> Result<Envelope, ParseError> {
        let mut errors = self.0.findings();
        errors.retain(Finding::is_error);
        if errors.is_empty() {
            Ok(self.0)
        } else {
            Err(ParseError(errors))
        }
    }
}

/// Why there is no envelope: every error, at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError(Vec<Finding>);

impl ParseError {
    pub fn findings(&self) -> &[Finding] {
        &self.0
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let findings: Vec<String> = self.0.iter().map(Finding::to_string).collect();
        f.write_str(&findings.join("; "))
    }
}

pub(crate) fn missing(name: &str) -> Finding {
    let message = format!(
        "`{name}` is missing: every envelope has it; add {}",
        example(name)
    );
    Finding::error(code::MISSING_FIELD, format!("/{name}"), message)
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
