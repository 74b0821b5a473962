//! What must hold for any text that is written down.

use anyhook_run::redact::{self, Clean};
use serde_json::{Value, json};

pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let clean = redact::text(&text).unwrap_or_else(|| text.to_string());

    // A key is hidden wherever it stands as a word of its own.
    let key = ["gh", "p_", &"a1".repeat(18)].concat();
    let around = format!("{text} {key}\n{text}");
    let hidden = redact::text(&around).unwrap_or(around);
    assert!(!hidden.contains(&key), "{hidden}");

    // By its name, too, at any depth, and nothing else is lost.
    let secret = "correct horse battery";
    let value = json!({"text": text, "list": [{"db_password": [secret, text]}], "n": 1});
    let line = serde_json::to_string(&Clean::new(&value)).unwrap();
    assert!(!line.contains(secret), "{line}");
    let back: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(back["text"], clean);
    assert_eq!(back["n"], 1);
    assert_eq!(back["list"][0]["db_password"][0], "[redacted:password]");
}
