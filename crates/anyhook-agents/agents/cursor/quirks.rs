//! Cursor cuts `//` out of its config even inside texts, has different keys for
//! edits, counts how often a stop was refused, and applies only some keys of a
//! rewrite.

use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, HookResponse, Loss};
use serde_json::{Map, Value, json};

use crate::Quirks;
use crate::quirks::{ALREADY_HAPPENED, decode_file_edits, encode_file_edits, feedback};
use crate::respond::{RenderedAnswer, stuck_rewrite_reason};

pub(super) struct CursorQuirks;

pub(super) static QUIRKS: CursorQuirks = CursorQuirks;

/// Tools outside the vocabulary of which one key can be rewritten.
const PATH_TOOLS: &[&str] = &["Delete", "List", "ReadLints"];

impl Quirks for CursorQuirks {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        match event.native_event.as_str() {
            "afterFileEdit" => decode_edit(payload, event),
            "stop" | "subagentStop" => {
                if let Some(count) = payload.get("loop_count").and_then(Value::as_u64) {
                    let is_active = json!(count > 0);
                    event.data.insert(field::STOP_HOOK_ACTIVE.into(), is_active);
                }
            }
            _ => {}
        }
    }

    fn encoded(&self, event: &HookEvent, payload: &mut Value) {
        if event.source == "cursor" {
            return;
        }
        let native = payload.get("hook_event_name").and_then(Value::as_str);
        let added = match native {
            Some("afterFileEdit") => encode_file_edits(event),
            Some("stop" | "subagentStop") => {
                let active = event.data.get(field::STOP_HOOK_ACTIVE) == Some(&json!(true));
                json!({"status": "completed", "loop_count": u8::from(active)})
            }
            _ => return,
        };
        if let (Value::Object(payload), Value::Object(added)) = (payload, added) {
            payload.extend(added);
        }
    }

    fn rendered(&self, event: &HookEvent, response: &HookResponse, rendered: &mut RenderedAnswer) {
        match event.native_event.as_str() {
            "preToolUse" => deny_stuck_rewrite(event, rendered),
            "postToolUse" | "postToolUseFailure" => answer_feedback(response, rendered),
            _ => {}
        }
    }

    fn config_text(&self, text: String) -> String {
        escape_slashes(&text)
    }
}

/// Cursor applies no rewrite to a tool that the table does not know: a rewrite
/// that would be dropped silently becomes a deny.
fn deny_stuck_rewrite(event: &HookEvent, rendered: &mut RenderedAnswer) {
    let name = event.native_tool_name();
    let Some(name) = name.filter(|name| !name.starts_with("MCP:")) else {
        return;
    };
    let row = crate::get("cursor").and_then(|cursor| cursor.tool_by_native(name, None));
    let known = row.is_some_and(|row| row.rewritable.is_some());
    let answer: Value = serde_json::from_str(&rendered.stdout).unwrap_or_default();
    let input = answer.get("updated_input").and_then(Value::as_object);
    let mut keys = input.into_iter().flat_map(Map::keys);
    let stuck = keys.find(|key| !(PATH_TOOLS.contains(&name) && *key == "file_path"));
    let Some(key) = stuck.filter(|_| !known) else {
        return;
    };
    let why = format!("Cursor does not change `{key}` of `{name}`");
    let reason = stuck_rewrite_reason(&why);
    let deny = json!({"permission": "deny", "user_message": reason, "agent_message": reason});
    rendered.stdout = format!("{deny}\n");
    let loss = Loss::new("updated_input", format!("{why}; denied instead"));
    rendered.lost.push(loss);
    rendered.effect = vec!["blocked; the model sees the reason".into()];
}

fn answer_feedback(response: &HookResponse, rendered: &mut RenderedAnswer) {
    if let Some(text) = feedback(response) {
        rendered.stdout = format!("{}\n", json!({ "additional_context": text }));
        rendered.effect = vec![ALREADY_HAPPENED.into()];
    }
}

fn decode_edit(payload: &Value, event: &mut HookEvent) {
    decode_file_edits(payload, event);
    let native = event.metadata.entry(NATIVE).or_insert_with(|| json!({}));
    for key in ["file_path", "edits"] {
        if let (Value::Object(native), Some(value)) = (&mut *native, payload.get(key)) {
            native.insert(key.into(), value.clone());
        }
    }
}

/// Writes every `/` inside a text as `\/`, and a `*` after it as `\u002a`.
/// Comments and existing escapes are unchanged.
fn escape_slashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        match (quoted, letter) {
            (true, '\\') => {
                out.push(letter);
                out.extend(letters.next());
                continue;
            }
            (true, '/') => {
                out.push_str("\\/");
                if letters.next_if_eq(&'*').is_some() {
                    out.push_str("\\u002a");
                }
                continue;
            }
            (_, '"') => quoted = !quoted,
            (false, '/') => {
                out.push(letter);
                copy_comment(&mut letters, &mut out);
                continue;
            }
            _ => {}
        }
        out.push(letter);
    }
    out
}

/// Copies the rest of a comment whose first `/` was read: a quote in it does not
/// start a text.
fn copy_comment(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let block = match letters.peek() {
        Some('/') => false,
        Some('*') => true,
        _ => return,
    };
    out.extend(letters.next());
    let mut before = ' ';
    for letter in letters.by_ref() {
        out.push(letter);
        if (!block && letter == '\n') || (block && before == '*' && letter == '/') {
            return;
        }
        before = letter;
    }
}

#[cfg(test)]
mod tests {
    use super::escape_slashes;

    #[test]
    fn only_slashes_inside_texts_are_escaped() {
        for (written, expected) in [
            (r#"{"a": "http://x/y"}"#, r#"{"a": "http:\/\/x\/y"}"#),
            (r#"{"a": "\/\/"}"#, r#"{"a": "\/\/"}"#),
            (r#"{"a": "\\/"}"#, r#"{"a": "\\\/"}"#),
            (r#"{"a": "say \"hi/\""}"#, r#"{"a": "say \"hi\/\""}"#),
            (
                "{ // it's \"a/b\"\n\"a\": \"/\" /* \"/ */}",
                "{ // it's \"a/b\"\n\"a\": \"\\/\" /* \"/ */}",
            ),
        ] {
            assert_eq!(escape_slashes(written), expected);
        }
    }
}
