//! Takes secrets out of what is written down.
//!
//! Secrets are found by their own form ([`tokens`]) or by the text around them: the
//! name of a value ([`names`], [`values`], [`literals`], [`forms`]), an option of a command
//! ([`options`]), an address ([`urls`]). A hand-written scanner: one pass over the
//! bytes ([`scan`]) finds the few places where a rule may apply, and nothing is copied
//! until one does. docs/redaction.md lists the rules.

mod forms;
mod literals;
mod names;
mod options;
mod scan;
mod tokens;
mod urls;
mod values;

use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};

use names::{NameClass, class_of_name};
use scan::{is_word_start, next_candidate};

/// Longer texts are cut in the journal; a record is not an archive.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

/// How much of the text after a cut is scanned too, so that no part of a secret at the
/// cut stays.
const CUT_OVERLAP_BYTES: usize = 8 * 1024;

/// The shortest name of a member that can be a secret itself.
const MIN_SECRET_NAME_BYTES: usize = 16;

/// A value as JSON, without its secrets and with long texts cut.
pub fn redacted_json(value: &impl Serialize) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(value)?;
    redact_value(&mut value, None);
    Ok(value)
}

/// `class` is what the value's name says about it. The members of a list share the
/// name of the list.
fn redact_value(value: &mut Value, class: Option<NameClass>) {
    match value {
        Value::String(text) => redact_string(text, class),
        Value::Number(number) => {
            if let Some(NameClass::Secret(kind)) = class
                && let digits = number
                    .to_string()
                    .bytes()
                    .filter(u8::is_ascii_digit)
                    .count()
                && literals::is_secret_number(digits, kind)
            {
                *value = Value::String(placeholder(kind));
            }
        }
        Value::Array(members) => redact_list(members, class),
        Value::Object(members) => redact_object(members, class),
        Value::Null | Value::Bool(_) => {}
    }
}

fn redact_string(text: &mut String, class: Option<NameClass>) {
    let bytes = text.as_bytes();
    let hidden = match class {
        Some(NameClass::Secret(kind)) => literals::is_secret_text(bytes).then_some(kind),
        Some(NameClass::Maybe(kind)) => literals::looks_random(bytes).then_some(kind),
        Some(NameClass::Header(kind)) => literals::is_secret_header(bytes, kind).then_some(kind),
        Some(NameClass::Query(_) | NameClass::Value) | None => None,
    };
    if let Some(kind) = hidden {
        *text = placeholder(kind);
    } else if text.len() > MAX_TEXT_BYTES {
        *text = redacted_and_cut(text);
    } else if let Some(redacted) = redacted_text(text) {
        *text = redacted;
    }
}

/// A list may be a command, `["--password", "X"]`, or a header, `["X-Api-Key", "X"]`.
fn redact_list(members: &mut [Value], class: Option<NameClass>) {
    for at in 0..members.len() {
        let (before, rest) = members.split_at_mut(at);
        let Some(member) = rest.first_mut() else {
            return;
        };
        let previous = before.last().and_then(Value::as_str);
        let kind = previous
            .filter(|previous| previous.starts_with('-'))
            .and_then(|option| {
                options::argument_kind(before.iter().filter_map(Value::as_str), option)
            });
        let is_hidden =
            |text: &str| !text.starts_with('-') && literals::is_secret_text(text.as_bytes());
        match (kind, member.as_str()) {
            (Some(kind), Some(text)) if is_hidden(text) => *member = placeholder(kind).into(),
            _ => redact_value(member, class),
        }
    }
    if let [Value::String(name), value @ Value::String(_)] = members
        && let Some(class) = class_of_name(name.as_bytes())
        && forms::is_class_of_secret(class)
        && value
            .as_str()
            .is_some_and(|text| literals::is_mixed(text.as_bytes(), 8))
    {
        redact_value(value, Some(class));
    }
}

fn redact_object(members: &mut Map<String, Value>, class: Option<NameClass>) {
    let mut has_secret_name = false;
    let mut has_value = false;
    for (name, member) in members.iter_mut() {
        let class = class_of_name(name.as_bytes());
        has_value |= class == Some(NameClass::Value);
        has_secret_name |= is_secret_itself(name);
        redact_value(member, class);
    }
    if has_value {
        redact_labelled_value(members, class);
    }
    if has_secret_name {
        let mut renamed = Map::new();
        for (name, member) in std::mem::take(members) {
            let mut name = redacted_text(&name).unwrap_or(name);
            while renamed.contains_key(&name) {
                name.push('+');
            }
            renamed.insert(name, member);
        }
        *members = renamed;
    }
}

