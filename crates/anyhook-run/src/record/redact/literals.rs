//! Whether a text is a secret, or code, prose, a reference to a secret, an example.

use std::ops::Range;

use super::names::mentions_secret;
use super::scan::{Alphabet, find, run_length};
use super::values::{Separator, is_line_end};

/// The longest part of a header that is looked at.
const MAX_HEADER_BYTES: usize = 2048;

pub(super) fn is_secret_header(text: &[u8], kind: &str) -> bool {
    let text = text
        .get(..text.len().min(MAX_HEADER_BYTES))
        .unwrap_or_default();
    if kind == "cookie" {
        return is_cookie(text);
    }
    let scheme = text.iter().position(|byte| *byte == b' ');
    let from = scheme.map_or(0, |scheme| scheme + 1);
    let credentials = text.get(from..).unwrap_or_default();
    !is_reference(credentials, b"")
        && !is_template(credentials)
        && is_literal(credentials)
        && (is_mixed(credentials, 6) || looks_random(credentials))
        && !credentials.contains(&b'(')
}

/// `name=value` with a value that looks like that of a session.
fn is_cookie(text: &[u8]) -> bool {
    let mut pairs = text.split(|byte| *byte == b';');
    pairs.any(|pair| {
        let pair = pair.trim_ascii();
        let name = Alphabet::TOKEN.run(pair, 0);
        let value = pair.get(name + 1..).unwrap_or_default();
        let word = run_length(value, 0, |byte| byte > b' ');
        let value = value.get(..word).unwrap_or_default();
        name > 0 && pair.get(name) == Some(&b'=') && is_mixed(value, 8)
    })
}

/// Whether a quoted text, or a text that is the value of a name, is a secret.
pub(super) fn is_secret_text(text: &[u8]) -> bool {
    if !is_worth_hiding(text) || !is_literal(text) || is_reference(text, b"") || is_template(text) {
        return false;
    }
    if is_common_word(text) || is_address_or_path(text) {
        return false;
    }
    let is_name_like =
        |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'.' | b' ');
    if text.iter().all(is_name_like) {
        let words = text.split(|byte| *byte == b' ').count();
        return !mentions_secret(text) && words < 5;
    }
    // Identifiers such as `token_v2` are names of secrets, not secrets.
    let is_identifier = Alphabet::WORD.run(text, 0) == text.len();
    let is_prose = text.split(|byte| *byte == b' ').count() >= 3 && mentions_secret_word(text);
    let is_name = is_identifier && mentions_secret(text) && text.len() < 24 && has_word_break(text);
    !is_prose && (!is_name || looks_random(text))
}

fn mentions_secret_word(text: &[u8]) -> bool {
    text.split(|byte| !byte.is_ascii_alphabetic())
        .any(mentions_secret)
}

/// Whether an identifier has `_` in it and no digit before a letter.
fn has_word_break(text: &[u8]) -> bool {
    text.contains(&b'_') && !has_inner_digit(text)
}

pub(super) fn has_inner_digit(text: &[u8]) -> bool {
    text.windows(2).any(|pair| match pair {
        [digit, next] => digit.is_ascii_digit() && next.is_ascii_alphabetic(),
        _ => false,
    })
}

/// Whether a text without quotes is a secret, and not code, a type or prose.
pub(super) fn is_bare_secret(
    bytes: &[u8],
    value: Range<usize>,
    separator: Separator,
    kind: &'static str,
) -> bool {
    let text = bytes.get(value.clone()).unwrap_or_default();
    let rest = bytes.get(value.end..).unwrap_or_default();
    let text = text.trim_ascii_end();
    let cut = text
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b',' | b':' | b'?'));
    let text = text.get(..cut.map_or(0, |cut| cut + 1)).unwrap_or_default();
    if !is_worth_hiding(text) || !is_literal(text) || is_reference(text, rest) {
        return false;
    }
    if is_common_word(text) || is_address_or_path(text) || is_template(text) {
        return false;
    }
    if text.len() > 256 {
        return true;
    }
    if text.iter().all(u8::is_ascii_digit) {
        return is_secret_number(text.len(), kind);
    }
    let text_start = run_length(text, 0, |byte| matches!(byte, b'&' | b'*' | b'!' | b'('));
    let path = run_length(text, text_start, |byte| {
        Alphabet::WORD.contains(byte) || matches!(byte, b'.' | b':' | b'?')
    });
    let head = text.get(text_start..text_start + path).unwrap_or_default();
    let next = text
        .get(text_start + path)
        .or_else(|| rest.first().filter(|_| text_start + path == text.len()));
    let is_call = matches!(next, Some(b'(' | b'[' | b'<' | b'{' | b'!'))
        || (next == Some(&b'-') && text.get(text_start + path + 1) == Some(&b'>'));
    if is_call
        && path > 0
        && (!looks_random(head) && !has_inner_digit(head))
        && separator != Separator::Argument
    {
        return false;
    }
    if text_start + path < text.len() {
        return true;
    }
    is_bare_identifier_secret(text, head, rest, separator)
}

