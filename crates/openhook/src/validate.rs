//! Checks one envelope against the protocol and reports every violation.

use crate::data::{FieldRule, ValueKind, rules};
use crate::envelope::{REQUIRED_FIELDS, VERSION, missing};
use crate::finding::{Finding, code, type_name};
use crate::time::{TimeError, Timestamp};
use crate::{end_reason, event_type, legacy, uri};
use serde_json::{Map, Number, Value};
use uuid::Uuid;

/// Reports everything that is wrong with an envelope, and what a reader should
/// know about it. Without errors among the findings the envelope conforms.
///
/// Unknown fields and unknown keys of `extensions` are ignored, as the protocol
/// requires. An unknown version or type is a warning.
///
/// ```
/// use serde_json::json;
/// let findings = openhook::validate(&json!({
///     "openhook": "0.1",
///     "id": "550e8400-e29b-41d4-a716-446655440000",
///     "source": "Claude Code",
///     "type": "session.end",
///     "time": "2026-02-23T10:15:30",
///     "session_id": "sess_abc123",
/// }));
/// let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
/// assert_eq!(codes, ["bad-source", "time-without-zone"]);
/// assert!(findings[0].message.contains("`claude-code`"));
/// ```
pub fn validate(envelope: &Value) -> Vec<Finding> {
    let Value::Object(map) = envelope else {
        let found = type_name(envelope);
        let message = format!("an envelope is one JSON object; this is {found}");
        return vec![Finding::error(code::NOT_AN_OBJECT, "", message)];
    };
    let mut findings = Vec::new();
    for name in REQUIRED_FIELDS {
        match map.get(name) {
            Some(Value::String(text)) => findings.extend(check_required(name, text)),
            None => findings.push(missing(name)),
            Some(other) => {
                findings.push(Finding::wrong_type(&format!("/{name}"), "a string", other));
            }
        }
    }
    let event_type = map.get("type").and_then(Value::as_str).unwrap_or_default();
    match map.get("data") {
        None => check_data(event_type, &Map::new(), &mut findings),
        Some(Value::Object(data)) => check_data(event_type, data, &mut findings),
        Some(other) => findings.push(Finding::wrong_type("/data", "an object", other)),
    }
    match map.get("cwd") {
        None | Some(Value::String(_)) => {}
        Some(other) => findings.push(Finding::wrong_type("/cwd", "a string", other)),
    }
    match map.get("context") {
        None => {}
        Some(Value::String(text)) => findings.extend(check_context(text)),
        Some(other) => findings.push(Finding::wrong_type("/context", "a string", other)),
    }
    match map.get("extensions") {
        None | Some(Value::Object(_)) => {}
        Some(other) => findings.push(Finding::wrong_type("/extensions", "an object", other)),
    }
    findings
}

/// [`validate`] for text; text that is not JSON has one finding, with its position.
///
/// ```
/// let findings = openhook::validate_text("{\"openhook\": ");
/// assert_eq!((findings.len(), findings[0].code), (1, "syntax"));
/// ```
pub fn validate_text(json: &str) -> Vec<Finding> {
    match serde_json::from_str(json) {
        Ok(envelope) => validate(&envelope),
        Err(error) => vec![Finding::syntax(&error)],
    }
}

fn check_required(name: &str, text: &str) -> Option<Finding> {
    match name {
        "openhook" => check_version(text),
        "id" => check_id(text),
        "source" => check_source(text),
        "type" => check_type(text),
        "time" => check_time(text),
        _ => text.is_empty().then(|| {
            let message = "`session_id` is empty: events of this session cannot be \
                           distinguished from others; give the session's identifier";
            Finding::warning(code::EMPTY_FIELD, "/session_id", message)
        }),
    }
}

