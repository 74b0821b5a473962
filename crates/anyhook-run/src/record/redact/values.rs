//! The value of a name: where it begins and ends.

use std::ops::Range;

use super::SecretSpan;
use super::literals::{
    is_bare_secret, is_mixed, is_secret_header, is_secret_text, is_worth_hiding, looks_random,
};
use super::names::NameClass;
use super::scan::{Alphabet, run_length};

/// What is between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `=` without blanks: shells, queries, arguments by name.
    Tight,
    /// `=`, `:=` or `=>` with blanks: code and settings.
    Spaced,
    /// `:`: JSON, YAML, headers, types, prose.
    Colon,
    /// A blank: the argument of an option.
    Argument,
}

/// The longest text without a blank that is looked at to decide about a value.
const MAX_BARE_BYTES: usize = 2048;
/// The longest quoted text that is looked at.
const MAX_QUOTED_BYTES: usize = 8192;
/// The longest value that goes over several lines.
const MAX_LINES_BYTES: usize = 1024;

/// The secret in the value that begins at `at`, after blanks.
pub(super) fn value_at(
    bytes: &[u8],
    at: usize,
    separator: Separator,
    class: NameClass,
) -> Option<SecretSpan> {
    let at = at + blanks(bytes, at);
    match class {
        NameClass::Secret(kind) => secret_value(bytes, at, separator, kind),
        NameClass::Maybe(kind) | NameClass::Query(kind) => {
            let list = usize::from(bytes.get(at) == Some(&b'['));
            let value = quoted(bytes, at + list).unwrap_or_else(|| bare(bytes, at));
            looks_random(bytes.get(value.clone())?).then_some((kind, value))
        }
        NameClass::Header(kind) => header_value(bytes, at, kind),
        NameClass::Value => None,
    }
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    run_length(bytes, at, |byte| matches!(byte, b' ' | b'\t'))
}

/// The length of a line break, also of one that is escaped in a JSON text.
fn line_break(bytes: &[u8], at: usize) -> usize {
    let slashes = run_length(bytes, at, |byte| byte == b'\\').min(8);
    let rest = bytes.get(at + slashes..).unwrap_or_default();
    match (slashes, rest) {
        (0, [b'\r', b'\n', ..]) => 2,
        (0, [b'\n' | b'\r', ..]) => 1,
        (1.., [b'n' | b'r', ..]) => slashes + 1,
        _ => 0,
    }
}

pub(super) fn is_line_end(bytes: &[u8], at: usize) -> bool {
    let at = at + blanks(bytes, at);
    at >= bytes.len() || line_break(bytes, at) > 0 || matches!(bytes.get(at), Some(b'#'))
}

fn secret_value(
    bytes: &[u8],
    at: usize,
    separator: Separator,
    kind: &'static str,
) -> Option<SecretSpan> {
    let hidden = |value: Range<usize>| Some((kind, value));
    if separator == Separator::Colon {
        let line = at + line_break(bytes, at);
        if line > at {
            return value_of_next_line(bytes, line).and_then(hidden);
        }
        if let Some(block) = block_value(bytes, at) {
            return hidden(block);
        }
    }
    if bytes.get(at) == Some(&b'[') {
        return list_value(bytes, at + 1).and_then(hidden);
    }
    if let Some(value) = quoted(bytes, at) {
        let is_secret = is_secret_text(bytes.get(value.clone())?);
        let end = if separator == Separator::Tight {
            glued_end(bytes, value.end)
        } else {
            value.end
        };
        return is_secret.then_some((kind, value.start..end));
    }
    let value = bare(bytes, at);
    if let Some(end) = credentials_end(bytes, value.clone()) {
        return hidden(value.start..end);
    }
    if is_bare_secret(bytes, value.clone(), separator, kind) {
        return hidden(value.start..value.end + run_of_long(bytes, &value));
    }
    wrapped_value(bytes, at, separator).and_then(hidden)
}