/// [`is_bare_secret`] for a text that could be an identifier or a path of them.
fn is_bare_identifier_secret(text: &[u8], head: &[u8], rest: &[u8], separator: Separator) -> bool {
    if looks_random(head) {
        return true;
    }
    let has_digit = head.iter().any(u8::is_ascii_digit);
    if mentions_secret(head) && !has_inner_digit(head) {
        return false;
    }
    let is_path = head.iter().any(|byte| matches!(byte, b'.' | b':'));
    let is_at_end = is_line_end(rest, 0);
    let is_argument = matches!(rest.first(), Some(b')' | b','));
    let letters = head.iter().all(u8::is_ascii_lowercase);
    match separator {
        Separator::Tight if is_path => has_digit || !is_argument && !is_object_path(head),
        Separator::Tight => has_digit || !is_argument,
        Separator::Argument => {
            has_digit
                || head.len() >= 5
                    && !head
                        .iter()
                        .all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
        }
        Separator::Colon | Separator::Spaced if has_digit => {
            text.len() >= 6 && !(is_path && is_object_path(head))
        }
        Separator::Colon if letters && is_at_end => true,
        Separator::Colon | Separator::Spaced => letters && head.len() >= 14 && !is_argument,
    }
}

/// `self.x`, `process.env.X`: code that reads a value.
fn is_object_path(path: &[u8]) -> bool {
    let first = path.split(|byte| matches!(byte, b'.' | b':' | b'?')).next();
    let objects: [&[u8]; 30] = [
        b"self",
        b"this",
        b"process",
        b"os",
        b"env",
        b"std",
        b"config",
        b"cfg",
        b"conf",
        b"settings",
        b"args",
        b"opts",
        b"options",
        b"params",
        b"props",
        b"req",
        b"request",
        b"res",
        b"response",
        b"ctx",
        b"context",
        b"app",
        b"data",
        b"body",
        b"user",
        b"state",
        b"event",
        b"secrets",
        b"var",
        b"input",
    ];
    first.is_some_and(|first| objects.contains(&first))
}

/// Numbers are secrets under the name of a password; tokens are also counted.
pub(super) fn is_secret_number(digits: usize, kind: &str) -> bool {
    digits >= if kind == "token" { 9 } else { 4 }
}

/// Neither masked nor an example.
fn is_literal(text: &[u8]) -> bool {
    let is_mask = text.iter().all(|byte| {
        matches!(
            byte,
            b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'#' | b'?' | b'0'
        )
    });
    let text = text.get(..text.len().min(64)).unwrap_or_default();
    let lower = text.to_ascii_lowercase();
    !(is_mask
        || lower.starts_with(b"your")
        || lower.starts_with("…".as_bytes())
        || lower.starts_with("•".as_bytes())
        || lower.ends_with(b"_here")
        || lower.ends_with(b"-here")
        || find(&lower, b"redacted").is_some()
        || find(&lower, b"xxxx").is_some()
        || find(&lower, b"****").is_some())
}

/// Whether a value refers to a secret that is stored elsewhere: `$NAME`, `<your-token>`,
/// `{{ name }}`. A password may begin with the same marks.
fn is_reference(text: &[u8], rest: &[u8]) -> bool {
    let rest = rest.get(..rest.len().min(128)).unwrap_or_default();
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let closes = |mark: &[u8]| find(text, mark).is_some() || find(line, mark).is_some();
    match text {
        [b'$', b'(' | b'{' | b'[', ..]
        | [b'`', ..]
        | [b'%', b's' | b'd' | b'v']
        | [b'%', b'(', ..]
        | [b'#' | b'@', b'{', ..] => true,
        [b'$', name @ ..] => is_variable(name),
        [b'<', inner @ ..] => {
            inner.first().is_some_and(u8::is_ascii_alphabetic)
                && closes(b">")
                && !has_inner_digit(inner)
        }
        [b'{', b'{', ..] => closes(b"}}"),
        [b'{', ..] => closes(b"}"),
        [b'%', name @ .., b'%'] | [b':' | b'@', name @ ..] => {
            Alphabet::WORD.run(name, 0) == name.len() && !has_inner_digit(name)
        }
        [b'!', name @ ..] => {
            Alphabet::WORD.run(name, 0) == name.len() && rest.first() == Some(&b' ')
        }
        _ => false,
    }
}

/// The rest of `$name`, `$name[…]`, `$name->…`, `$name:$other`.
fn is_variable(name: &[u8]) -> bool {
    let length = Alphabet::WORD.run(name, 0);
    let word = name.get(..length).unwrap_or_default();
    let tail = name.get(length..).unwrap_or_default();
    let is_upper = !word.iter().any(u8::is_ascii_lowercase);
    let is_name = word
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let is_plain = is_upper || !has_inner_digit(word);
    let goes_on = match tail {
        [] | [b'[' | b'(' | b'.' | b':' | b'/' | b'}', ..] | [b'-', b'>', ..] => true,
        [b'$', rest @ ..] => is_variable(rest),
        _ => false,
    };
    let is_position = word.len() == 1 && tail.is_empty();
    (is_name && is_plain && goes_on) || is_position
}

