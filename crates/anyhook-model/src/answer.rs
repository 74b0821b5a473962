//! Parses a canonical answer from a hook's stdout, field by field.
//!
//! A malformed field does not invalidate the others: a `deny` next to a mistyped
//! `context` still denies. If the malformed field is one that decides, the answer
//! counts as unreadable, because it is not known what the hook meant.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::lenient_json;
use crate::response::{Decision, HookResponse};
use crate::suggest::nearest;

/// What a hook has written to stdout.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedStdout {
    /// Nothing, or white space.
    Empty,
    /// An object, with warnings about the parts that could not be used.
    Answer(Box<HookResponse>, Vec<String>),
    /// No object, or one whose decision cannot be read.
    Unreadable {
        why: String,
        /// What of it can be read.
        rest: Box<HookResponse>,
        warnings: Vec<String>,
    },
}

impl ParsedStdout {
    pub fn unreadable(why: impl Into<String>) -> Self {
        Self::Unreadable {
            why: why.into(),
            rest: Box::default(),
            warnings: Vec::new(),
        }
    }
}

/// The fields that change what happens.
const DECIDING_FIELDS: [&str; 4] = ["decision", "continue", "updated_input", "modify_args"];

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

/// Parses the stdout of a canonical handler.
pub fn parse_answer(stdout: &str) -> ParsedStdout {
    parse_answer_with_fields(stdout, &[])
}

/// The same for a format with more fields than the canonical one; they are in
/// the response's `extra`.
pub fn parse_answer_with_fields(stdout: &str, more_fields: &[&str]) -> ParsedStdout {
    let text = lenient_json::trimmed(stdout);
    if text.is_empty() {
        return ParsedStdout::Empty;
    }
    match lenient_json::parse_answer(text) {
        Ok(Value::Object(object)) => AnswerReader::default().convert(object, more_fields),
        Ok(_) => ParsedStdout::unreadable("stdout is JSON, but not an object"),
        Err(error) => {
            let why = format!("stdout is not JSON ({error}): `{}`", beginning(text));
            deny_in_text(text, more_fields, &why).unwrap_or_else(|| ParsedStdout::unreadable(why))
        }
    }
}

/// A deny with other text before or after it: a message of the hook, or what is left of
/// a command that was put into the answer without escaping.
fn deny_in_text(text: &str, more_fields: &[&str], why: &str) -> Option<ParsedStdout> {
    let objects = lenient_json::objects_in_text(text, SEARCHED_OBJECTS);
    objects.into_iter().find_map(|object| {
        let Value::Object(object) = object else {
            return None;
        };
        match AnswerReader::default().convert(object, more_fields) {
            ParsedStdout::Answer(response, mut warnings) if response.is_deny() => {
                warnings.push(format!("{why}; the deny in it counts"));
                Some(ParsedStdout::Answer(response, warnings))
            }
            _ => None,
        }
    })
}

/// Objects of an output that is not JSON as a whole that are read.
const SEARCHED_OBJECTS: usize = 32;

/// Characters of an unreadable answer in a message.
const SHOWN_CHARS: usize = 80;

/// The first characters of a text, for a message.
fn beginning(text: &str) -> String {
    let mut letters = text.chars();
    let mut shown: String = letters.by_ref().take(SHOWN_CHARS).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown.replace(['\n', '\r'], " ")
}

/// An answer while its fields are read.
#[derive(Default)]
struct AnswerReader {
    warnings: Vec<String>,
    /// Why the decision cannot be read.
    undecided: Option<String>,
}

impl AnswerReader {
    fn convert(mut self, object: Map<String, Value>, more_fields: &[&str]) -> ParsedStdout {
        let mut response = HookResponse::default();
        let mut older_name = None;
        let mut unknown_only = !object.is_empty();
        for (key, value) in object {
            let is_more = more_fields.contains(&key.as_str());
            unknown_only &= !is_more && !is_private(&key) && !FIELDS.contains(&key.as_str());
            if value.is_null() {
                unknown_only = false;
                continue;
            }
            match key.as_str() {
                "decision" => response.decision = self.decision(&value),
                "reason" => response.reason = self.typed(&key, value, "text"),
                "continue" => response.should_continue = self.typed(&key, value, "true or false"),
                "context" => response.context = self.typed(&key, value, "text"),
                "system_message" => response.system_message = self.typed(&key, value, "text"),
                "suppress_output" => {
                    response.suppress_output = self.typed(&key, value, "true or false");
                }
                "updated_input" => response.updated_input = self.typed(&key, value, "an object"),
                "modify_args" => older_name = self.typed(&key, value, "an object"),
                "trigger_action" => response.trigger_action = self.typed(&key, value, "text"),
                "metadata" => {
                    response.metadata = self.typed(&key, value, "an object").unwrap_or_default();
                }
                _ => {
                    if !is_more && !is_private(&key) {
                        self.unknown(&key);
                    }
                    response.extra.insert(key, value);
                }
            }
        }
        response.updated_input = response.updated_input.or(older_name);
        if unknown_only {
            let why = || "it has no field of an answer".to_owned();
            self.undecided.get_or_insert_with(why);
        }
        match self.undecided {
            Some(why) if !response.is_deny() => ParsedStdout::Unreadable {
                why: format!("the answer cannot be understood: {why}"),
                rest: Box::new(response),
                warnings: self.warnings,
            },
            Some(why) => {
                self.warnings.push(why);
                ParsedStdout::Answer(Box::new(response), self.warnings)
            }
            None => ParsedStdout::Answer(Box::new(response), self.warnings),
        }
    }

    /// A warning; about a field that decides, the reason why the answer cannot be
    /// understood.
    fn warn(&mut self, field: Option<&str>, warning: String) {
        let decides = field.is_some_and(|field| DECIDING_FIELDS.contains(&field));
        if decides && self.undecided.is_none() {
            self.undecided = Some(warning);
        } else {
            self.warnings.push(warning);
        }
    }

    fn unknown(&mut self, key: &str) {
        let near = nearest(key, FIELDS);
        let advice = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "does the handler use another `dialect`?".to_owned(),
        };
        let warning = format!("`{key}` is not a field of an answer and is ignored; {advice}");
        self.warn(near, warning);
    }

    /// Another spelling of a known decision counts, with a warning: what was meant
    /// as a `deny` must not become an `allow`.
    fn decision(&mut self, value: &Value) -> Option<Decision> {
        let word = value.as_str().unwrap_or_default();
        if let Some(decision) = Decision::parse(word) {
            return Some(decision);
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
        let warning =
            format!("`decision` is {value}, which is {taken}; write `allow`, `deny` or `ask`");
        self.warn(meant.is_none().then_some("decision"), warning);
        meant
    }

    /// A field of the expected type.
    fn typed<T: DeserializeOwned>(&mut self, key: &str, value: Value, expected: &str) -> Option<T> {
        let warning = wrong_type(key, expected, &value);
        let typed = serde_json::from_value(value).ok();
        if typed.is_none() {
            self.warn(Some(key), warning);
        }
        typed
    }
}

/// A field that other programs may use as they like.
fn is_private(key: &str) -> bool {
    key.starts_with('_') || key.starts_with("x-") || key.starts_with("x_")
}

fn wrong_type(key: &str, expected: &str, value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("`{key}` must be {expected}, not {kind}, and is ignored")
}
