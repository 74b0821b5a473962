//! Secrets do not reach the journal, and ordinary texts reach it as they are.
//!
//! The corpora are those of the unit tests; each row goes through the real binary, in
//! five places of a payload.

use anyhook_testkit::Scratch;
use serde_json::{Value, json};

use crate::support::anyhook;

const SECRETS: &str = include_str!("../../../anyhook-run/tests/redaction/secrets.txt");
const FORMS: &str = include_str!("../../../anyhook-run/tests/redaction/forms.txt");
const HARMLESS: &str = include_str!("../../../anyhook-run/tests/redaction/harmless.txt");

/// The rows of a corpus. Keys are split by dots, so that scanners for leaked keys ignore
/// the file.
fn rows(corpus: &str) -> Vec<String> {
    let lines = corpus.lines();
    let lines = lines.filter(|line| !line.starts_with("# ") && !line.is_empty());
    lines
        .map(|line| line.replace('·', "").replace('⏎', "\n"))
        .collect()
}

/// A text without the marks around its secrets, and the secrets.
fn marked(row: &str) -> (String, Vec<String>) {
    let text = row.replace(['«', '»'], "");
    let parts = row.split('«').skip(1);
    let mut secrets: Vec<String> = parts
        .filter_map(|part| Some(part.split_once('»')?.0.to_owned()))
        .collect();
    if secrets.is_empty() {
        secrets.push(text.clone());
    }
    (text, secrets)
}

/// Quotes and backslashes differ by how deep a text is nested.
fn without_escapes(text: &str) -> String {
    text.replace(['\\', '"'], "")
}

/// Whether twelve characters of a secret in a row are to be seen.
fn leaks(recorded: &str, secret: &str) -> bool {
    let recorded = without_escapes(recorded);
    secret.split('\n').any(|line| {
        let line: Vec<char> = without_escapes(line).chars().collect();
        let length = line.len().clamp(1, 12);
        line.windows(length)
            .any(|part| recorded.contains(&part.iter().collect::<String>()))
    })
}

/// A payload with the text in a command, an output, a prompt, a text within JSON and a file.
fn payload(scratch: &Scratch, text: &str) -> Value {
    let nested = json!({"note": text}).to_string();
    json!({
        "session_id": "s",
        "transcript_path": "/x.jsonl",
        "cwd": scratch.project(),
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": format!("echo {text} >> notes.txt")},
        "tool_response": {
            "stdout": format!("line one\n{text}\nline three"),
            "prompt": format!("please use {text} for this"),
            "content": [{"type": "text", "text": nested}],
            "file": {"content": format!("# settings\n\n{text}\n")},
            "data": serde_json::from_str(text).unwrap_or(Value::Null),
        },
    })
}

/// What the journal holds after one event with the text in it.
fn recorded(text: &str) -> Value {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let payload = payload(&scratch, text).to_string();
    let run = ["run", "--agent", "claude-code"];
    let output = anyhook(&scratch).run(run, &payload).unwrap();
    assert_eq!(output.exit, Some(0), "{output:?}");
    let journal = anyhook_run::record::journal::Journal::new(&scratch.state());
    let lines: Vec<Value> =
        anyhook_testkit::whole_lines(&journal.folder().join("events.jsonl")).unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.into_iter().next().unwrap()
}

fn leaking(rows: impl Iterator<Item = String>) -> Vec<String> {
    rows.filter_map(|row| {
        let (text, secrets) = marked(&row);
        let line = recorded(&text).to_string();
        assert!(
            line.contains("line one") && line.contains("# settings"),
            "{line}"
        );
        let is_leak = secrets.iter().any(|secret| leaks(&line, secret));
        is_leak.then(|| format!("{row}\n    {line}"))
    })
    .collect()
}

#[test]
fn no_kind_of_secret_reaches_the_journal() {
    let rows = rows(SECRETS);
    assert!(rows.len() >= 129, "{}", rows.len());
    let texts = rows.iter().map(|row| row.split_once(" | ").unwrap().1);
    let leaking = leaking(texts.map(str::to_owned));
    assert!(leaking.is_empty(), "{}", leaking.join("\n"));
}

#[test]
fn no_way_to_write_a_secret_brings_it_into_the_journal() {
    let rows = rows(FORMS);
    assert!(rows.len() >= 83, "{}", rows.len());
    let leaking = leaking(rows.into_iter());
    assert!(leaking.is_empty(), "{}", leaking.join("\n"));
}

#[test]
fn redaction_does_not_destroy_code_and_prose() {
    let rows = rows(HARMLESS);
    assert!(rows.len() >= 110, "{}", rows.len());
    let touched: Vec<String> = rows
        .iter()
        .map(|row| recorded(row).to_string())
        .filter(|line| line.contains("[redacted:"))
        .collect();
    assert!(touched.is_empty(), "{}", touched.join("\n"));
}

/// A long text is cut; the part of a token before the cut would still be a secret.
#[test]
fn no_part_of_a_token_stays_at_the_end_of_a_cut_text() {
    let token = ["gh", "p_", &"a1".repeat(18)].concat();
    let limit = anyhook_run::record::redact::MAX_TEXT_BYTES;
    let text = format!("{} {token} {}", "x".repeat(limit - 60), "y".repeat(9000));
    let line = recorded(&text).to_string();
    assert!(line.contains("[cut, "), "no text was cut");
    assert!(!line.contains("a1a1a1"), "a part of the token is recorded");
}