/// Whether a text is filled in when the program runs.
fn is_template(text: &[u8]) -> bool {
    let marks: [&[u8]; 7] = [b"${", b"$(", b"{{", b"#{", b"{}", b"%s", b"%("];
    let names_a_field = text
        .iter()
        .position(|byte| *byte == b'{')
        .is_some_and(|open| {
            let name = Alphabet::WORD.run(text, open + 1);
            name > 0 && text.get(open + 1 + name) == Some(&b'}')
        });
    names_a_field
        || marks
            .iter()
            .any(|mark| find(text, mark).is_some_and(|at| at > 0 || text.contains(&b'}')))
}

/// Addresses are scanned for secrets of their own; paths lead to a secret.
fn is_address_or_path(text: &[u8]) -> bool {
    let scheme = Alphabet::ALPHANUMERIC.run(text, 0);
    let is_address = scheme > 1
        && text
            .get(scheme..)
            .is_some_and(|rest| rest.starts_with(b"://"));
    let starts: [&[u8]; 18] = [
        b"./",
        b"../",
        b"~/",
        b"/run/",
        b"/etc/",
        b"/home/",
        b"/Users/",
        b"/tmp/",
        b"/var/",
        b"/usr/",
        b"/opt/",
        b"/mnt/",
        b"/root",
        b"/srv/",
        b"/dev/",
        b"/secrets/",
        b"/app/",
        b"/work",
    ];
    is_address || starts.iter().any(|start| text.starts_with(start))
}

/// At least three characters, one of them a letter or digit, and no word for "nothing".
pub(super) fn is_worth_hiding(text: &[u8]) -> bool {
    let letters = text
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    text.len() >= 3 && letters.take(2).count() == 2
}

/// A digit, a letter, and enough of both.
pub(super) fn is_mixed(text: &[u8], min_length: usize) -> bool {
    text.len() >= min_length
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_alphabetic)
}

/// Whether letters, digits and cases change as often as in a random text.
pub(super) fn looks_random(text: &[u8]) -> bool {
    let text = text.get(..text.len().min(256)).unwrap_or_default();
    if text.len() < 16
        || !text
            .iter()
            .all(|byte| Alphabet::HEADER.contains(*byte) || *byte == b'%')
    {
        return false;
    }
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        _ => 0,
    };
    let changes = text.windows(2).filter(|pair| match pair {
        [first, second] => {
            let (first, second) = (class(*first), class(*second));
            first != second && first != 0 && second != 0 && (first, second) != (3, 2)
        }
        _ => false,
    });
    let has_digit_or_mark = text
        .iter()
        .any(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'='));
    let is_uuid = text.len() == 36 && text.split(|byte| *byte == b'-').count() == 5;
    has_digit_or_mark && !is_uuid && changes.count() * 5 >= text.len()
}

/// Types, keywords and other words that stand where a value could.
fn is_common_word(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"[]").unwrap_or(text);
    COMMON_WORDS
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

#[rustfmt::skip]
const COMMON_WORDS: &[&[u8]] = &[
    b"true", b"false", b"null", b"none", b"nil", b"undefined", b"empty", b"unset", b"void", b"never",
    b"string", b"str", b"&str", b"text", b"bytes", b"buffer", b"char", b"int", b"integer", b"number", b"float",
    b"double", b"bool", b"boolean", b"any", b"unknown", b"object", b"dict", b"list", b"array", b"map", b"option",
    b"optional", b"required", b"vec", b"uuid", b"i32", b"i64", b"u8", b"u16", b"u32", b"u64", b"usize", b"f64",
    b"int32", b"int64", b"uint8", b"uint32", b"uint64", b"float32", b"float64", b"byte", b"varchar", b"hidden",
    b"await", b"async", b"new", b"function", b"func", b"lambda", b"yield", b"typeof", b"return", b"self", b"this",
    b"const", b"let", b"var", b"static", b"readonly", b"default", b"import", b"require", b"match", b"not",
    b"inherit", b"include", b"omit", b"same-origin", b"bearer", b"basic", b"jwt", b"oauth", b"oauth2", b"sha256",
    b"sha512", b"hs256", b"rs256", b"base64", b"utf8", b"utf-8", b"md5", b"bcrypt", b"argon2", b"ed25519", b"x509",
    b"value", b"flag", b"argument", b"parameter", b"instead", b"and", b"the", b"from", b"with", b"must", b"when",
    b"which", b"that", b"file", b"stdin", b"env", b"input", b"prompt", b"auto", b"enabled", b"disabled", b"missing",
    b"invalid", b"expired", b"valid", b"revoked", b"rejected", b"accepted", b"changed", b"reset", b"ok", b"yes", b"no",
];
