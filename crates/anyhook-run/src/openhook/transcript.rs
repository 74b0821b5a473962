//! Token totals and the model, from an agent's transcript.
//!
//! Transcripts are private formats that change without notice, so this goes by
//! shape and is best effort: what is not recognised is ignored. Only counts and
//! model names are taken; the conversation is not read.

use std::collections::HashMap;

use serde_json::Value;

use super::machine::FileTail;

/// How much of a transcript is read for totals.
pub(crate) const MAX_TOTALS_BYTES: usize = 16 * 1024 * 1024;

/// How much of its end is read for the model alone.
pub(crate) const MAX_MODEL_BYTES: usize = 256 * 1024;

/// Tokens that the model read and wrote, including cached input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub input: u64,
    pub output: u64,
}

/// The totals of a session.
///
/// Some agents write running totals: the last one counts. Others write the usage
/// of each message, some several times: the last of each message counts, and a
/// sum needs the whole file.
pub(crate) fn totals(tail: &FileTail) -> Option<Tokens> {
    let mut running = None;
    let mut messages: HashMap<String, Tokens> = HashMap::new();
    let mut take = |value: &Value, nth: usize| {
        if let Some(tokens) = value
            .pointer("/payload/info/total_token_usage")
            .and_then(usage_tokens)
        {
            running = Some(tokens);
        } else if let Some(tokens) = message_tokens(value) {
            messages.insert(message_id(value).unwrap_or_else(|| nth.to_string()), tokens);
        }
    };
    for (nth, value) in records(tail, &["oken", "usage"]).enumerate() {
        match value.get("messages").and_then(Value::as_array) {
            // Older files are one object with all messages.
            Some(list) => list
                .iter()
                .enumerate()
                .for_each(|(nth, one)| take(one, nth)),
            None => take(&value, nth),
        }
    }
    if running.is_some() {
        return running;
    }
    if !tail.whole || messages.is_empty() {
        return None;
    }
    let sum = |part: fn(&Tokens) -> u64| messages.values().map(part).fold(0, u64::saturating_add);
    Some(Tokens {
        input: sum(|one| one.input),
        output: sum(|one| one.output),
    })
}

/// The model that was used last.
pub(crate) fn model(tail: &FileTail) -> Option<String> {
    let model_of = |value: &Value| {
        ["/message/model", "/payload/model", "/model"]
            .into_iter()
            .find_map(|at| value.pointer(at)?.as_str())
            // Messages of the client itself have a marked name.
            .filter(|name| !name.is_empty() && !name.starts_with('<'))
            .map(str::to_owned)
    };
    records(tail, &["\"model\""])
        .filter_map(|value| match value.get("messages") {
            Some(Value::Array(list)) => list.iter().rev().find_map(model_of),
            _ => model_of(&value),
        })
        .last()
}

/// The JSON objects of a transcript: one per line, or a single one. Lines without
/// any of the words are skipped unparsed.
fn records<'a>(tail: &'a FileTail, words: &'a [&str]) -> impl Iterator<Item = Value> + 'a {
    let one: Option<Value> = (tail.whole && !tail.bytes.starts_with(b"{\""))
        .then(|| serde_json::from_slice(&tail.bytes).ok())
        .flatten();
    let lines = if one.is_some() {
        &[]
    } else {
        tail.bytes.as_slice()
    };
    let lines = lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
        .filter(|line| words.iter().any(|word| line.contains(word)))
        .filter_map(|line| serde_json::from_str(line).ok());
    one.into_iter().chain(lines)
}

fn message_tokens(value: &Value) -> Option<Tokens> {
    if let Some(usage) = value.pointer("/message/usage") {
        return usage_tokens(usage);
    }
    if let Some(usage) = value.get("usageMetadata") {
        let input = count(usage, "promptTokenCount")?;
        let total = count(usage, "totalTokenCount").unwrap_or_default();
        let output = count(usage, "candidatesTokenCount").unwrap_or_default();
        return Some(Tokens {
            input,
            // Thoughts are in the total, and not always among the candidates.
            output: total.saturating_sub(input).max(output),
        });
    }
    let tokens = value.get("tokens")?;
    let part = |key| count(tokens, key).unwrap_or_default();
    Some(Tokens {
        input: count(tokens, "input")?.saturating_add(part("tool")),
        output: part("output").saturating_add(part("thoughts")),
    })
}

