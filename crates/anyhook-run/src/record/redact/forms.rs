//! Secrets that the text around them gives away: names with values, tags, calls,
//! SQL, commands that set a variable.

use super::SecretSpan;
use super::literals::{is_mixed, is_secret_text, is_worth_hiding, looks_random};
use super::names::{NameClass, class_of_name};
use super::scan::{Alphabet, find, run_length, starts_with_ignore_case, strip_word};
use super::tokens::token;
use super::values::{Separator, bare, quoted, value_at};

/// How far a name may be from the value that it belongs to.
const MAX_PAIR_BYTES: usize = 160;

/// `PASSWORD=…`, `"api_key": "…"`, `password := …`, `:password => …`, `Cookie: …`.
pub(super) fn assignment(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let mark = *bytes.get(at)?;
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    let next = bytes.get(at + 1).copied().unwrap_or_default();
    let (name_end, from) = match (mark, before) {
        (b':', Some(b':')) => return None,
        (b':', _) if next == b'=' => return None,
        (b'=', Some(b':' | b'?')) => (at - 1, at + 1),
        (
            b'=',
            Some(b'!' | b'=' | b'<' | b'>' | b'+' | b'*' | b'/' | b'%' | b'^' | b'|' | b'&'),
        ) => {
            return None;
        }
        (b'=', _) if next == b'>' => (at, at + 2),
        _ => (at, at + 1),
    };
    let (name, name_start) = name_before(bytes, name_end)?;
    let class = class_of_name(name)?;
    let is_blank = |at: usize| matches!(bytes.get(at), Some(b' ' | b'\t'));
    let separator = if mark == b':' {
        Separator::Colon
    } else if from > at + 1 || name_end < at || is_blank(from) || is_blank(at - 1) {
        Separator::Spaced
    } else {
        Separator::Tight
    };
    match class {
        NameClass::Value => pair_value(bytes, name_start, from, separator),
        NameClass::Query(_) => {
            let before = name_start
                .checked_sub(1)
                .and_then(|before| bytes.get(before));
            matches!(before, Some(b'?' | b'&'))
                .then(|| value_at(bytes, from, separator, class))
                .flatten()
        }
        // The working directory.
        _ if name.eq_ignore_ascii_case(b"pwd") && matches!(next, b'/' | b'~' | b'$' | b'.') => None,
        _ => value_at(bytes, from, separator, class),
    }
}

/// The name that ends before `at`, without blanks, quotes and brackets, and its start.
fn name_before(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head = bytes.get(at.saturating_sub(96)..at)?;
    let mut end = head.len();
    let strip = |end: &mut usize, marks: &[u8]| {
        while *end > 0 && head.get(*end - 1).is_some_and(|byte| marks.contains(byte)) {
            *end -= 1;
        }
    };
    strip(&mut end, b" \t");
    if end > 0 && head.get(end - 1) == Some(&b']') {
        end -= 1;
    }
    strip(&mut end, b"\"'\\");
    let length = Alphabet::URL_SAFE.run_before(head, end, 64);
    let name = head.get(end - length..end)?;
    (length > 0).then_some((name, at - head.len() + end - length))
}

/// The value of `name: X` and `value: Y`, in either order, and of `X: {value: Y}`.
fn pair_value(
    bytes: &[u8],
    name_start: usize,
    from: usize,
    separator: Separator,
) -> Option<SecretSpan> {
    let window = bytes.get(name_start.saturating_sub(MAX_PAIR_BYTES)..name_start)?;
    let owner = window
        .iter()
        .rposition(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'\\'));
    let owner = owner.filter(|owner| window.get(*owner) == Some(&b'{'));
    let owner = owner.and_then(|open| {
        let head = window.get(..open)?.trim_ascii_end();
        let colon = head
            .strip_suffix(b":")
            .or_else(|| head.strip_suffix(b"="))?;
        class_of_name(name_before(colon, colon.len())?.0)
    });
    let object = window
        .iter()
        .rposition(|byte| matches!(byte, b'{' | b'}' | b'<' | b'>'));
    let object = window.get(object.map_or(0, |open| open + 1)..)?;
    let after = bytes.get(from..(from + MAX_PAIR_BYTES).min(bytes.len()))?;
    let end = after
        .iter()
        .position(|byte| matches!(byte, b'}' | b'>' | b'\n'));
    let after = after.get(..end.unwrap_or(after.len()))?;
    let class = owner.or_else(|| label(object)).or_else(|| label(after))?;
    value_at(bytes, from, separator, class)
}

/// Members whose value is the name of something.
pub(super) const LABELS: [&str; 8] = [
    "name", "key", "id", "variable", "type", "Name", "Key", "field",
];

/// The class of the name that a text gives: `name: DB_PASSWORD`.
fn label(text: &[u8]) -> Option<NameClass> {
    let mut marks = text.iter().enumerate().rev();
    marks.find_map(|(at, byte)| {
        if !matches!(byte, b':' | b'=') {
            return None;
        }
        let (name, _) = name_before(text, at)?;
        if !LABELS.iter().any(|label| label.as_bytes() == name) {
            return None;
        }
        let from = at + 1 + run_length(text, at + 1, |byte| byte == b' ');
        let value = quoted(text, from).unwrap_or_else(|| bare(text, from));
        class_of_name(text.get(value)?).filter(|class| is_class_of_secret(*class))
    })
}