/// The rest of a value that is longer than what was looked at.
fn run_of_long(bytes: &[u8], value: &Range<usize>) -> usize {
    if value.len() < MAX_BARE_BYTES {
        return 0;
    }
    run_length(bytes, value.end, |byte| {
        byte > b' ' && !matches!(byte, b'"' | b'\'')
    })
}

/// The text between the quotes that open at `at`. Each quote has the same number of
/// backslashes, for JSON within JSON.
pub(super) fn quoted(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let letters = run_length(bytes, at, |byte| {
        matches!(
            byte,
            b'f' | b'F' | b'r' | b'R' | b'b' | b'u' | b'L' | b'@' | b'$' | b'#'
        )
    });
    let start = at + if letters <= 2 { letters } else { 0 };
    let slashes = run_length(bytes, start, |byte| byte == b'\\');
    let quote = *bytes.get(start + slashes)?;
    if !matches!(quote, b'"' | b'\'' | b'`') || (quote == b'`' && slashes > 0) {
        return None;
    }
    let from = start + slashes + 1;
    let mut end = from;
    let limit = (from + MAX_QUOTED_BYTES).min(bytes.len());
    let mut line_end = None;
    while end < limit {
        let run = run_length(bytes, end, |byte| byte == b'\\');
        let next = bytes.get(end + run).copied();
        let is_close = next == Some(quote) && (run == slashes || run == 0);
        if is_close && (line_end.is_none() || end - from <= MAX_LINES_BYTES) {
            return is_value_text(bytes.get(from..end)?).then_some(from..end);
        }
        if run == 0 && matches!(next, Some(b'\n')) {
            line_end.get_or_insert(end);
        }
        end += run + usize::from(run == 0 || next.is_some_and(|next| next.is_ascii()));
    }
    let end = line_end.unwrap_or(limit);
    let end = (from..=end.min(bytes.len()))
        .rev()
        .find(|end| is_boundary(bytes, *end))?;
    is_value_text(bytes.get(from..end)?).then_some(from..end)
}

fn is_boundary(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
}

/// Whether a text between quotes is not rather the text between two quoted texts.
fn is_value_text(text: &[u8]) -> bool {
    let first = text.first().copied().unwrap_or_default();
    let last = text.last().copied().unwrap_or_default();
    let is_blank = |byte: u8| byte.is_ascii_whitespace();
    !is_blank(first) && !is_blank(last) && !matches!(first, b')' | b',' | b';' | b']' | b'}')
}

/// The end of a shell word that goes on after a closing quote.
fn glued_end(bytes: &[u8], end: usize) -> usize {
    let goes_on = bytes
        .get(end + 1)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'"' | b'\''));
    if !goes_on || bytes.get(end) == Some(&b'\\') {
        return end;
    }
    end + run_length(bytes, end, |byte| {
        byte > b' '
            && byte.is_ascii()
            && !matches!(byte, b';' | b'|' | b'&' | b')' | b',' | b'}' | b'>')
    })
}

/// A value without quotes. Marks that end a word in one language are part of a value in
/// another: the value goes on if what follows them is not the next name.
pub(super) fn bare(bytes: &[u8], at: usize) -> Range<usize> {
    let mut end = at;
    while let Some(&byte) = bytes.get(end) {
        let rest = bytes.get(end + 1..).unwrap_or_default();
        let next = rest.first().copied().unwrap_or_default();
        let goes_on = match byte {
            0..=b' ' | 0x7f | b'"' | b'\'' | b';' | b'|' | b'`' => false,
            b',' | b'&' => next.is_ascii_alphanumeric() && !is_next_pair(rest),
            b')' | b'}' | b']' => next.is_ascii_alphanumeric(),
            b'<' => end == at || next.is_ascii_alphanumeric(),
            b'\\' => {
                let slashes = run_length(rest, 0, |byte| byte == b'\\');
                let next = rest.get(slashes).copied().unwrap_or_default();
                !matches!(next, 0..=b' ' | b'n' | b'r' | b't' | b'u' | b'"' | b'\'')
            }
            _ => true,
        };
        if !goes_on || end - at >= MAX_BARE_BYTES && is_boundary(bytes, end) {
            break;
        }
        end += 1;
    }
    at..end
}

