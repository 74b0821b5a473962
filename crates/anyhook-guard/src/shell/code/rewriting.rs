//! Code in a plainer form, in which paths and names are literals.

use std::borrow::Cow;

use super::MAX_CALLS;
use super::calls::{closing, literal};
use crate::shell::invocation::UNKNOWN;
use crate::shell::output::{decode_base64, decode_hex};

/// Code in which joined paths are put together.
const MAX_JOINED_CODE_BYTES: usize = 8 << 10;

/// Decoded literals as what they hold: `b64decode('cm0=')` is `'rm'`.
pub(super) fn decode_literals(code: &str) -> Cow<'_, str> {
    const BASE64: &[&str] = &[
        "b64decode(",
        "decodebytes(",
        "decode_base64(",
        "base64_decode(",
        "decode64(",
        "atob(",
        "Buffer.from(",
    ];
    const HEX: &[&str] = &["fromhex(", "unhexlify(", "hex2bin("];
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    if !has(BASE64) && !has(HEX) {
        return Cow::Borrowed(code);
    }
    let mut decoded = code.to_owned();
    for (marks, decode) in [
        (BASE64, decode_base64 as fn(&str) -> Option<String>),
        (HEX, decode_hex),
    ] {
        for mark in marks {
            let mut from = 0;
            while let Some(at) = decoded.get(from..).and_then(|rest| rest.find(mark)) {
                from += at + mark.len();
                let rest = decoded.get(from..).unwrap_or_default();
                let start = usize::from(rest.starts_with('b'));
                let Some((text, length)) = literal(rest.get(start..).unwrap_or_default()) else {
                    continue;
                };
                if let Some(text) = decode(&text).filter(|text| !text.is_empty()) {
                    decoded.replace_range(from..from + start + length, &quoted(&text));
                }
            }
        }
    }
    // What is left of the call is no part of the value.
    Cow::Owned(decoded)
}

/// PHP's `getenv("HOME")."/x"` is `"/home/…/x"`.
pub(super) fn name_home_folder(code: &str, home: &str) -> String {
    let mut plain = code.to_owned();
    for quote in ['"', '\''] {
        for call in [
            format!("getenv({quote}HOME{quote})"),
            format!("$_SERVER[{quote}HOME{quote}]"),
            format!("$_ENV[{quote}HOME{quote}]"),
        ] {
            for dot in [".", " . "] {
                for next in ['"', '\''] {
                    let joined = format!("{call}{dot}{next}");
                    plain = plain.replace(&joined, &format!("{next}{home}"));
                }
            }
        }
    }
    plain
}

/// Perl's `qw(a b)` is `("a", "b")`.
pub(super) fn expand_word_lists(code: &str) -> Cow<'_, str> {
    if !code.contains("qw") {
        return Cow::Borrowed(code);
    }
    let mut expanded = String::with_capacity(code.len());
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("qw") {
        let inner = after.trim_start();
        let close = match inner.chars().next() {
            Some('(') => ')',
            Some('[') => ']',
            Some('{') => '}',
            Some('<') => '>',
            Some(other) if !other.is_alphanumeric() => other,
            _ => '\0',
        };
        let words = inner.get(1..).and_then(|inner| inner.split_once(close));
        expanded.push_str(before);
        if let Some((words, after)) = words.filter(|_| close != '\0') {
            let words: Vec<String> = words.split_whitespace().map(quoted).collect();
            expanded.push('(');
            expanded.push_str(&words.join(","));
            expanded.push(')');
            rest = after;
        } else {
            expanded.push_str("qw");
            rest = after;
        }
    }
    expanded.push_str(rest);
    Cow::Owned(expanded)
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `require("os").homedir()` reads like `os.homedir()`.
pub(super) fn name_required_modules(code: &str) -> String {
    let mut plain = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("require(") {
        plain.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let after = rest.get("require(".len()..).unwrap_or_default();
        match literal(after) {
            Some((module, length))
                if after.get(length..).is_some_and(|end| end.starts_with(").")) =>
            {
                plain.push_str(module.rsplit(['/', ':']).next().unwrap_or_default());
                rest = after.get(length + 1..).unwrap_or_default();
            }
            _ => {
                plain.push_str("require(");
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Paths that code joins from literals, as one literal: `Path.home() / ".ssh"`,
/// `os.path.join("a", "b")`.
pub(super) fn join_paths(code: &str, home: &str) -> String {
    // Each step reads the code again.
    if code.len() > MAX_JOINED_CODE_BYTES {
        return code.to_owned();
    }
    let home = quoted(home);
    let mut code = code
        .replace("Path.home()", &format!("Path({home})"))
        .replace("os.homedir()", &home)
        .replace("os.path.expanduser('~')", &home)
        .replace("os.path.expanduser(\"~\")", &home);
    for _ in 0..MAX_CALLS {
        let Some((start, end, joined)) = next_division(&code).or_else(|| next_join(&code)) else {
            break;
        };
        code.replace_range(start..end, &joined);
    }
    code
}

/// `"a" / "b"` and `Path("a") / "b"`: where it is, and what it is together.
fn next_division(code: &str) -> Option<(usize, usize, String)> {
    code.match_indices('/').find_map(|(at, _)| {
        let before = code.get(..at)?.trim_end();
        let (inside, closing) = match before.strip_suffix(')') {
            Some(inside) => (inside.trim_end(), ")"),
            None => (before, ""),
        };
        let quote = inside
            .chars()
            .next_back()
            .filter(|last| matches!(last, '\'' | '"'))?;
        let inside = inside.get(..inside.len() - 1)?;
        let start = inside.rfind(quote)?;
        // The slash of `"a", "/"` is no division.
        if code.get(..start)?.matches(quote).count() % 2 == 1 {
            return None;
        }
        let rest = code.get(at + 1..)?;
        let after = rest.trim_start();
        let (second, length) = literal(after)?;
        let first = inside.get(start + 1..)?;
        let end = code.len() - after.len() + length;
        let joined = format!("{}{closing}", quoted(&format!("{first}/{second}")));
        Some((start, end, joined))
    })
}

/// `path.join("a", "b")` with nothing but literals.
fn next_join(code: &str) -> Option<(usize, usize, String)> {
    let mut joins = code.match_indices("path.join(").take(MAX_CALLS);
    joins.find_map(|(at, mark)| {
        let open = at + mark.len() - 1;
        let end = closing(code.as_bytes(), open);
        let arguments = code.get(open + 1..end)?;
        let mut parts = Vec::new();
        let mut rest = arguments.trim();
        while !rest.is_empty() {
            let (part, length) = literal(rest)?;
            parts.push(part);
            rest = rest
                .get(length..)?
                .trim_start()
                .trim_start_matches(',')
                .trim_start();
        }
        let start = if code.get(..at)?.ends_with("os.") {
            at - 3
        } else {
            at
        };
        Some((start, end + 1, quoted(&parts.join("/"))))
    })
}

pub(super) fn replace_holes(text: &str, open: &str, close: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(open) {
        out.push_str(rest.get(..at).unwrap_or_default());
        let inside = rest.get(at + open.len()..).unwrap_or_default();
        let Some(end) = inside.find(close) else {
            out.push_str(rest.get(at..).unwrap_or_default());
            return out;
        };
        out.push(UNKNOWN);
        rest = inside.get(end + close.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}
