//! Writes values as YAML block text. Texts are quoted, so that no reader takes
//! `on` or `1e3` for anything else.

use serde_json::{Map, Value};

use super::INDENT;

/// Words that some readers do not take for a text.
const WORDS: [&str; 10] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "~",
];

/// A document or the inside of a collection: every line starts with `indent`.
pub(super) fn block(value: &Value, indent: &str, newline: &str) -> String {
    match value {
        Value::Object(map) => members(map, indent, newline),
        Value::Array(items) => {
            let items = items.iter().map(|value| item(value, indent, newline));
            items.collect()
        }
        scalar => format!("{indent}{}{newline}", inline(scalar)),
    }
}

fn members(map: &Map<String, Value>, indent: &str, newline: &str) -> String {
    let members = map.iter();
    let lines = members.map(|(key, value)| member(key, value, indent, newline));
    lines.collect()
}

/// `key: value`, with a collection on the lines below.
pub(super) fn member(key: &str, value: &Value, indent: &str, newline: &str) -> String {
    let name = name(key);
    if is_nested(value) {
        let inner = block(value, &format!("{indent}{INDENT}"), newline);
        return format!("{indent}{name}:{newline}{inner}");
    }
    format!("{indent}{name}: {}{newline}", inline(value))
}

/// `- value`, with the other keys of an object below the first one.
pub(super) fn item(value: &Value, indent: &str, newline: &str) -> String {
    if is_nested(value) {
        let inner = format!("{indent}{INDENT}");
        let lines = block(value, &inner, newline);
        let first = lines.strip_prefix(inner.as_str()).unwrap_or(&lines);
        return format!("{indent}- {first}");
    }
    format!("{indent}- {}{newline}", inline(value))
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn name(key: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_plain = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(is_word)
        && !WORDS.iter().any(|word| key.eq_ignore_ascii_case(word));
    if is_plain {
        key.to_owned()
    } else {
        inline(&Value::from(key))
    }
}

/// JSON is YAML, but for characters that YAML wants escaped.
fn inline(value: &Value) -> String {
    let text = value.to_string();
    let is_printable = |letter: char| {
        !matches!(
            letter,
            '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{2028}' | '\u{2029}'
        )
    };
    if text.chars().all(is_printable) {
        return text;
    }
    let escaped = text.chars().map(|letter| {
        if is_printable(letter) {
            letter.to_string()
        } else {
            format!("\\u{:04x}", u32::from(letter))
        }
    });
    escaped.collect()
}
