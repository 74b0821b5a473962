//! Envelopes from parts that a user gives, and from payloads of agents that
//! nobody has described.

use openhook::{Envelope, Finding, ParseError, Timestamp, legacy, stable_id};
use serde_json::{Map, Value};

use crate::change::is_absolute;

/// What an envelope is made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts {
    pub event_type: String,
    pub source: String,
    pub session_id: String,
    pub data: Map<String, Value>,
    /// Made from everything else when it is not given.
    pub id: Option<String>,
    /// Now, when it is not given.
    pub time: Option<String>,
    pub cwd: Option<String>,
    /// `cwd` as a URI, when it is not given.
    pub context: Option<String>,
    pub extensions: Map<String, Value>,
}

/// An envelope, and everything that there is to say about it. It is sound when
/// no finding is an error.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub envelope: Envelope,
    pub findings: Vec<Finding>,
}

impl Made {
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

/// Makes an envelope. `nonce` tells this call from every other: it goes into
/// the `id` unless the caller says the time, which makes the call repeatable.
///
/// ```
/// use anyhook_emit::{Parts, make};
/// let parts = Parts {
///     event_type: "session.end".into(),
///     source: "my-agent".into(),
///     session_id: "s1".into(),
///     cwd: Some("/home/me/project".into()),
///     ..Parts::default()
/// };
/// let made = make(parts, 1_771_841_730_123, "17-4711");
/// assert!(made.is_sound());
/// assert_eq!(made.envelope.time, "2026-02-23T10:15:30.123Z");
/// assert_eq!(made.envelope.context.as_deref(), Some("file:///home/me/project"));
/// ```
pub fn make(parts: Parts, now_ms: i64, nonce: &str) -> Made {
    let nonce = if parts.time.is_some() { "" } else { nonce };
    let time = parts.time.unwrap_or_else(|| now(now_ms));
    let id = parts.id.unwrap_or_else(|| {
        let data = Value::Object(parts.data.clone()).to_string();
        stable_id(&[
            &parts.source,
            &parts.session_id,
            &parts.event_type,
            &time,
            &data,
            nonce,
        ])
    });
    // Not by the builder: what is wrong is to be shown together with its reasons.
    let mut envelope = Envelope {
        openhook: openhook::VERSION.to_owned(),
        id,
        source: parts.source,
        event_type: parts.event_type,
        time,
        session_id: parts.session_id,
        data: parts.data,
        cwd: None,
        context: None,
        extensions: parts.extensions,
        unknown: Map::new(),
    };
    if let Some(cwd) = parts.cwd {
        envelope.context = is_absolute(&cwd).then(|| openhook::file_uri(&cwd));
        envelope.cwd = Some(cwd);
    }
    if parts.context.is_some() {
        envelope.context = parts.context;
    }
    let findings = envelope.findings();
    Made { envelope, findings }
}

/// Why nothing can be made of a payload.
#[derive(Debug, Clone, PartialEq)]
pub enum NotTold {
    /// No field says which event it is.
    Unrecognised,
    /// What could be guessed does not conform.
    Invalid(ParseError),
}

impl std::fmt::Display for NotTold {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unrecognised => formatter.write_str(
                "nothing in the payload tells its event; name the agent, or build the envelope from its parts",
            ),
            Self::Invalid(error) => write!(formatter, "no envelope can be made of it: {error}"),
        }
    }
}

impl std::error::Error for NotTold {}

/// The envelope of a native payload whose agent has no table, by the names that
/// agents have used; one that is an envelope already stays as it is.
///
/// ```
/// use serde_json::json;
/// let payload = json!({ "hook_event_name": "Stop", "conversation_id": "c1" });
/// let told = anyhook_emit::from_unknown(payload, "some-agent", 0)?;
/// assert_eq!((told.event_type.as_str(), told.session_id.as_str()), ("session.end", "c1"));
/// # Ok::<(), anyhook_emit::NotTold>(())
/// ```
pub fn from_unknown(payload: Value, source: &str, now_ms: i64) -> Result<Envelope, NotTold> {
    if openhook::is_envelope(&payload) {
        return Envelope::from_value(payload).map_err(NotTold::Invalid);
    }
    legacy::guess(&payload, source)
        .ok_or(NotTold::Unrecognised)?
        .into_envelope(&now(now_ms))
        .map_err(NotTold::Invalid)
}

fn now(ms: i64) -> String {
    let epoch = || "1970-01-01T00:00:00Z".to_owned();
    Timestamp::from_unix_millis(ms).map_or_else(epoch, |time| time.to_string())
}
