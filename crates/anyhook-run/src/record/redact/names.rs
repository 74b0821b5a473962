//! Names that mark their value as a secret.

/// What a name says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameClass {
    /// The value is a secret of this kind.
    Secret(&'static str),
    /// The value is a secret of this kind if it looks like one.
    Maybe(&'static str),
    /// The value is a header with a secret of this kind in it.
    Header(&'static str),
    /// The value is a secret if it looks like one and the name is that of a query parameter.
    Query(&'static str),
    /// The value belongs to a name that is written elsewhere: `name: X`, `value: Y`.
    Value,
}

/// The longest name that is looked at; of a longer one, the end.
const MAX_NAME_BYTES: usize = 64;

/// What a name says about its value; `None` for ordinary names.
pub(super) fn class_of_name(name: &[u8]) -> Option<NameClass> {
    let from = name.len().saturating_sub(MAX_NAME_BYTES);
    let name = name.get(from..)?;
    let has = name.iter().fold(0, |all, byte| all | letter(*byte));
    if !may_end_secret_name(has) {
        return None;
    }
    let mut buffer = [0; MAX_NAME_BYTES];
    let mut length = 0;
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    for (slot, byte) in buffer.iter_mut().zip(letters) {
        *slot = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = std::str::from_utf8(buffer.get(..length)?).ok()?;
    class_of_plain_name(plain, has)
}

/// Whether a text contains a word that names of secrets contain.
pub(super) fn mentions_secret(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let plain: String = text
        .bytes()
        .filter(u8::is_ascii_alphanumeric)
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    SECRET_WORDS.iter().any(|(word, _, _)| plain.contains(word))
        || ["pass", "pwd", "key", "creds"]
            .iter()
            .any(|word| plain.ends_with(word))
}

/// A cheap first check by the letters of the name, because every name of every event and
/// every word before `:` and `=` is checked, and most lack a letter.
pub(super) fn may_end_secret_name(has: u32) -> bool {
    let mut sets = LETTERS_OF_SECRET_NAMES.iter();
    sets.any(|set| has & set == *set)
}

/// Every name of a secret has all letters of one of these sets.
const LETTERS_OF_SECRET_NAMES: [u32; 13] = [
    letters("key"),
    letters("toke"),
    letters("pas"),
    letters("pwd"),
    letters("cred"),
    letters("secrt"),
    letters("auth"),
    letters("value"),
    letters("cokie"),
    letters("sig"),
    letters("psk"),
    letters("mnemoic"),
    letters("bear"),
];

fn class_of_plain_name(plain: &str, has: u32) -> Option<NameClass> {
    use NameClass::{Header, Maybe, Query, Secret, Value};
    match plain {
        "value" | "defaultvalue" | "stringvalue" => return Some(Value),
        "cookie" | "setcookie" | "cookies" => return Some(Header("cookie")),
        "key" | "sig" | "signature" => return Some(Query("key")),
        "auth" | "bearer" => return Some(Maybe("credentials")),
        "secretid" => return Some(Secret("secret")),
        "pwd" | "psk" => return Some(Secret("password")),
        "oldpwd" | "initcwd" => return None,
        _ => {}
    }
    if plain.ends_with("authorization") {
        return Some(Header("secret"));
    }
    if plain.ends_with("signature") && plain.starts_with('x') {
        return Some(Query("key"));
    }
    let mut words = SECRET_WORDS.iter();
    let word = words.find(|(word, _, needs)| has & needs == *needs && plain.contains(word));
    if let Some((_, kind, _)) = word {
        if plain.contains("tokens") {
            return Some(Maybe("token"));
        }
        let is_harmless = HARMLESS_ENDINGS
            .iter()
            .any(|ending| plain.ends_with(ending))
            || HARMLESS_PARTS.iter().any(|part| plain.contains(part));
        return (!is_harmless).then_some(Secret(kind));
    }
    let is_password = plain.ends_with("pwd")
        || (plain.ends_with("pass")
            && !PASSWORD_LIKE_WORDS.iter().any(|word| plain.ends_with(word)));
    if is_password {
        return Some(Secret("password"));
    }
    if plain.ends_with("creds") {
        return Some(Maybe("credentials"));
    }
    let owner = plain.strip_suffix("key")?;
    if HARMLESS_PARTS.iter().any(|part| plain.contains(part)) {
        return None;
    }
    let is_secret = KEY_OWNERS.iter().any(|word| owner.ends_with(word));
    Some(if is_secret {
        Secret("key")
    } else {
        Maybe("key")
    })
}

/// Words in the names of secrets, each with the kind of the secret and its letters. The first
/// that a name contains decides.
const SECRET_WORDS: [(&str, &str, u32); 13] = [
    secret_word("password", "password"),
    secret_word("passwd", "password"),
    secret_word("passphrase", "password"),
    secret_word("passcode", "password"),
    secret_word("token", "token"),
    secret_word("apikey", "key"),
    secret_word("accesskey", "key"),
    secret_word("privatekey", "key"),
    secret_word("secretkey", "key"),
    secret_word("secret", "secret"),
    secret_word("credential", "secret"),
    secret_word("authorization", "secret"),
    secret_word("mnemonic", "secret"),
];

/// What a key belongs to, when it is a secret.
const KEY_OWNERS: [&str; 27] = [
    "account",
    "admin",
    "app",
    "application",
    "auth",
    "cipher",
    "crypto",
    "deploy",
    "encryption",
    "decryption",
    "functions",
    "hmac",
    "jwt",
    "license",
    "master",
    "membership",
    "root",
    "service",
    "session",
    "shared",
    "signing",
    "storage",
    "subscription",
    "symmetric",
    "webhook",
    "aes",
    "write",
];

/// Endings of names of counts, limits, places, identifiers and other things around secrets.
const HARMLESS_ENDINGS: [&str; 84] = [
    "url",
    "uri",
    "endpoint",
    "path",
    "file",
    "filename",
    "dir",
    "name",
    "names",
    "id",
    "ids",
    "type",
    "types",
    "count",
    "counts",
    "limit",
    "limits",
    "length",
    "len",
    "size",
    "field",
    "fields",
    "header",
    "headers",
    "prefix",
    "suffix",
    "format",
    "kind",
    "regex",
    "pattern",
    "expiry",
    "expires",
    "expiration",
    "expiresin",
    "expiresat",
    "ttl",
    "age",
    "lifetime",
    "timeout",
    "policy",
    "hint",
    "label",
    "placeholder",
    "input",
    "form",
    "required",
    "enabled",
    "disabled",
    "min",
    "max",
    "strength",
    "validator",
    "manager",
    "provider",
    "store",
    "cache",
    "helper",
    "utils",
    "error",
    "errors",
    "version",
    "status",
    "index",
    "position",
    "offset",
    "span",
    "stream",
    "budget",
    "usage",
    "bucket",
    "list",
    "map",
    "arn",
    "ref",
    "source",
    "env",
    "algorithm",
    "scope",
    "rotation",
    "schema",
    "parser",
    "stdin",
    "class",
    "reset",
];

/// Words that only contain the name of a secret, and public keys.
const HARMLESS_PARTS: [&str; 8] = [
    "tokeniz",
    "tokenis",
    "secretar",
    "passwordless",
    "publickey",
    "publishable",
    "primarykey",
    "foreignkey",
];

/// Words that end like the name of a password.
const PASSWORD_LIKE_WORDS: [&str; 6] = [
    "bypass",
    "compass",
    "overpass",
    "surpass",
    "trespass",
    "underpass",
];

const fn secret_word(text: &'static str, kind: &'static str) -> (&'static str, &'static str, u32) {
    (text, kind, letters(text))
}

/// A bit for each letter in a text.
const fn letters(text: &str) -> u32 {
    let mut bytes = text.as_bytes();
    let mut all = 0;
    while let [byte, rest @ ..] = bytes {
        all |= letter(*byte);
        bytes = rest;
    }
    all
}

/// The bit of a letter, in either case; other bytes may share one.
pub(super) const fn letter(byte: u8) -> u32 {
    1 << (byte & 0x1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_check_lets_every_name_of_a_secret_pass() {
        let words = SECRET_WORDS.iter().map(|(word, _, _)| (*word).to_owned());
        let keys = KEY_OWNERS.iter().map(|owner| format!("{owner}_key"));
        let others = [
            "value",
            "Cookie",
            "Set-Cookie",
            "key",
            "sig",
            "X-Amz-Signature",
            "auth",
            "bearer_token",
            "secret_id",
            "pwd",
            "psk",
            "SMTP_PASS",
            "DB_PWD",
            "creds",
            "Proxy-Authorization",
            "access_tokens",
        ];
        for name in words.chain(keys).chain(others.map(str::to_owned)) {
            assert!(class_of_name(name.as_bytes()).is_some(), "{name}");
            let upper = name.to_uppercase();
            assert!(class_of_name(upper.as_bytes()).is_some(), "{upper}");
        }
    }
}