/// Whether a text begins with another name and its value: `user=me`.
fn is_next_pair(text: &[u8]) -> bool {
    let word = run_length(text, 0, |byte| {
        byte > b' ' && !matches!(byte, b',' | b'&' | b'"' | b'\'')
    });
    let word = text.get(..word.min(64)).unwrap_or_default();
    word.iter().any(|byte| matches!(byte, b'=' | b':'))
}

/// A value on the line after its name: quoted, a list, or one word that looks like a secret.
fn value_of_next_line(bytes: &[u8], line: usize) -> Option<Range<usize>> {
    let at = line + blanks(bytes, line);
    if let Some(value) = quoted(bytes, at) {
        // A quoted name of the next pair is no value.
        let after = value.end
            + run_length(bytes, value.end, |byte| {
                matches!(byte, b'\\' | b'"' | b'\'')
            });
        let is_name = bytes.get(after + blanks(bytes, after)) == Some(&b':');
        return (!is_name && is_secret_text(bytes.get(value.clone())?)).then_some(value);
    }
    if bytes.get(at) == Some(&b'-') && bytes.get(at + 1) == Some(&b' ') {
        return items(bytes, at);
    }
    let value = bare(bytes, at);
    let text = bytes.get(value.clone())?;
    (at > line && is_line_end(bytes, value.end) && is_mixed(text, 8) && !text.ends_with(b":"))
        .then_some(value)
}

/// The items of a YAML list, from the first to the last.
fn items(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    let mut at = at;
    while bytes.get(at) == Some(&b'-') && bytes.get(at + 1) == Some(&b' ') {
        let from = at + 1 + blanks(bytes, at + 1);
        let value = quoted(bytes, from).unwrap_or_else(|| bare(bytes, from));
        let text = bytes.get(value.clone())?;
        if !is_secret_text(text) || text.ends_with(b":") || text.len() < 6 {
            break;
        }
        let after = value.end + run_length(bytes, value.end, |byte| matches!(byte, b'"' | b'\''));
        let start = found.map_or(value.start, |found| found.start);
        found = Some(start..value.end);
        let line = after + line_break(bytes, after);
        if line == after || line - at > MAX_LINES_BYTES {
            break;
        }
        at = line + blanks(bytes, line);
    }
    found
}

/// A YAML block: `|` or `>`, and the indented lines that follow.
fn block_value(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if !matches!(bytes.get(at), Some(b'|' | b'>')) {
        return None;
    }
    let mark = at
        + 1
        + run_length(bytes, at + 1, |byte| {
            matches!(byte, b'-' | b'+' | b'0'..=b'9')
        });
    let mark = mark + blanks(bytes, mark);
    let line = mark + line_break(bytes, mark);
    let indent = blanks(bytes, line);
    if line == mark || indent == 0 {
        return None;
    }
    let from = line + indent;
    let mut end = from;
    loop {
        end += run_length(bytes, end, |byte| {
            !matches!(byte, b'\n' | b'\r' | b'\\' | b'"')
        });
        let next = end + line_break(bytes, end);
        let is_more = next > end && blanks(bytes, next) >= indent && next - from < MAX_QUOTED_BYTES;
        if is_more {
            end = next;
        } else if next == end && bytes.get(end) == Some(&b'\\') && end - from < MAX_QUOTED_BYTES {
            end += 1;
        } else {
            break;
        }
    }
    is_worth_hiding(bytes.get(from..end)?).then_some(from..end)
}

/// The texts of a list in brackets, from the first to the last.
fn list_value(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let window = bytes.get(at..(at + MAX_LINES_BYTES).min(bytes.len()))?;
    let close = at + window.iter().position(|byte| *byte == b']')?;
    let at = at + run_length(bytes, at, |byte| byte.is_ascii_whitespace());
    let first = quoted(bytes, at).filter(|first| first.end <= close)?;
    if !is_secret_text(bytes.get(first.clone())?) {
        return None;
    }
    let last = bytes.get(first.start..close)?.iter();
    let last = first.start
        + last
            .clone()
            .rposition(|byte| matches!(byte, b'"' | b'\''))?;
    let slashes = bytes.get(..last)?.iter().rev();
    let slashes = slashes.take_while(|byte| **byte == b'\\').count();
    Some(first.start..(last - slashes).max(first.end))
}