/// `input_tokens` and `output_tokens`. Cached input is either counted apart or,
/// under another name, included in the input.
fn usage_tokens(usage: &Value) -> Option<Tokens> {
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"]
        .into_iter()
        .filter_map(|key| count(usage, key))
        .fold(0, u64::saturating_add);
    Some(Tokens {
        input: count(usage, "input_tokens")?.saturating_add(cached),
        output: count(usage, "output_tokens")?,
    })
}

fn message_id(value: &Value) -> Option<String> {
    ["/message/id", "/requestId", "/id", "/uuid"]
        .into_iter()
        .find_map(|at| value.pointer(at)?.as_str())
        .map(str::to_owned)
}

fn count(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &str) -> FileTail {
        last_bytes(text, usize::MAX)
    }

    fn last_bytes(text: &str, limit: usize) -> FileTail {
        let from = text.len().saturating_sub(limit);
        FileTail {
            bytes: text.as_bytes()[from..].to_vec(),
            whole: from == 0,
        }
    }

    fn sum(text: &str) -> Option<(u64, u64)> {
        totals(&tail(text)).map(|tokens| (tokens.input, tokens.output))
    }

    #[test]
    fn a_message_that_is_written_twice_counts_once() {
        let text = r#"{"type":"user","message":{"role":"user","content":"usage"}}
{"type":"assistant","requestId":"r1","message":{"id":"m1","model":"claude-a","usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}}
{"type":"assistant","requestId":"r1","message":{"id":"m1","model":"claude-a","usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":7}}}
{"type":"assistant","requestId":"r2","message":{"id":"m2","model":"claude-b","usage":{"input_tokens":2,"output_tokens":5}}}
{"type":"assistant","message":{"id":"m3","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0}}}
"#;
        assert_eq!(sum(text), Some((115, 12)));
        assert_eq!(model(&tail(text)).as_deref(), Some("claude-b"));
    }

    #[test]
    fn running_totals_need_only_the_end() {
        let text = r#"{"type":"turn_context","payload":{"model":"gpt-5.5"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"total_tokens":15}}}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"cached_input_tokens":9,"output_tokens":8,"total_tokens":38}}}}
{"type":"event_msg","payload":{"type":"token_count","info":null}}
"#;
        assert_eq!(sum(text), Some((30, 8)));
        assert_eq!(model(&tail(text)).as_deref(), Some("gpt-5.5"));
        let end = last_bytes(text, 300);
        assert!(!end.whole);
        assert_eq!(totals(&end), totals(&tail(text)));
    }

    #[test]
    fn chats_by_line_and_in_one_object() {
        let lines = r#"{"sessionId":"s","kind":"main"}
{"id":"1","type":"user","content":"tokens"}
{"id":"2","type":"gemini","model":"gemini-3","tokens":{"input":10,"output":2,"cached":5,"thoughts":3,"tool":1,"total":16}}
{"id":"2","type":"gemini","model":"gemini-3","tokens":{"input":10,"output":4,"cached":5,"thoughts":3,"tool":1,"total":18}}
"#;
        assert_eq!(sum(lines), Some((11, 7)));
        assert_eq!(model(&tail(lines)).as_deref(), Some("gemini-3"));
        let whole = r#"{
  "sessionId": "s",
  "messages": [
    {"id": "1", "type": "user"},
    {"id": "2", "type": "gemini", "model": "gemini-2", "tokens": {"input": 1, "output": 2, "total": 3}},
    {"id": "3", "type": "gemini", "model": "gemini-3", "tokens": {"input": 4, "output": 5, "total": 9}}
  ]
}"#;
        assert_eq!(sum(whole), Some((5, 7)));
        assert_eq!(model(&tail(whole)).as_deref(), Some("gemini-3"));
        let usage = r#"{"uuid":"a","type":"assistant","model":"qwen3","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":17}}"#;
        assert_eq!(sum(usage), Some((10, 7)));
    }

    #[test]
    fn a_partial_sum_is_not_reported() {
        let line = r#"{"message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}"#;
        let text = format!("{line}\n{line}\n");
        assert_eq!(totals(&last_bytes(&text, 80)), None);
        assert_eq!(sum(""), None);
        assert_eq!(sum("\u{0}\n{\"tokens\":3}\n[1]\n"), None);
    }
}
