//! Takes secrets out of what is written down.
//!
//! By well-known shapes: keys of the large vendors, private keys, bearer
//! tokens, passwords in addresses and assignments, and values whose name says
//! what they are. A hand-written scanner: one pass over the bytes, which copies
//! nothing until it finds something. It errs towards redacting.

mod names;
mod shapes;
mod stream;

use std::borrow::Cow;

pub use names::is_secret_name;
use names::name_kind;
use shapes::{is_base64, is_token, is_url_safe, next_begin, starting};
pub use stream::Clean;

/// Longer texts are cut in the journal; a record is not an archive.
pub const TEXT_LIMIT: usize = 256 * 1024;

fn cut(string: &str) -> Cow<'_, str> {
    if string.len() <= TEXT_LIMIT {
        return Cow::Borrowed(string);
    }
    let boundary = (0..=TEXT_LIMIT)
        .rev()
        .find(|at| string.is_char_boundary(*at));
    let head = string
        .get(..boundary.unwrap_or_default())
        .unwrap_or_default();
    Cow::Owned(format!("{head}… [cut, {} bytes in all]", string.len()))
}

/// The text without its secrets; none when there are none.
pub fn text(input: &str) -> Option<String> {
    let bytes = input.as_bytes();
    let mut clean: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(next_begin) {
        at += next;
        let Some(found) = secret_at(bytes, at) else {
            at += 1;
            continue;
        };
        // Every alphabet takes a character as a whole or stops before it, so
        // both ends are boundaries; were one not, the text would stay.
        let is_whole = input.is_char_boundary(found.to) && found.to > at;
        let Some(before) = input.get(copied..found.from).filter(|_| is_whole) else {
            at += 1;
            continue;
        };
        let out = clean.get_or_insert_with(|| String::with_capacity(input.len()));
        out.push_str(before);
        out.push_str(&mark(found.kind));
        copied = found.to;
        at = found.to;
    }
    let mut clean = clean?;
    clean.push_str(input.get(copied..).unwrap_or_default());
    Some(clean)
}

fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

struct Found {
    kind: &'static str,
    from: usize,
    to: usize,
}

/// Asked where [`next_begin`] says.
fn secret_at(bytes: &[u8], at: usize) -> Option<Found> {
    match bytes.get(at)? {
        b':' if bytes.get(at..)?.starts_with(b"://") => userinfo(bytes, at + 3),
        b'=' | b':' => assignment(bytes, at),
        b'-' if bytes.get(at..)?.starts_with(b"-----BEGIN ") => private_key(bytes, at),
        b'-' => option(bytes, at),
        b'B' | b'b' => credentials(bytes, at),
        _ => known_key(bytes, at),
    }
}

/// How many bytes from `at` on belong to an alphabet.
fn run(bytes: &[u8], at: usize, alphabet: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| alphabet(**byte)).count()
}

fn is_word_start(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    let Some(&before) = before else {
        return true;
    };
    // `\n` in a JSON text within a text is not the letter before the key.
    let escaped = at.checked_sub(2).and_then(|two| bytes.get(two)) == Some(&b'\\')
        && matches!(before, b'n' | b't' | b'r');
    escaped || !(before.is_ascii_alphanumeric() || before == b'_')
}

fn known_key(bytes: &[u8], at: usize) -> Option<Found> {
    if !is_word_start(bytes, at) {
        return None;
    }
    let rest = bytes.get(at..)?;
    if rest.starts_with(b"eyJ") {
        return json_web_token(bytes, at);
    }
    starting(rest).find_map(|shape| {
        let body = at + shape.prefix.len();
        let length = run(bytes, body, shape.alphabet);
        (length >= shape.least).then_some(Found {
            kind: shape.kind,
            from: at,
            to: body + length,
        })
    })
}

/// Three parts with dots between them, the first an encoded `{"`.
fn json_web_token(bytes: &[u8], at: usize) -> Option<Found> {
    let length = run(bytes, at, is_token);
    let token = bytes.get(at..at + length)?;
    let mut parts = token.split(|byte| *byte == b'.');
    let is_long = |part: Option<&[u8]>| part.is_some_and(|part| part.len() >= 8);
    (is_long(parts.next()) && is_long(parts.next())).then_some(Found {
        kind: "jwt",
        from: at,
        to: at + length,
    })
}

