//! Reading a canonical answer from a hook's stdout, field by field.
//!
//! One malformed field must not cost the others: a `deny` beside a mistyped
//! `context` still denies.

use serde_json::{Map, Value};

use crate::response::{Decision, HookResponse};
use crate::suggest::nearest;

/// What a hook has written.
#[derive(Debug, Clone, PartialEq)]
pub enum Stdout {
    /// Nothing, or white space.
    Empty,
    /// An object; with warnings about what in it could not be used.
    Answer(Box<HookResponse>, Vec<String>),
    /// Something else; why it is not an answer.
    Unreadable(String),
}

const FIELDS: [&str; 10] = [
    "decision",
    "reason",
    "continue",
    "context",
    "system_message",
    "suppress_output",
    "updated_input",
    "modify_args",
    "trigger_action",
    "metadata",
];

/// Reads the stdout of a canonical handler.
pub fn read(stdout: &str) -> Stdout {
    let text = stdout.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Stdout::Empty;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => {
            let mut warnings = Vec::new();
            let response = from_object(object, &mut warnings);
            Stdout::Answer(Box::new(response), warnings)
        }
        Ok(_) => Stdout::Unreadable("stdout is JSON, but not an object".into()),
        Err(error) => Stdout::Unreadable(format!("stdout is not JSON ({error})")),
    }
}

/// Reads an answer that is an object already.
pub fn from_object(object: Map<String, Value>, warnings: &mut Vec<String>) -> HookResponse {
    let mut response = HookResponse::default();
    let mut older_name = None;
    for (key, value) in object {
        if value.is_null() {
            continue;
        }
        match key.as_str() {
            "decision" => response.decision = decision(&value, warnings),
            "reason" => response.reason = text(&key, value, warnings),
            "continue" => response.goes_on = flag(&key, &value, warnings),
            "context" => response.context = text(&key, value, warnings),
            "system_message" => response.system_message = text(&key, value, warnings),
            "suppress_output" => response.suppress_output = flag(&key, &value, warnings),
            "updated_input" => response.updated_input = object_of(&key, value, warnings),
            "modify_args" => older_name = object_of(&key, value, warnings),
            "trigger_action" => response.trigger_action = text(&key, value, warnings),
            "metadata" => {
                response.metadata = object_of(&key, value, warnings).unwrap_or_default();
            }
            _ => {
                if let Some(warning) = unknown(&key) {
                    warnings.push(warning);
                }
                response.extra.insert(key, value);
            }
        }
    }
    response.updated_input = response.updated_input.or(older_name);
    if response.decision.is_none()
        && let Some(denial) = foreign_deny(&response.extra)
    {
        warnings.push(
            "the answer denies in the form of an agent; it is taken as a deny, but give the handler its `dialect`"
                .to_owned(),
        );
        response.decision = Some(Decision::Deny);
        response.reason = response.reason.or(denial.reason);
    }
    response
}

/// A deny in a form of an agent.
struct ForeignDeny {
    reason: Option<String>,
}

/// A deny in a form that agents read, with its reason: what was meant as a
/// `deny` must not become an `allow` because a `dialect` was forgotten.
fn foreign_deny(extra: &Map<String, Value>) -> Option<ForeignDeny> {
    let nested = extra.get("hookSpecificOutput").and_then(Value::as_object);
    let said = |object: &Map<String, Value>, key: &str| {
        object.get(key).and_then(Value::as_str).map(str::to_owned)
    };
    for object in nested.into_iter().chain([extra]) {
        let denies = ["permissionDecision", "permission"]
            .iter()
            .any(|key| said(object, key).as_deref() == Some("deny"));
        if denies || object.get("cancel") == Some(&Value::Bool(true)) {
            let reasons = [
                "permissionDecisionReason",
                "user_message",
                "agent_message",
                "errorMessage",
            ];
            let reason = reasons.iter().find_map(|key| said(object, key));
            return Some(ForeignDeny { reason });
        }
    }
    None
}

fn unknown(key: &str) -> Option<String> {
    if key.starts_with('_') || key.starts_with("x-") || key.starts_with("x_") {
        return None;
    }
    let advice = match nearest(key, FIELDS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "does the handler speak another `dialect`?".to_owned(),
    };
    Some(format!(
        "`{key}` is not a field of an answer and is ignored; {advice}"
    ))
}

/// Another spelling of a known decision counts, aloud: what was meant as a
/// `deny` must not become an `allow`.
fn decision(value: &Value, warnings: &mut Vec<String>) -> Option<Decision> {
    let word = value.as_str().unwrap_or_default();
    let exact = [Decision::Allow, Decision::Ask, Decision::Deny]
        .into_iter()
        .find(|decision| decision.as_str() == word);
    if exact.is_some() {
        return exact;
    }
    let meant = match word.trim().to_ascii_lowercase().as_str() {
        "deny" | "denied" | "block" | "blocked" | "reject" => Some(Decision::Deny),
        "ask" => Some(Decision::Ask),
        "allow" | "approve" => Some(Decision::Allow),
        _ => None,
    };
    let taken = match meant {
        Some(decision) => format!("taken as `{}`", decision.as_str()),
        None => "ignored".to_owned(),
    };
    warnings.push(format!(
        "`decision` is {value}, which is {taken}; write `allow`, `deny` or `ask`"
    ));
    meant
}

fn text(key: &str, value: Value, warnings: &mut Vec<String>) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        other => {
            warnings.push(wrong(key, "text", &other));
            None
        }
    }
}

fn flag(key: &str, value: &Value, warnings: &mut Vec<String>) -> Option<bool> {
    let flag = value.as_bool();
    if flag.is_none() {
        warnings.push(wrong(key, "true or false", value));
    }
    flag
}

fn object_of(key: &str, value: Value, warnings: &mut Vec<String>) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        other => {
            warnings.push(wrong(key, "an object", &other));
            None
        }
    }
}

fn wrong(key: &str, wanted: &str, value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("`{key}` must be {wanted}, not {kind}, and is ignored")
}
