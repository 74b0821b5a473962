//! Names that say that their value is a secret.

/// Whether a name says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name
        .bytes()
        .filter(u8::is_ascii_alphanumeric)
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    // Counts and limits of tokens, and names of things, are no secrets.
    if plain.contains("tokens")
        || [
            "tokencount",
            "tokenlimit",
            "tokentype",
            "secretname",
            "tokenid",
            "keyid",
        ]
        .iter()
        .any(|ending| plain.ends_with(ending))
    {
        return false;
    }
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "privatekey",
        "credential",
        "authorization",
    ]
    .iter()
    .any(|part| plain.contains(part))
        || (plain.ends_with("pwd") && !FOLDERS.contains(&plain.as_str()))
        || (plain.ends_with("pass") && !WORDS.iter().any(|word| plain.ends_with(word)))
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