fn private_key(bytes: &[u8], at: usize) -> Option<Found> {
    let rest = bytes.get(at..)?;
    let line = rest.get(..rest.len().min(64))?;
    find(line, b"PRIVATE KEY")?;
    let to = match find(rest.get(5..)?, b"-----END ") {
        Some(end) => {
            let close = at + 5 + end + b"-----END ".len();
            let tail = bytes.get(close..)?;
            close + find(tail, b"-----").map_or(tail.len(), |dashes| dashes + 5)
        }
        // Cut off: the rest is key.
        None => bytes.len(),
    };
    Some(Found {
        kind: "private-key",
        from: at,
        to,
    })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// `Bearer …` and `Basic …`.
fn credentials(bytes: &[u8], at: usize) -> Option<Found> {
    if !is_word_start(bytes, at) {
        return None;
    }
    let rest = bytes.get(at..)?;
    let scheme = [&b"bearer "[..], &b"basic "[..]]
        .into_iter()
        .find(|scheme| {
            rest.get(..scheme.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
        })?;
    let from = at + scheme.len();
    let length = run(bytes, from, |byte| {
        is_base64(byte) || is_token(byte) || byte == b'~'
    });
    let token = bytes.get(from..from + length)?;
    // "Basic authentication" is prose.
    let is_prose = token.iter().all(u8::is_ascii_alphabetic) && length < 20;
    (length >= 8 && !is_prose).then_some(Found {
        kind: "credentials",
        from,
        to: from + length,
    })
}

/// The password of `scheme://user:password@host`.
fn userinfo(bytes: &[u8], at: usize) -> Option<Found> {
    let authority = run(bytes, at, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>')
    });
    let text = bytes.get(at..at + authority)?;
    let host = text.iter().rposition(|byte| *byte == b'@')?;
    let colon = text.iter().position(|byte| *byte == b':')?;
    (colon + 1 < host && is_literal(text.get(colon + 1..host)?)).then_some(Found {
        kind: "password",
        from: at + colon + 1,
        to: at + host,
    })
}

/// `PASSWORD=…`, `"api_key": "…"`, `Authorization: …`.
fn assignment(bytes: &[u8], at: usize) -> Option<Found> {
    let name = name_before(bytes, at)?;
    if !is_secret_name(name) {
        return None;
    }
    let gap = run(bytes, at + 1, |byte| matches!(byte, b' ' | b'\t'));
    // A colon in prose ("the token: ...") is followed by a space as well; an
    // equals sign with one is a comparison or an assignment, both worth it.
    let kind = name_kind(name);
    value_at(
        bytes,
        at + 1 + gap,
        kind,
        name.eq_ignore_ascii_case("authorization"),
    )
}

/// `--password …` on a command line.
fn option(bytes: &[u8], at: usize) -> Option<Found> {
    if !is_word_start(bytes, at) {
        return None;
    }
    if !bytes.get(at..)?.starts_with(b"--") {
        return short_option(bytes, at);
    }
    let length = run(bytes, at + 2, is_url_safe);
    let name = std::str::from_utf8(bytes.get(at + 2..at + 2 + length)?).ok()?;
    let from = at + 3 + length;
    if matches!(name, "user" | "proxy-user") {
        return name_and_password(bytes, from);
    }
    if !is_secret_name(name) || bytes.get(at + 2 + length) != Some(&b' ') {
        return None;
    }
    if bytes.get(from) == Some(&b'-') {
        return None;
    }
    value_at(bytes, from, name_kind(name), false)
}

/// `-u name:password`, and `-p password` of programs where that is one.
fn short_option(bytes: &[u8], at: usize) -> Option<Found> {
    let is_alone = at == 0 || matches!(bytes.get(at - 1), Some(b' ' | b'\t' | b'"' | b'\''));
    let letter = bytes.get(at + 1).filter(|_| is_alone)?;
    let gap = run(bytes, at + 2, |byte| byte == b' ');
    let from = at + 2 + gap;
    match letter {
        b'u' | b'U' => name_and_password(bytes, from),
        b'p' if bytes.get(from) != Some(&b'-') && takes_password(bytes.get(..at)?) => {
            value_at(bytes, from, "password", false)
        }
        _ => None,
    }
}

/// The password of `name:password`; two numbers are a user and a group.
fn name_and_password(bytes: &[u8], at: usize) -> Option<Found> {
    let open = run(bytes, at, |byte| matches!(byte, b'"' | b'\'' | b'\\'));
    let at = at + open;
    let name = run(bytes, at, |byte| {
        is_token(byte) || matches!(byte, b'@' | b'+' | b'%')
    });
    if name == 0 || bytes.get(at + name) != Some(&b':') {
        return None;
    }
    let from = at + name + 1;
    let length = run(bytes, from, |byte| {
        (byte.is_ascii_graphic() || !byte.is_ascii())
            && !matches!(byte, b'"' | b'\'' | b'\\' | b';' | b'&' | b'|')
    });
    let secret = bytes.get(from..from + length)?;
    let is_number = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let is_owner = is_number(bytes.get(at..at + name)?) && is_number(secret);
    let is_address = secret.starts_with(b"//");
    (!is_owner && !is_address && is_worth_hiding(secret) && is_literal(secret)).then_some(Found {
        kind: "password",
        from,
        to: from + length,
    })
}

/// Whether the command that these are the first words of has passwords at `-p`.
fn takes_password(line: &[u8]) -> bool {
    let command = line.rsplit(|byte| matches!(byte, b';' | b'|' | b'&' | b'\n'));
    let command = command
        .map(String::from_utf8_lossy)
        .next()
        .unwrap_or_default();
    let mut words = command
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '`'))
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    let programs = ["mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass"];
    words.any(|word| programs.contains(&word) || word == "login")
}

