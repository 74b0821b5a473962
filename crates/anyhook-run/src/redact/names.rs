//! Names that say that their value is a secret.

/// Whether a name says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    may_be_secret(name) && is_secret(name)
}

/// By its letters alone: most names lack some, and every name of every event is
/// asked.
fn may_be_secret(name: &str) -> bool {
    let has = name.bytes().fold(0, |all, byte| all | letter(byte));
    let all = |needs: u32| has & needs == needs;
    let last = name.bytes().rfind(u8::is_ascii_alphanumeric);
    match last {
        Some(b's' | b'S') if all(letters("pass")) => true,
        Some(b'd' | b'D') if all(letters("pwd")) => true,
        _ => PARTS.iter().any(|(_, needs)| all(*needs)),
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name
        .bytes()
        .filter(u8::is_ascii_alphanumeric)
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    let sounds_like_one = PARTS.iter().any(|(part, _)| plain.contains(part))
        || (plain.ends_with("pwd") && !FOLDERS.contains(&plain.as_str()))
        || (plain.ends_with("pass") && !WORDS.iter().any(|word| plain.ends_with(word)));
    sounds_like_one
        && !plain.contains("tokens")
        && !OTHERS.iter().any(|ending| plain.ends_with(ending))
}

/// Counts and limits of tokens, and names of things, are no secrets.
const OTHERS: [&str; 6] = [
    "tokencount",
    "tokenlimit",
    "tokentype",
    "secretname",
    "tokenid",
    "keyid",
];

/// What makes the name of a secret, with its letters.
const PARTS: [(&str, u32); 10] = [
    part("password"),
    part("passwd"),
    part("passphrase"),
    part("secret"),
    part("token"),
    part("apikey"),
    part("accesskey"),
    part("privatekey"),
    part("credential"),
    part("authorization"),
];

const fn part(text: &'static str) -> (&'static str, u32) {
    (text, letters(text))
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

/// The bit of a letter, in either case; what is none may have one, too.
const fn letter(byte: u8) -> u32 {
    1 << (byte & 0x1f)
}

/// Names of folders.
const FOLDERS: [&str; 2] = ["pwd", "oldpwd"];

/// Words that end as a password's name does.
const WORDS: [&str; 6] = [
    "bypass",
    "compass",
    "overpass",
    "surpass",
    "trespass",
    "underpass",
];

/// What a secret of that name is called in its place.
pub fn name_kind(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    if name.contains("pass") || name.ends_with("pwd") {
        "password"
    } else if name.contains("token") {
        "token"
    } else if name.contains("key") {
        "key"
    } else {
        "secret"
    }
}
