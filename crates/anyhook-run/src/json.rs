//! JSON as agents write it, which is more than strict readers take.
//!
//! A tool's input may hold what a model made up: half a surrogate pair, a
//! number that no machine holds, or brackets in brackets without end. Agents
//! pass it on and act on it, so a payload with it must reach the hooks as well.
//! The strict reader goes first; only what it refuses is mended: a lone
//! surrogate becomes U+FFFD, a number out of range the text of that number, and
//! what is nested deeper than [`DEPTH`] the text that it was.

use serde_json::Value;

/// Deeper values are kept as text. Less than what strict readers take (128),
/// because the payload becomes a part of other documents.
const DEPTH: usize = 96;

/// Reads a payload. Some clients put bytes before the JSON; what is not UTF-8
/// is not theirs to lose.
pub fn read(payload: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(payload);
    let start = text.find('{').unwrap_or_default();
    parse(text.get(start..).unwrap_or_default()).map_err(|error| error.to_string())
}

/// Reads a text, mended where that is needed.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        // When mending does not help, the first mistake is the one to tell.
        serde_json::from_str(&mended(text)).map_err(|_| error)
    })
}

fn mended(text: &str) -> String {
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
            '{' | '[' if depth >= DEPTH => {
                let length = nested_length(rest);
                push_quoted(&mut out, head(rest, length));
                length
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

fn head(text: &str, length: usize) -> &str {
    text.get(..length).unwrap_or(text)
}

/// A JSON number by its grammar, whether or not a machine holds it.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    digits(whole)
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.trim_start_matches(['+', '-'])))
}

/// How long a string is with its quotes; a cut one takes all the rest.
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

/// How long an object or array is, with all that is in it.
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
    // What was escaped in a value is plain in its text.
    push_string(out, &serde_json::Value::from(text).to_string());
}

/// A string, with U+FFFD in place of each half of a surrogate pair.
fn push_string(out: &mut String, text: &str) {
    let mut rest = text;
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

/// The half of a pair that is written at the beginning of the text.
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
    fn what_a_strict_reader_refuses_is_mended() {
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
            assert_eq!(seen, DEPTH);
            assert!(inner.as_str().unwrap().contains("rm]"), "{levels}");
        }
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in ["", "{", r#"{"a":1"#, r#"{"a":--1}"#, r#"{"a":"x"#, "nope"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
