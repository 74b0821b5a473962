//! JSON as agents and hooks write it, which is more than strict parsers accept.
//!
//! A tool's input may contain what a model made up: half a surrogate pair, a
//! number that no machine type holds, or thousands of nested brackets. Agents
//! pass it on and act on it, so such a payload must reach the hooks as well, and
//! a deny that quotes it must reach the agent.
//! The strict parser goes first; only what it rejects is repaired: a lone
//! surrogate becomes U+FFFD, a number out of range becomes its text, as do the `NaN`
//! and `Infinity` that Python writes and a value nested deeper than [`MAX_DEPTH`], and
//! a control character in a string is escaped.

use serde_json::Value;

use crate::strict_members::StrictestValue;

/// Deeper values are kept as text. Lower than the limit of strict parsers (128),
/// because the payload becomes a part of other documents.
const MAX_DEPTH: usize = 96;

/// Parses a payload. Some clients put bytes before the JSON; bytes that are not
/// UTF-8 are replaced.
pub fn parse_payload(payload: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(payload);
    let start = text.find('{').unwrap_or_default();
    parse(text.get(start..).unwrap_or_default()).map_err(|error| error.to_string())
}

/// A text without white space and byte order marks around it.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// Parses a text, repaired if necessary.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        // If the repair does not help, the first error is the one to report.
        serde_json::from_str(&repaired(text)).map_err(|_| error)
    })
}

/// Parses the answer of a hook, repaired if necessary. Of a member that is given twice
/// the stricter one counts, so that a text in the answer cannot take a deny back.
pub fn parse_answer(text: &str) -> Result<Value, serde_json::Error> {
    let strictest = |text: &str| serde_json::from_str::<StrictestValue>(text);
    let parsed = strictest(text).or_else(|error| strictest(&repaired(text)).map_err(|_| error));
    parsed.map(|StrictestValue(value)| value)
}

