//! Secrets in the user information of addresses.

use super::SecretSpan;
use super::literals::{is_worth_hiding, looks_random};
use super::scan::{Alphabet, run_length};

/// The longest user information that is looked at.
const MAX_USERINFO_BYTES: usize = 1024;

/// The password of `scheme://user:password@host`, or the token of `scheme://token@host`.
pub(super) fn userinfo(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let window = bytes.get(..(at + MAX_USERINFO_BYTES).min(bytes.len()))?;
    let is_part = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>');
    let authority = run_length(window, at, |byte| {
        is_part(byte) && !matches!(byte, b'/' | b'?' | b'#')
    });
    let text = window.get(at..at + authority)?;
    let Some(host) = text.iter().rposition(|byte| *byte == b'@') else {
        return password_with_slash(window, at, authority, is_part);
    };
    let user = text
        .iter()
        .position(|byte| *byte == b':')
        .unwrap_or(host)
        .min(host);
    let name = text.get(..user)?;
    if is_token(name) {
        // Everything up to the host: the other part is a fixed word then.
        return Some(("credentials", at..at + host));
    }
    let password = text.get(user + 1..host)?;
    (!is_placeholder(password) && password.len() >= 2)
        .then_some(("password", at + user + 1..at + host))
}

/// A password with a character in it that should be encoded: `user:a/b@host`.
fn password_with_slash(
    window: &[u8],
    at: usize,
    authority: usize,
    is_part: impl Fn(u8) -> bool,
) -> Option<SecretSpan> {
    let text = window.get(at..at + authority)?;
    let colon = text.iter().position(|byte| *byte == b':')?;
    let after = text.get(colon + 1..)?;
    if after.is_empty() || after.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = run_length(window, at, is_part);
    let whole = window.get(at..at + length)?;
    let host = whole.iter().position(|byte| *byte == b'@')?;
    let password = whole.get(colon + 1..host)?;
    (!is_placeholder(password) && is_worth_hiding(password) && password.len() <= 64)
        .then_some(("password", at + colon + 1..at + host))
}

/// Whether the name of a user is a token.
fn is_token(name: &[u8]) -> bool {
    let is_hex = name.len() >= 32 && Alphabet::HEX.run(name, 0) == name.len();
    let is_long = name.len() >= 24 && Alphabet::ALPHANUMERIC.run(name, 0) == name.len();
    looks_random(name) || is_hex || is_long
}

fn is_placeholder(password: &[u8]) -> bool {
    let is_named = |name: &[u8]| Alphabet::WORD.run(name, 0) >= name.len().saturating_sub(1);
    match password {
        [b'$', b'{' | b'(', ..] | [b'{' | b'<', ..] | [b'%', b's' | b'v' | b'd', ..] => true,
        [b'$', name @ ..] => is_named(name) && !name.iter().any(u8::is_ascii_digit),
        _ => {
            password.starts_with(b"[redacted")
                || password.eq_ignore_ascii_case(b"password")
                || password.eq_ignore_ascii_case(b"pass")
                || password
                    .iter()
                    .all(|byte| matches!(byte, b'*' | b'x' | b'.'))
        }
    }
}