/// What is wrong with a version of the protocol: it is no version (an error), or not the one
/// that this crate knows (a warning).
pub fn check_version(text: &str) -> Option<Finding> {
    let shown = excerpt(text);
    if !event_type::is_version(text) {
        let message = format!(
            "`openhook` is `{shown}`: a version is `MAJOR.MINOR` without a patch; write `{VERSION}`"
        );
        return Some(Finding::error(code::BAD_VERSION, "/openhook", message));
    }
    (text != VERSION).then(|| {
        let message =
            format!("version `{shown}` is unknown: it is read as {VERSION} as far as possible");
        Finding::warning(code::UNKNOWN_VERSION, "/openhook", message)
    })
}

fn check_id(text: &str) -> Option<Finding> {
    if text.is_empty() {
        let message =
            "`id` is empty: it is the idempotency key of the event; give each event a UUID";
        return Some(Finding::error(code::EMPTY_FIELD, "/id", message));
    }
    let shown = excerpt(text);
    let message = match uuid_version(text) {
        Some(4 | 7) => return None,
        Some(version) => format!(
            "`id` is `{shown}`, a UUID of version {version}: it should be of version 4, \
             which is random"
        ),
        None => format!("`id` is `{shown}`: it should be a UUID, so that it is unique"),
    };
    Some(Finding::warning(code::ID_NOT_UUID, "/id", message))
}

/// In the form with hyphens, of any version.
pub(crate) fn is_uuid(text: &str) -> bool {
    uuid_version(text).is_some()
}

fn uuid_version(text: &str) -> Option<usize> {
    let uuid = Uuid::try_parse(text).ok()?;
    (text.len() == 36).then(|| uuid.get_version_num())
}

fn check_source(text: &str) -> Option<Finding> {
    if event_type::is_kebab_case(text) {
        return None;
    }
    let fix = event_type::to_kebab_case(text).unwrap_or_else(|| "my-tool".to_owned());
    let message = format!(
        "`source` is `{}`: a tool's name is lowercase kebab-case; write `{fix}`",
        excerpt(text)
    );
    Some(Finding::error(code::BAD_SOURCE, "/source", message))
}

fn check_type(text: &str) -> Option<Finding> {
    if event_type::is_known(text) {
        return None;
    }
    let shown = excerpt(text);
    let suggestion = suggest_event_type(text);
    Some(if event_type::is_well_formed(text) {
        let message = format!(
            "event type `{shown}` is not one of version {VERSION}: its `data` is not checked{}",
            suggestion.unwrap_or_default()
        );
        Finding::warning(code::UNKNOWN_TYPE, "/type", message)
    } else {
        let message = format!(
            "`type` is `{shown}`: an event type is lowercase with dots{}",
            suggestion.unwrap_or_else(|| "; write it like `session.end`".to_owned())
        );
        Finding::error(code::BAD_TYPE, "/type", message)
    })
}

/// For the end of a message, if another tool's name for an event is known.
pub(crate) fn suggest_event_type(name: &str) -> Option<String> {
    let guess = legacy::guess_event_type(name)?;
    Some(format!("; did you mean `{}`?", guess.event_type))
}

fn check_time(text: &str) -> Option<Finding> {
    let (code, why) = match text.parse::<Timestamp>() {
        Ok(_) => return None,
        Err(TimeError::NoZone) => (
            code::TIME_WITHOUT_ZONE,
            "has no time zone; add `Z` or an offset such as `+02:00`",
        ),
        Err(TimeError::Range) => (
            code::BAD_TIME,
            "names a date or a time of day that does not exist",
        ),
        Err(TimeError::Form) => (
            code::BAD_TIME,
            "is not ISO 8601; write `2026-02-23T10:15:30.123Z`",
        ),
    };
    let message = format!("`time` is `{}`: it {why}", excerpt(text));
    Some(Finding::error(code, "/time", message))
}

fn check_context(text: &str) -> Option<Finding> {
    if uri::is_uri(text) {
        return None;
    }
    let fix = if uri::is_absolute_path(text) {
        uri::file_uri(text)
    } else {
        "file:///home/user/my-project".to_owned()
    };
    let message = format!(
        "`context` is `{}`: it is not a URI; write `{fix}`, or use `cwd` for a plain path",
        excerpt(text)
    );
    Some(Finding::error(code::CONTEXT_NOT_URI, "/context", message))
}