/// The JSON objects in a text that is not JSON as a whole, at most `limit`.
pub fn objects_in_text(text: &str, limit: usize) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut rest = text;
    for _ in 0..limit {
        let Some(start) = rest.find('{') else {
            break;
        };
        rest = rest.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<StrictestValue>();
        let length = match values.next() {
            Some(Ok(StrictestValue(value))) => {
                objects.push(value);
                values.byte_offset()
            }
            _ => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    objects
}

/// A text of which the end is missing, closed so that what is there can be
/// parsed; unchanged if it is no beginning of JSON.
pub fn completed(text: &str) -> String {
    let mut body = text.to_owned();
    let mut closers = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if c == '"' {
            string_length(rest)
        } else {
            c.len_utf8()
        };
        match c {
            '{' => closers.push('}'),
            '[' => closers.push(']'),
            '}' | ']' if closers.pop() != Some(c) => return body,
            '"' if !is_closed_string(head(rest, length)) => {
                body.truncate(body.len() - unfinished_escape_length(rest));
                body.push('"');
            }
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    // Half a word or number, and a comma that nothing follows.
    let is_half = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
    let kept = body.trim_end_matches(is_half).trim_end();
    let kept = kept.strip_suffix(',').unwrap_or(kept).to_owned();
    let end: String = closers.iter().rev().collect();
    // A key may lack its value.
    let candidates = ["", "null", ":null"].map(|value| format!("{kept}{value}{end}"));
    let complete = candidates.into_iter().find(|text| parse(text).is_ok());
    complete.unwrap_or(body)
}

/// Whether a string, which begins with its quote, also ends with it.
fn is_closed_string(text: &str) -> bool {
    let Some(content) = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    else {
        return false;
    };
    let escapes = content.bytes().rev().take_while(|byte| *byte == b'\\');
    escapes.count() % 2 == 0
}

/// How many bytes at the end of an unterminated string begin an escape.
fn unfinished_escape_length(text: &str) -> usize {
    let Some(at) = text.rfind('\\') else {
        return 0;
    };
    let before = text.get(..at).unwrap_or_default();
    let is_escaped = before
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'\\')
        .count()
        % 2
        == 1;
    let tail = text.get(at..).unwrap_or_default();
    let is_half = tail.len() == 1 || (tail.starts_with("\\u") && tail.len() < 6);
    if is_half && !is_escaped {
        tail.len()
    } else {
        0
    }
}

fn repaired(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    let mut depth = 0_usize;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => {
                let length = string_length(rest);
                push_string(&mut out, head(rest, length));
                length
            }
            '{' | '[' if depth >= MAX_DEPTH => {
                let length = nested_length(rest);
                push_quoted(&mut out, head(rest, length));
                length
            }
            '-' | 'I' | 'N' if number_word(rest).is_some() => {
                let word = number_word(rest).unwrap_or_default();
                push_quoted(&mut out, word);
                word.len()
            }
            '-' | '0'..='9' => {
                let length = rest
                    .bytes()
                    .take_while(|byte| {
                        byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
                    })
                    .count();
                let number = head(rest, length);
                if serde_json::from_str::<Value>(number).is_ok() || !is_number(number) {
                    out.push_str(number);
                } else {
                    push_quoted(&mut out, number);
                }
                length
            }
            _ => {
                match c {
                    '{' | '[' => depth += 1,
                    '}' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// The word for a number that JSON does not have, if the text begins with it.
fn number_word(text: &str) -> Option<&'static str> {
    let mut words = ["NaN", "-Infinity", "Infinity"].into_iter();
    words.find(|word| {
        let rest = text.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

fn head(text: &str, length: usize) -> &str {
    text.get(..length).unwrap_or(text)
}

/// Whether a text is a JSON number by its grammar, in range or not.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (text, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(whole) && digits(fraction) && digits(exponent.trim_start_matches(['+', '-']))
}

/// The length of a string with its quotes; an unterminated one takes the rest.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of an object or array with its content.
fn nested_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => {
                at += string_length(text.get(at..).unwrap_or_default());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn push_quoted(out: &mut String, text: &str) {
    out.push_str(&Value::from(text).to_string());
}

/// A string, with U+FFFD in place of each half of a surrogate pair, and escapes in place
/// of control characters.
fn push_string(out: &mut String, text: &str) {
    let escaped: String;
    let mut rest = text;
    if text.chars().any(is_control) {
        escaped = text.chars().map(escape_control).collect();
        rest = &escaped;
    }
    while let Some(at) = rest.find('\\') {
        out.push_str(head(rest, at));
        rest = rest.get(at..).unwrap_or_default();
        let length = match surrogate(rest) {
            Some(0xd800..=0xdbff)
                if matches!(rest.get(6..).and_then(surrogate), Some(0xdc00..=0xdfff)) =>
            {
                out.push_str(head(rest, 12));
                12
            }
            Some(_) => {
                out.push('\u{fffd}');
                6
            }
            None => {
                let next = rest.chars().nth(1).map_or(0, char::len_utf8);
                out.push_str(head(rest, 1 + next));
                1 + next
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// A character that JSON does not permit in a string as it is.
fn is_control(c: char) -> bool {
    u32::from(c) < 0x20
}

fn escape_control(c: char) -> String {
    if is_control(c) {
        format!("\\u{:04x}", u32::from(c))
    } else {
        c.to_string()
    }
}

/// The surrogate whose escape begins the text.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_strict_parser_rejects_is_repaired() {
        let cases = [
            (r#"{"a":"x\ud800y"}"#, json!({"a": "x\u{fffd}y"})),
            (r#"{"a":"\udc00\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"})),
            (
                r#"{"a":"\ud83d\n\ud83d"}"#,
                json!({"a": "\u{fffd}\n\u{fffd}"}),
            ),
            (r#"{"a":"\\ud800\ud800"}"#, json!({"a": "\\ud800\u{fffd}"})),
            (r#"{"\udfff":1}"#, json!({"\u{fffd}": 1})),
            (
                r#"{"a":[1e400,-1E+999,2]}"#,
                json!({"a": ["1e400", "-1E+999", 2]}),
            ),
            (
                r#"{"a":1e400,"b":"1e400"}"#,
                json!({"a": "1e400", "b": "1e400"}),
            ),
        ];
        for (text, expected) in cases {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_kept_as_its_text() {
        for levels in [130, 5000, 200_000] {
            let deep = format!("{}\"rm]\\ud800\"{}", "[".repeat(levels), "]".repeat(levels));
            let read = parse(&format!(r#"{{"a":{deep},"b":1}}"#)).unwrap();
            assert_eq!(read["b"], 1);
            let mut inner = &read["a"];
            let mut seen = 1;
            while let Some(next) = inner.get(0) {
                inner = next;
                seen += 1;
            }
            assert_eq!(seen, MAX_DEPTH);
            assert!(inner.as_str().unwrap().contains("rm]"), "{levels}");
        }
    }

    #[test]
    fn every_beginning_of_an_object_can_be_completed() {
        let whole = r#" {"decision": "deny", "list": [1, -2.5e3, true, {"a": null}], "reason": "x\ny\\\u00e9\ud83d\ude00é\"", "deep": {"b": {}}} "#;
        let object: Value = serde_json::from_str(whole).unwrap();
        let decided = whole.find("deny").unwrap() + "deny".len();
        for (end, _) in whole.char_indices().skip(2) {
            let beginning = whole.get(..end).unwrap();
            let parsed = parse(&completed(beginning)).unwrap_or_else(|error| {
                panic!("{beginning} became {}: {error}", completed(beginning))
            });
            if end >= decided {
                assert_eq!(parsed["decision"], "deny", "{beginning}");
            }
        }
        assert_eq!(parse(&completed(whole)).unwrap(), object);
        for other in ["", "no", "}", "{]", "\"", "\\", "{\"a\"}"] {
            completed(other);
        }
    }

    #[test]
    fn what_is_not_json_stays_an_error() {
        for text in ["", "{", r#"{"a":1"#, r#"{"a":--1}"#, r#"{"a":"x"#, "nope"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
