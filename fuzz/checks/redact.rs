//! Checks that secrets are hidden in any text that is stored.

use anyhook_run::record::redact::{redacted_json, redacted_text};
use serde_json::{Value, json};

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let clean = redacted_text(&text).unwrap_or_else(|| text.to_string());

    // A key is hidden wherever it is a separate word.
    let key = ["gh", "p_", &"a1".repeat(18)].concat();
    let text_with_key = format!("{text} {key}\n{text}");
    let hidden = redacted_text(&text_with_key).unwrap_or(text_with_key);
    assert!(!hidden.contains(&key), "{hidden}");

    // A secret is also hidden by its name, at any depth, and nothing else is lost.
    let secret = "correct horse battery";
    let value = json!({"text": text, "list": [{"db_password": [secret, text]}], "n": 1});
    let line = redacted_json(&value).unwrap().to_string();
    assert!(!line.contains(secret), "{line}");
    let back: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(back["text"], clean);
    assert_eq!(back["n"], 1);
    assert_eq!(back["list"][0]["db_password"][0], "[redacted:password]");
}
