//! Every violation of the protocol in one envelope.

use crate::data::{Kind, Rule, rules};
use crate::envelope::{VERSION, describe, missing, wrong_type};
use crate::finding::{Finding, code};
use crate::time::{TimeError, Timestamp};
use crate::{end_reason, event_type, legacy, uri};
use serde_json::{Map, Number, Value};
use uuid::Uuid;

/// Says everything that is wrong with an envelope, and what a reader should
/// know about it. No errors among the findings: the envelope conforms.
///
/// Unknown fields and unknown keys of `extensions` are passed over in silence,
/// as the protocol asks. An unknown version or type is a warning.
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
        return vec![Finding::error(
            code::NOT_AN_OBJECT,
            "",
            format!(
                "an envelope is one JSON object; this is {}",
                describe(envelope)
            ),
        )];
    };
    let mut findings = Vec::new();
    if let Some(text) = required(map, "openhook", &mut findings) {
        version(text, &mut findings);
    }
    if let Some(text) = required(map, "id", &mut findings) {
        id(text, &mut findings);
    }
    if let Some(text) = required(map, "source", &mut findings) {
        source(text, &mut findings);
    }
    let event = required(map, "type", &mut findings);
    if let Some(text) = event {
        kind(text, &mut findings);
    }
    if let Some(text) = required(map, "time", &mut findings) {
        time(text, &mut findings);
    }
    if required(map, "session_id", &mut findings) == Some("") {
        findings.push(Finding::warning(
            code::EMPTY_FIELD,
            "/session_id",
            "`session_id` is empty: events of this session cannot be told from others; \
             give the session's identifier"
                .to_owned(),
        ));
    }
    let nothing = Map::new();
    match map.get("data") {
        None => data(event.unwrap_or_default(), &nothing, &mut findings),
        Some(Value::Object(object)) => data(event.unwrap_or_default(), object, &mut findings),
        Some(other) => findings.push(wrong_type("data", "an object", other)),
    }
    match map.get("cwd") {
        None | Some(Value::String(_)) => {}
        Some(other) => findings.push(wrong_type("cwd", "a string", other)),
    }
    match map.get("context") {
        None => {}
        Some(Value::String(text)) => context(text, &mut findings),
        Some(other) => findings.push(wrong_type("context", "a string", other)),
    }
    match map.get("extensions") {
        None | Some(Value::Object(_)) => {}
        Some(other) => findings.push(wrong_type("extensions", "an object", other)),
    }
    findings
}

/// The same for text; what is not JSON has one finding, with its place.
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

fn required<'a>(
    map: &'a Map<String, Value>,
    name: &str,
    findings: &mut Vec<Finding>,
) -> Option<&'a str> {
    match map.get(name) {
        Some(Value::String(text)) => return Some(text),
        None => findings.push(missing(name)),
        Some(other) => findings.push(wrong_type(name, "a string", other)),
    }
    None
}

/// Shared with the discovery file, which has the same field.
pub(crate) fn version(text: &str, findings: &mut Vec<Finding>) {
    if !event_type::is_version(text) {
        findings.push(Finding::error(
            code::BAD_VERSION,
            "/openhook",
            format!(
                "`openhook` is `{}`: a version is `MAJOR.MINOR` without a patch; write `{VERSION}`",
                shown(text)
            ),
        ));
    } else if text != VERSION {
        findings.push(Finding::warning(
            code::UNKNOWN_VERSION,
            "/openhook",
            format!(
                "version `{}` is not known here: it is read as {VERSION}, as far as that goes",
                shown(text)
            ),
        ));
    }
}

fn id(text: &str, findings: &mut Vec<Finding>) {
    if text.is_empty() {
        findings.push(Finding::error(
            code::EMPTY_FIELD,
            "/id",
            "`id` is empty: it is the idempotency key of the event; give each event a UUID"
                .to_owned(),
        ));
    } else if !is_uuid(text) {
        findings.push(Finding::warning(
            code::ID_NOT_UUID,
            "/id",
            format!(
                "`id` is `{}`: it should be a UUID, so that no other event has it",
                shown(text)
            ),
        ));
    }
}

/// In the form with hyphens, of any version.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

fn source(text: &str, findings: &mut Vec<Finding>) {
    if event_type::is_kebab_case(text) {
        return;
    }
    let fix = event_type::to_kebab_case(text)
        .map_or_else(|| "`my-tool`".to_owned(), |name| format!("`{name}`"));
    findings.push(Finding::error(
        code::BAD_SOURCE,
        "/source",
        format!(
            "`source` is `{}`: a tool's name is lowercase kebab-case; write {fix}",
            shown(text)
        ),
    ));
}