/// Whether the name of a member is a secret: a token has a digit, and most names do not.
fn is_secret_itself(name: &str) -> bool {
    name.len() >= MIN_SECRET_NAME_BYTES
        && name.bytes().any(|byte| byte.is_ascii_digit())
        && redacted_text(name).is_some()
}

/// `{"name": "DB_PASSWORD", "value": "X"}`, and `{"value": "X"}` with a name of its own.
fn redact_labelled_value(members: &mut Map<String, Value>, class: Option<NameClass>) {
    let labels = forms::LABELS.iter();
    let mut labels = labels.filter_map(|label| members.get(*label)?.as_str());
    let class = labels
        .find_map(|label| class_of_name(label.as_bytes()))
        .or(class);
    let Some(class) = class.filter(|class| forms::is_class_of_secret(*class)) else {
        return;
    };
    for (name, member) in members.iter_mut() {
        if class_of_name(name.as_bytes()) == Some(NameClass::Value) {
            redact_value(member, Some(class));
        }
    }
}

/// The beginning of a long text without its secrets.
fn redacted_and_cut(text: &str) -> String {
    let length = text.len();
    let boundary = |limit: usize| {
        let mut boundaries = (0..=limit.min(length)).rev();
        boundaries
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or_default()
    };
    let cut = boundary(MAX_TEXT_BYTES);
    let scanned = text
        .get(..boundary(cut + CUT_OVERLAP_BYTES))
        .unwrap_or_default();
    let mut redacted = redacted_until(scanned, cut)
        .unwrap_or_else(|| text.get(..cut).unwrap_or_default().to_owned());
    let _ = write!(redacted, "… [cut, {length} bytes in all]");
    redacted
}

/// The text without its secrets; `None` if it has none.
pub fn redacted_text(input: &str) -> Option<String> {
    redacted_until(input, input.len())
}

/// The text up to `limit` without its secrets; `None` if it has none. A secret that goes
/// beyond `limit` is replaced as a whole.
fn redacted_until(input: &str, limit: usize) -> Option<String> {
    let bytes = input.as_bytes();
    let mut redacted: Option<String> = None;
    let mut copied = 0;
    let mut from = 0;
    while let Some(at) = next_candidate(bytes, from).filter(|at| *at < limit) {
        from = at + 1;
        let Some((kind, span)) = secret_at(bytes, at) else {
            continue;
        };
        // Every alphabet takes a whole character or stops before it, so both
        // ends are boundaries; otherwise the text would stay as it is.
        let is_whole = input.is_char_boundary(span.end) && span.end > at && span.start < limit;
        let Some(before) = input.get(copied..span.start).filter(|_| is_whole) else {
            continue;
        };
        let out = redacted.get_or_insert_with(|| String::with_capacity(input.len()));
        out.push_str(before);
        out.push_str(&placeholder(kind));
        copied = span.end;
        from = span.end;
    }
    let mut redacted = redacted?;
    redacted.push_str(input.get(copied..limit).unwrap_or_default());
    Some(redacted)
}

fn placeholder(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// The kind of a secret, and the bytes that it covers.
type SecretSpan = (&'static str, Range<usize>);

/// The secret at a place that the scanner has found.
fn secret_at(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = bytes.get(at..)?;
    match rest {
        [b':', b'/', b'/', ..] => urls::userinfo(bytes, at + 3),
        [b':', ..] => forms::assignment(bytes, at)
            .or_else(|| tokens::infix_token(bytes, at))
            .or_else(|| forms::password_file(bytes, at)),
        [b'=', ..] => forms::assignment(bytes, at),
        [b'-', second, ..] if !is_word_start(bytes, at) => match second {
            b'u' => tokens::infix_token(bytes, at),
            b'S' | b's' => forms::secure_string(bytes, at),
            _ => tokens::mailgun_key(bytes, at),
        },
        [b'-', b'-', b'-', ..] if rest.starts_with(b"-----BEGIN ") => forms::private_key(bytes, at),
        [b'-', ..] => options::option(bytes, at),
        [b'"' | b'\'', b',', ..] => forms::quoted_pair(bytes, at),
        [b'(', ..] => forms::call(bytes, at),
        [b'<', ..] => forms::tag(bytes, at),
        [b'\\' | b'%' | 0x1b, ..] => forms::after_escape(bytes, at),
        [b'.', ..] => tokens::infix_token(bytes, at),
        _ if is_word_start(bytes, at) => forms::word(bytes, at),
        [b'A' | b'J' | b'N' | b'Q', ..] => tokens::infix_token(bytes, at),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