/// The name that ends before `at`, with its closing quote left out.
fn name_before(bytes: &[u8], at: usize) -> Option<&str> {
    let head = bytes.get(..at)?;
    let head = head.strip_suffix(b" ").unwrap_or(head);
    let head = head
        .strip_suffix(b"\\\"")
        .or_else(|| head.strip_suffix(b"\""))
        .or_else(|| head.strip_suffix(b"'"))
        .unwrap_or(head);
    let length = head
        .iter()
        .rev()
        .take_while(|byte| is_url_safe(**byte))
        .count();
    std::str::from_utf8(head.get(head.len() - length..)?).ok()
}

fn value_at(bytes: &[u8], at: usize, kind: &'static str, whole_line: bool) -> Option<Found> {
    let rest = bytes.get(at..)?;
    let (open, is_escaped) = match rest {
        [b'\\', quote @ (b'"' | b'\''), ..] => (Some(*quote), true),
        [quote @ (b'"' | b'\''), ..] => (Some(*quote), false),
        _ => (None, false),
    };
    let from = at + usize::from(open.is_some()) + usize::from(is_escaped);
    let length = run(bytes, from, |byte| match open {
        Some(quote) => byte != quote && byte != b'\n' && !(is_escaped && byte == b'\\'),
        None if whole_line => !matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'\\'),
        None => {
            (byte.is_ascii_graphic() || !byte.is_ascii())
                && !matches!(
                    byte,
                    b'"' | b'\'' | b',' | b';' | b'&' | b'|' | b')' | b'}' | b']' | b'\\' | b'`'
                )
        }
    });
    let secret = bytes.get(from..from + length)?;
    (is_worth_hiding(secret) && is_literal(secret)).then_some(Found {
        kind,
        from,
        to: from + length,
    })
}

/// Not a reference to a secret that lies elsewhere, nor a mark of ours.
fn is_literal(secret: &[u8]) -> bool {
    !(secret.starts_with(b"$")
        || secret.starts_with(b"<")
        || secret.starts_with(b"{{")
        || secret.starts_with(b"[redacted"))
}

fn is_worth_hiding(secret: &[u8]) -> bool {
    let is_word = [&b"true"[..], b"false", b"null", b"none"]
        .iter()
        .any(|word| secret.eq_ignore_ascii_case(word));
    secret.len() >= 3 && !is_word
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Each line: a text, ` => `, and what is to remain; `=>` and nothing after
    /// it: the text stays as it is.
    fn cases() -> impl Iterator<Item = (String, String)> {
        let lines = include_str!("../tests/redact.txt").lines();
        let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| {
            // Written apart, so that scanners for leaked keys let the file be.
            let (input, expected) = line
                .split_once(" => ")
                .unwrap_or((line.trim_end_matches(" =>"), ""));
            let input = input.replace('·', "").replace("⏎", "\n");
            let expected = if expected.is_empty() {
                input.clone()
            } else {
                expected.replace("⏎", "\n")
            };
            (input, expected)
        })
    }

    #[test]
    fn what_remains() {
        for (input, expected) in cases() {
            let clean = text(&input).unwrap_or_else(|| input.clone());
            assert_eq!(clean, expected, "from: {input}");
        }
        assert!(cases().count() > 40);
    }

    #[test]
    fn no_secret_begins_where_nobody_looks() {
        let mut found = 0;
        for (input, _) in cases() {
            for input in [input.to_uppercase(), input.to_lowercase(), input] {
                let bytes = input.as_bytes();
                for at in (0..bytes.len()).filter(|at| secret_at(bytes, *at).is_some()) {
                    found += 1;
                    assert_eq!(next_begin(&bytes[at..]), Some(0), "{at} in {input}");
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    fn clean(value: &Value) -> Value {
        serde_json::to_value(Clean::new(value)).unwrap()
    }

    #[test]
    fn values_are_redacted_by_name_at_any_depth() {
        let data = clean(&serde_json::json!({
            "env": [{"DB_PASSWORD": "hunter22", "input_tokens": 12, "token": null}],
            "note": "max_tokens=4096",
            "access_token": "abcdef",
            "passwords": ["hunter22", ["correct horse"], 3],
            "OLDPWD": "/home/me",
        }));
        assert_eq!(
            data,
            serde_json::json!({
                "env": [{"DB_PASSWORD": "[redacted:password]", "input_tokens": 12, "token": null}],
                "note": "max_tokens=4096",
                "access_token": "[redacted:token]",
                "passwords": ["[redacted:password]", ["[redacted:password]"], 3],
                "OLDPWD": "/home/me",
            })
        );
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let data = clean(&Value::String("é".repeat(TEXT_LIMIT)));
        let text = data.as_str().unwrap();
        assert!(text.len() < TEXT_LIMIT + 64);
        assert!(text.ends_with(&format!("[cut, {} bytes in all]", TEXT_LIMIT * 2)));
    }
}