fn kind(text: &str, findings: &mut Vec<Finding>) {
    if event_type::is_known(text) {
        return;
    }
    let meant = legacy::named(text)
        .map(|guess| format!("; did you mean `{}`?", guess.event_type))
        .unwrap_or_default();
    findings.push(if event_type::is_well_formed(text) {
        Finding::warning(
            code::UNKNOWN_TYPE,
            "/type",
            format!(
                "event type `{}` is not one of version {VERSION}: its `data` is not checked{meant}",
                shown(text)
            ),
        )
    } else {
        let meant = if meant.is_empty() {
            "; write it as `session.end` is written".to_owned()
        } else {
            meant
        };
        Finding::error(
            code::BAD_TYPE,
            "/type",
            format!(
                "`type` is `{}`: an event type is lowercase with dots{meant}",
                shown(text)
            ),
        )
    });
}

fn time(text: &str, findings: &mut Vec<Finding>) {
    let (code, why) = match text.parse::<Timestamp>() {
        Ok(_) => return,
        Err(TimeError::NoZone) => (
            code::TIME_WITHOUT_ZONE,
            "has no time zone, so it is no point in time; add `Z` or an offset such as `+02:00`",
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
    findings.push(Finding::error(
        code,
        "/time",
        format!("`time` is `{}`: it {why}", shown(text)),
    ));
}

fn context(text: &str, findings: &mut Vec<Finding>) {
    if uri::is_uri(text) {
        return;
    }
    let fix = if uri::is_absolute_path(text) {
        uri::file_uri(text)
    } else {
        "file:///home/user/my-project".to_owned()
    };
    findings.push(Finding::error(
        code::CONTEXT_NOT_URI,
        "/context",
        format!(
            "`context` is `{}`: it is no URI; write `{fix}`, or use `cwd` for a plain path",
            shown(text)
        ),
    ));
}

fn data(event: &str, data: &Map<String, Value>, findings: &mut Vec<Finding>) {
    for rule in rules(event) {
        match data.get(rule.name) {
            Some(value) => field(rule, value, findings),
            None if rule.required => findings.push(Finding::error(
                code::MISSING_FIELD,
                format!("/data/{}", rule.name),
                format!(
                    "`{}` is missing: a `{event}` event must say it in `data`",
                    rule.name
                ),
            )),
            None => {}
        }
    }
    if event == event_type::SESSION_END
        && let Some(path) = data.get("transcript_path").and_then(Value::as_str)
        && !uri::is_absolute_path(path)
    {
        findings.push(Finding::warning(
            code::RELATIVE_TRANSCRIPT,
            "/data/transcript_path",
            format!(
                "`transcript_path` is `{}`: consumers run in another directory; give the absolute path",
                shown(path)
            ),
        ));
    }
    if event == event_type::FILE_WRITE
        && let Some(start) = data.get("start_line").and_then(Value::as_u64)
        && let Some(end) = data.get("end_line").and_then(Value::as_u64)
        && start > end
    {
        findings.push(Finding::warning(
            code::INVERTED_RANGE,
            "/data/end_line",
            format!("`end_line` is {end}, before `start_line` {start}: the range holds no line"),
        ));
    }
}

fn field(rule: &Rule, value: &Value, findings: &mut Vec<Finding>) {
    let pointer = || format!("/data/{}", rule.name);
    let wrong_type = |wanted: &str| {
        Finding::error(
            code::WRONG_TYPE,
            pointer(),
            format!(
                "`{}` is {}; it must be {wanted}",
                rule.name,
                describe(value)
            ),
        )
    };
    match (rule.kind, value) {
        (Kind::Text, Value::String(text)) => {
            if rule.required && text.is_empty() {
                findings.push(Finding::error(
                    code::EMPTY_FIELD,
                    pointer(),
                    format!("`{}` is empty: it must name something", rule.name),
                ));
            }
        }
        (Kind::OneOf(words), Value::String(word)) => {
            if !words.contains(&word.as_str()) {
                let meant = end_reason(word)
                    .filter(|meant| words.contains(meant))
                    .map(|meant| format!("; `{meant}` says it"))
                    .unwrap_or_default();
                findings.push(Finding::error(
                    code::UNKNOWN_VALUE,
                    pointer(),
                    format!(
                        "`{}` is `{}`: it is one of `{}`{meant}",
                        rule.name,
                        shown(word),
                        words.join("`, `")
                    ),
                ));
            }
        }
        (Kind::Integer { min }, Value::Number(number)) => {
            if !is_integer(number) {
                findings.push(Finding::error(
                    code::WRONG_TYPE,
                    pointer(),
                    format!("`{}` is {number}; it must be an integer", rule.name),
                ));
            } else if is_below(number, min) {
                findings.push(Finding::error(
                    code::OUT_OF_RANGE,
                    pointer(),
                    format!("`{}` is {number}: the least is {min}", rule.name),
                ));
            }
        }
        (Kind::Integer { .. }, _) => findings.push(wrong_type("an integer")),
        (Kind::Text | Kind::OneOf(_), _) => findings.push(wrong_type("a string")),
    }
}

/// As JSON Schema has it: `3.0` is an integer.
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

/// Foreign text in a message: one line, and not a long one.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}