pub(super) fn is_class_of_secret(class: NameClass) -> bool {
    matches!(
        class,
        NameClass::Secret(_) | NameClass::Maybe(_) | NameClass::Header(_)
    )
}

/// `"API_KEY", "…"`: the arguments of a call, or an option in a list.
pub(super) fn quoted_pair(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let (name, name_start) = name_before(bytes, at)?;
    let quote = name_start
        .checked_sub(1)
        .and_then(|before| bytes.get(before));
    if quote != bytes.get(at) {
        return None;
    }
    let class = class_of_name(name)?;
    let gap = run_length(bytes, at + 2, |byte| byte.is_ascii_whitespace());
    let value = quoted(bytes, at + 2 + gap)?;
    let text = bytes.get(value.clone())?;
    let is_option = name.starts_with(b"-") && !text.starts_with(b"-");
    let looks_secret =
        is_option || is_mixed(text, 6) && !text.contains(&b' ') || looks_random(text);
    match class {
        NameClass::Header(_) => value_at(bytes, at + 2 + gap, Separator::Spaced, class),
        NameClass::Secret(kind) | NameClass::Maybe(kind) if looks_secret => {
            is_secret_text(text).then_some((kind, value))
        }
        _ => None,
    }
}

/// `.password("…")`.
pub(super) fn call(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let (name, _) = name_before(bytes, at)?;
    let Some(NameClass::Secret(kind)) = class_of_name(name) else {
        return None;
    };
    let value = quoted(bytes, at + 1)?;
    let text = bytes.get(value.clone())?;
    (is_mixed(text, 8) && !text.contains(&b' ') && is_secret_text(text)).then_some((kind, value))
}

/// `<password>…</password>`, `<key>password</key><string>…</string>`.
pub(super) fn tag(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let is_name = |byte: u8| Alphabet::TOKEN.contains(byte) || byte == b':';
    let length = run_length(bytes, at + 1, is_name).min(64);
    let name = bytes.get(at + 1..at + 1 + length)?;
    let class = match name {
        b"string" | b"value" => {
            let window = bytes
                .get(at.saturating_sub(MAX_PAIR_BYTES)..at)?
                .trim_ascii_end();
            let close = window.iter().rposition(|byte| *byte == b'<')?;
            class_of_name(name_before(window, close)?.0)?
        }
        _ => class_of_name(name)?,
    };
    let NameClass::Secret(kind) = class else {
        return None;
    };
    let open = at + 1 + length;
    let attributes = bytes.get(open..(open + MAX_PAIR_BYTES).min(bytes.len()))?;
    let from = open + attributes.iter().position(|byte| *byte == b'>')? + 1;
    let text = bytes.get(from..(from + 4096).min(bytes.len()))?;
    let end = text.iter().position(|byte| *byte == b'<')?;
    let is_closed = text.get(end + 1) == Some(&b'/')
        && text.get(end + 2..)?.starts_with(name)
        && is_secret_text(text.get(..end)?.trim_ascii());
    is_closed.then_some((kind, from..from + end))
}