fn check_data(event_type: &str, data: &Map<String, Value>, findings: &mut Vec<Finding>) {
    for rule in rules(event_type) {
        let name = rule.name;
        match data.get(name) {
            Some(value) => findings.extend(check_field(rule, value)),
            None if rule.required => {
                let message =
                    format!("`{name}` is missing: a `{event_type}` event requires it in `data`");
                let field = format!("/data/{name}");
                findings.push(Finding::error(code::MISSING_FIELD, field, message));
            }
            None => {}
        }
    }
    if event_type == event_type::SESSION_END
        && let Some(path) = data.get("transcript_path").and_then(Value::as_str)
        && !uri::is_absolute_path(path)
    {
        let message = format!(
            "`transcript_path` is `{}`: consumers run in another directory; give the absolute path",
            excerpt(path)
        );
        let field = "/data/transcript_path";
        findings.push(Finding::warning(code::RELATIVE_TRANSCRIPT, field, message));
    }
    if event_type == event_type::FILE_WRITE
        && let Some(start) = data.get("start_line").and_then(Value::as_u64)
        && let Some(end) = data.get("end_line").and_then(Value::as_u64)
        && start > end
    {
        let message =
            format!("`end_line` is {end}, before `start_line` {start}: the range is empty");
        let field = "/data/end_line";
        findings.push(Finding::warning(code::INVERTED_RANGE, field, message));
    }
}

fn check_field(rule: &FieldRule, value: &Value) -> Option<Finding> {
    let name = rule.name;
    let field = format!("/data/{name}");
    let (code, message) = match (rule.kind, value) {
        (ValueKind::Text, Value::String(text)) if rule.required && text.is_empty() => {
            let message = format!("`{name}` is empty: it must name something");
            (code::EMPTY_FIELD, message)
        }
        (ValueKind::OneOf(words), Value::String(word)) if !words.contains(&word.as_str()) => {
            let suggestion = end_reason(word)
                .filter(|reason| words.contains(reason))
                .map(|reason| format!("; write `{reason}`"))
                .unwrap_or_default();
            let message = format!(
                "`{name}` is `{}`: it is one of `{}`{suggestion}",
                excerpt(word),
                words.join("`, `")
            );
            (code::UNKNOWN_VALUE, message)
        }
        (ValueKind::Integer { .. }, Value::Number(number)) if !is_integer(number) => {
            let message = format!("`{name}` is {number}; it must be an integer");
            (code::WRONG_TYPE, message)
        }
        (ValueKind::Integer { min }, Value::Number(number)) if is_below(number, min) => {
            let message = format!("`{name}` is {number}: the minimum is {min}");
            (code::OUT_OF_RANGE, message)
        }
        (ValueKind::Integer { .. }, Value::Number(_))
        | (ValueKind::Text | ValueKind::OneOf(_), Value::String(_)) => return None,
        (ValueKind::Integer { .. }, _) => {
            return Some(Finding::wrong_type(&field, "an integer", value));
        }
        (ValueKind::Text | ValueKind::OneOf(_), _) => {
            return Some(Finding::wrong_type(&field, "a string", value));
        }
    };
    Some(Finding::error(code, field, message))
}

/// As in JSON Schema, `3.0` is an integer.
fn is_integer(number: &Number) -> bool {
    number.is_u64() || number.is_i64() || number.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn is_below(number: &Number, min: u64) -> bool {
    match number.as_u64() {
        Some(integer) => integer < min,
        #[expect(clippy::cast_precision_loss, reason = "the minima are 0 and 1")]
        None => number.as_f64().is_some_and(|n| n < min as f64),
    }
}

/// Foreign text in a message: one line of limited length.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let mut short: String = text
        .chars()
        .take(MAX_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        short.push('…');
    }
    short
}
