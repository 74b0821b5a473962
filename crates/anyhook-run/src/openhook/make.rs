//! Envelopes from parts that a user gives, and from payloads of unknown agents.

use openhook::{Envelope, Finding, ParseError, Timestamp, legacy, stable_id};
use serde_json::{Map, Value};

use super::file_changes::is_absolute;

/// The parts of an envelope.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnvelopeParts {
    pub event_type: String,
    pub source: String,
    pub session_id: String,
    pub data: Map<String, Value>,
    /// A new one by default.
    pub id: Option<String>,
    /// Now by default.
    pub time: Option<String>,
    pub cwd: Option<String>,
    /// `cwd` as a URI by default.
    pub context: Option<String>,
    pub extensions: Map<String, Value>,
}

/// An envelope and its findings. It is valid if no finding is an error.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedEnvelope {
    pub envelope: Envelope,
    pub findings: Vec<Finding>,
}

impl CheckedEnvelope {
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

/// Makes an envelope. `nonce` is unique to this call: it goes into the `id`, unless
/// the caller gives one.
///
/// ```
/// use anyhook_run::openhook::{EnvelopeParts, make_envelope};
/// let parts = EnvelopeParts {
///     event_type: "session.end".into(),
///     source: "my-agent".into(),
///     session_id: "s1".into(),
///     cwd: Some("/home/me/project".into()),
///     ..EnvelopeParts::default()
/// };
/// let made = make_envelope(parts, 1_771_841_730_123, "17-4711");
/// assert!(made.is_sound());
/// assert_eq!(made.envelope.time, "2026-02-23T10:15:30.123Z");
/// assert_eq!(made.envelope.context.as_deref(), Some("file:///home/me/project"));
/// ```
pub fn make_envelope(parts: EnvelopeParts, now_ms: i64, nonce: &str) -> CheckedEnvelope {
    let time = parts.time.unwrap_or_else(|| rfc3339(now_ms));
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
    // Not by the builder: an invalid envelope is shown together with its findings.
    let folder = parts.cwd.as_deref().filter(|cwd| is_absolute(cwd));
    let context = parts.context.or_else(|| folder.map(openhook::file_uri));
    let envelope = Envelope {
        openhook: openhook::VERSION.to_owned(),
        id,
        source: parts.source,
        event_type: parts.event_type,
        time,
        session_id: parts.session_id,
        data: parts.data,
        cwd: parts.cwd,
        context,
        extensions: parts.extensions,
        unknown: Map::new(),
    };
    let findings = envelope.findings();
    CheckedEnvelope { envelope, findings }
}

/// Why a payload has no envelope.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UnknownPayloadError {
    #[error(
        "could not detect the event of the payload; name the agent, or build the envelope from its parts"
    )]
    Unrecognised,
    /// The guess does not conform to OpenHook.
    #[error("no envelope can be made of it: {0}")]
    Invalid(ParseError),
}

/// The envelope of a native payload whose agent has no table, by the names that
/// agents use; an envelope stays as it is.
///
/// ```
/// use serde_json::json;
/// let payload = json!({ "hook_event_name": "Stop", "conversation_id": "c1" });
/// let envelope = anyhook_run::openhook::from_unknown(payload, "some-agent", 0)?;
/// assert_eq!((envelope.event_type.as_str(), envelope.session_id.as_str()), ("session.end", "c1"));
/// # Ok::<(), anyhook_run::openhook::UnknownPayloadError>(())
/// ```
pub fn from_unknown(
    payload: Value,
    source: &str,
    now_ms: i64,
) -> Result<Envelope, UnknownPayloadError> {
    if openhook::is_envelope(&payload) {
        return Envelope::from_value(payload).map_err(UnknownPayloadError::Invalid);
    }
    legacy::guess_envelope(&payload, source)
        .ok_or(UnknownPayloadError::Unrecognised)?
        .into_envelope(&rfc3339(now_ms))
        .map_err(UnknownPayloadError::Invalid)
}

/// A time that no calendar has becomes 1970.
pub(super) fn rfc3339(ms: i64) -> String {
    let epoch = || "1970-01-01T00:00:00Z".to_owned();
    Timestamp::from_unix_millis(ms).map_or_else(epoch, |time| time.to_string())
}