/// `login me password …`, `password is …`, `PASSWORD '…'`.
fn password_word(bytes: &[u8], start: usize) -> Option<SecretSpan> {
    let rest = bytes.get(start..)?;
    let tail = strip_word(rest, "password").or_else(|| strip_word(rest, "passwd"))?;
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t');
    let mut from = bytes.len() - tail.len();
    from += run_length(bytes, from, is_blank);
    let rest = bytes.get(from..)?;
    let verb = ["is", "was", "to"]
        .into_iter()
        .find(|verb| strip_word(rest, verb).is_some());
    from += verb.map_or(0, str::len);
    from += run_length(bytes, from, is_blank);
    if let Some(value) = quoted(bytes, from) {
        let text = bytes.get(value.clone())?;
        return (is_secret_text(text) && !text.contains(&b' ')).then_some(("password", value));
    }
    let value = bare(bytes, from);
    let text = bytes.get(value.clone())?;
    let is_login = || {
        let head = bytes
            .get(start.saturating_sub(MAX_PAIR_BYTES)..start)
            .unwrap_or_default();
        let mut words = head
            .rsplit(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let _user = words.next();
        words.next() == Some(b"login")
    };
    let min_length = if verb.is_some() { 6 } else { 8 };
    let is_mixed = is_mixed(text, min_length) && !text.contains(&b'(');
    let is_secret = is_mixed || (verb.is_none() && is_login());
    (is_secret && is_secret_text(text)).then_some(("password", value))
}

/// `IDENTIFIED BY '…'`; `at` is that of `BY`.
fn identified_by(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = strip_word(bytes.get(at..)?, "by")?;
    let head = bytes.get(at.saturating_sub(64)..at)?.to_ascii_lowercase();
    find(&head, b"identified ")?;
    let from = bytes.len() - rest.len();
    let value = quoted(bytes, from + run_length(bytes, from, |byte| byte == b' '))?;
    is_worth_hiding(bytes.get(value.clone())?).then_some(("password", value))
}

/// Commands and statements that set a name to a value.
const SETTERS: [&[u8]; 9] = [
    b"set",
    b"setx",
    b"setenv",
    b"SetEnv",
    b"config",
    b"ENV",
    b"define",
    b"set-secret",
    b"set_config",
];

/// `aws configure set aws_secret_access_key …`, `setx API_KEY …`, `#define PASSWORD "…"`.
fn set_command(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let length = Alphabet::URL_SAFE.run(bytes.get(..(at + 16).min(bytes.len()))?, at);
    let word = bytes.get(at..at + length)?;
    let skip_blanks = |at: usize| at + run_length(bytes, at, |byte| matches!(byte, b' ' | b'\t'));
    if word == b"authtoken" {
        let value = bare(bytes, skip_blanks(at + length));
        return looks_random(bytes.get(value.clone())?).then_some(("token", value));
    }
    if !SETTERS.contains(&word) {
        return None;
    }
    let mut from = at + length;
    for _ in 0..4 {
        from = skip_blanks(from);
        let length = run_length(bytes, from, |byte| byte > b' ').min(96);
        let word = bytes.get(from..from + length)?;
        from += length;
        if word.starts_with(b"-") || word == b"set" {
            continue;
        }
        let name = word
            .rsplit(|byte| matches!(byte, b'.' | b'/' | b':'))
            .next()?;
        let Some(NameClass::Secret(kind)) = class_of_name(name) else {
            return None;
        };
        let is_name = Alphabet::URL_SAFE.run(name, 0) == name.len();
        let value = skip_blanks(from);
        let value = quoted(bytes, value).unwrap_or_else(|| bare(bytes, value));
        let text = bytes.get(value.clone())?;
        let is_secret =
            is_name && is_secret_text(text) && (is_mixed(text, 6) || looks_random(text));
        return is_secret.then_some((kind, value));
    }
    None
}

/// A token, or another form that begins with a word.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let other = match bytes.get(at)? {
        b'b' | b'B' => identified_by(bytes, at),
        b'p' | b'P' => password_word(bytes, at),
        b's' | b'S' | b'c' | b'E' | b'd' | b'a' => set_command(bytes, at),
        _ => None,
    };
    other.or_else(|| token(bytes, at))
}

/// A token after an escape: `\n`, `%3D`, `ESC[31m`. The letter before the token is not
/// part of a word then.
pub(super) fn after_escape(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let length = match bytes.get(at..)? {
        [b'\\', b'u', ..] => 6,
        [b'\\', b'n' | b't' | b'r', ..] => 2,
        [b'%', ..] => 3,
        [0x1b, ..] => {
            let codes = run_length(bytes, at + 2, |byte| byte.is_ascii_digit() || byte == b';');
            3 + codes.min(16)
        }
        _ => return None,
    };
    token(bytes, at + length)
}

/// `host:5432:database:user:…` in a password file; `at` is that of the first colon.
pub(super) fn password_file(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let port = run_length(bytes, at + 1, |byte| byte.is_ascii_digit() || byte == b'*');
    let is_port = port >= 4 || bytes.get(at + 1) == Some(&b'*');
    let mut end = at + 1 + port;
    if !is_port || port > 5 || bytes.get(end) != Some(&b':') {
        return None;
    }
    for _ in 0..2 {
        let field = run_length(bytes, end + 1, |byte| {
            Alphabet::TOKEN.contains(byte) || byte == b'*'
        });
        end += 1 + field;
        if field == 0 || bytes.get(end) != Some(&b':') {
            return None;
        }
    }
    let host = Alphabet::TOKEN.run_before(bytes, at, 64);
    let is_host = host > 0 || bytes.get(at.wrapping_sub(1)) == Some(&b'*');
    let value = bare(bytes, end + 1);
    (is_host && value.len() >= 6).then_some(("password", value))
}

/// `ConvertTo-SecureString "…"`.
pub(super) fn secure_string(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let name = b"-SecureString ";
    if !starts_with_ignore_case(bytes.get(at..)?, name) {
        return None;
    }
    let value = quoted(bytes, at + name.len())?;
    is_secret_text(bytes.get(value.clone())?).then_some(("password", value))
}

pub(super) fn private_key(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = bytes.get(at..)?;
    let line = rest.get(..rest.len().min(64))?;
    find(line, b"PRIVATE KEY")?;
    let to = match find(rest.get(5..)?, b"-----END ") {
        Some(end) => {
            let close = at + 5 + end + b"-----END ".len();
            let tail = bytes.get(close..)?;
            close + find(tail, b"-----").map_or(tail.len(), |dashes| dashes + 5)
        }
        // The end is missing: the rest is key.
        None => bytes.len(),
    };
    Some(("private-key", at..to))
}