/// The end of `Bearer …` and the like.
fn credentials_end(bytes: &[u8], scheme: Range<usize>) -> Option<usize> {
    let word = bytes.get(scheme.clone())?;
    let is_scheme = SCHEMES
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme));
    let from = scheme.end + blanks(bytes, scheme.end);
    if !is_scheme || from == scheme.end {
        return None;
    }
    let length = Alphabet::HEADER.run(bytes, from);
    let text = bytes.get(from..from + length)?;
    (is_mixed(text, 6) || looks_random(text)).then_some(from + length)
}

const SCHEMES: [&[u8]; 10] = [
    b"bearer",
    b"basic",
    b"token",
    b"apikey",
    b"bot",
    b"jwt",
    b"digest",
    b"negotiate",
    b"ssws",
    b"splunk",
];

/// A text that a type or a constructor separates from its name:
/// `token: &str = "…"`, `Some("…")`.
fn wrapped_value(bytes: &[u8], at: usize, separator: Separator) -> Option<Range<usize>> {
    let word = Alphabet::WORD.run(bytes, at);
    let colons = run_length(bytes, at + word, |byte| byte == b':');
    let method = Alphabet::WORD.run(bytes, at + word + colons);
    let call = at + word + if colons == 2 { 2 + method } else { 0 };
    let name = bytes.get(at..call)?;
    if bytes.get(call) == Some(&b'(') && CONSTRUCTORS.contains(&name) {
        let value = quoted(bytes, call + 1)?;
        return is_secret_text(bytes.get(value.clone())?).then_some(value);
    }
    if separator != Separator::Colon {
        return None;
    }
    let window = bytes.get(..(at + 64).min(bytes.len()))?;
    let annotation = run_length(window, at, |byte| {
        Alphabet::WORD.contains(byte)
            || matches!(
                byte,
                b'<' | b'>' | b'&' | b'\'' | b'[' | b']' | b'|' | b'?' | b'*' | b' ' | b':'
            )
    });
    let equals = at + annotation;
    if annotation > 48 || bytes.get(equals) != Some(&b'=') {
        return None;
    }
    let value = quoted(bytes, equals + 1 + blanks(bytes, equals + 1))?;
    is_secret_text(bytes.get(value.clone())?).then_some(value)
}

const CONSTRUCTORS: [&[u8]; 10] = [
    b"Some",
    b"String::from",
    b"Secret",
    b"Secret::new",
    b"SecretString",
    b"SecretString::new",
    b"SecretStr",
    b"SecretString::from",
    b"Just",
    b"str",
];

/// A header: all within its quotes, or the words that belong to it.
fn header_value(bytes: &[u8], at: usize, kind: &'static str) -> Option<SecretSpan> {
    let value = quoted(bytes, at).unwrap_or_else(|| at..header_end(bytes, at));
    is_secret_header(bytes.get(value.clone())?, kind).then_some((kind, value))
}

/// The end of a header without quotes of its own: a scheme, a word, and words with a `=`.
fn header_end(bytes: &[u8], at: usize) -> usize {
    let is_in_word =
        |byte: u8| byte > b' ' && !matches!(byte, b'"' | b'\'' | b'\\' | b'`') && byte != 0x7f;
    let mut end = at + run_length(bytes, at, is_in_word);
    let is_parameter = |word: &[u8]| word.contains(&b'=');
    let first = bytes.get(at..end).unwrap_or_default();
    let mut is_scheme = !is_parameter(first) && first.len() <= 24;
    while end - at < MAX_QUOTED_BYTES {
        let from = end + blanks(bytes, end);
        let next = from + run_length(bytes, from, is_in_word);
        let word = bytes.get(from..next).unwrap_or_default();
        if word.is_empty() || !(is_scheme || is_parameter(word)) {
            break;
        }
        is_scheme = false;
        end = next;
    }
    end
}
