//! Cursor cuts `//` out of its config even inside texts, tells edits with keys
//! of its own, counts how often a stop was refused, and takes over only some
//! keys of a rewrite.

use anyhook_model::event::{NATIVE, field};
use anyhook_model::{Decision, HookEvent, HookResponse, Loss};
use serde_json::{Map, Value, json};

use crate::Quirks;
use crate::respond::Rendered;

pub struct Cursor;

pub static QUIRKS: Cursor = Cursor;

/// Tools outside the vocabulary of which one key can be rewritten.
const PATH_TOOLS: &[&str] = &["Delete", "List", "ReadLints"];

impl Quirks for Cursor {
    fn decoded(&self, payload: &Value, event: &mut HookEvent) {
        match event.native_event.as_str() {
            "afterFileEdit" => decode_edit(payload, event),
            "stop" | "subagentStop" => {
                if let Some(count) = payload.get("loop_count").and_then(Value::as_u64) {
                    event
                        .data
                        .insert(field::STOP_HOOK_ACTIVE.into(), json!(count > 0));
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
            Some("afterFileEdit") => encode_edit(event),
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

    fn rendered(&self, event: &HookEvent, response: &HookResponse, rendered: &mut Rendered) {
        match event.native_event.as_str() {
            "preToolUse" => deny_stuck_rewrite(event, rendered),
            "postToolUse" | "postToolUseFailure" => tell_reason(response, rendered),
            _ => {}
        }
    }

    fn config_text(&self, text: String) -> String {
        escape_slashes(&text)
    }
}

/// Of a tool that the table does not know nothing is taken over: a rewrite
/// that would be dropped without a word becomes a deny.
fn deny_stuck_rewrite(event: &HookEvent, rendered: &mut Rendered) {
    let Some(name) = event
        .native_tool_name()
        .filter(|name| !name.starts_with("MCP:"))
    else {
        return;
    };
    let known = crate::get("cursor").is_some_and(|cursor| {
        cursor
            .tool_by_native(name, None)
            .is_some_and(|row| row.rewritable.is_some())
    });
    let stuck = serde_json::from_str::<Value>(&rendered.stdout)
        .ok()
        .and_then(|answer| answer.get("updated_input")?.as_object().cloned())
        .and_then(|input| {
            input
                .keys()
                .find(|key| !(PATH_TOOLS.contains(&name) && *key == "file_path"))
                .cloned()
        });
    let Some(key) = stuck.filter(|_| !known) else {
        return;
    };
    let why = format!("Cursor does not change `{key}` of `{name}`");
    let reason = format!("A hook changes the input of this call, and {why}; it is denied instead.");
    rendered.stdout = format!(
        "{}\n",
        json!({"permission": "deny", "user_message": reason, "agent_message": reason})
    );
    rendered
        .lost
        .push(Loss::new("updated_input", format!("{why}; denied instead")));
    rendered.effect = vec!["it does not happen; the model reads the reason".into()];
}

/// What has happened cannot be denied, but the model can be told why it should
/// not have.
fn tell_reason(response: &HookResponse, rendered: &mut Rendered) {
    let Some(reason) = response
        .reason
        .as_deref()
        .filter(|_| response.decision == Some(Decision::Deny))
    else {
        return;
    };
    let words: Vec<&str> = std::iter::once(reason)
        .chain(response.context.as_deref())
        .collect();
    rendered.stdout = format!("{}\n", json!({"additional_context": words.join("\n\n")}));
    rendered.effect = vec!["it has happened; the model reads the reason".into()];
}

fn decode_edit(payload: &Value, event: &mut HookEvent) {
    let edits: Vec<Value> = payload
        .get("edits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|edit| json!({"old": edit.get("old_string"), "new": edit.get("new_string")}))
        .collect();
    let mut input = Map::new();
    input.insert(
        "path".into(),
        payload.get("file_path").cloned().unwrap_or_default(),
    );
    // One edit of nothing is the making of a file.
    let content = match edits.as_slice() {
        [one] if one.get("old") == Some(&json!("")) => one.get("new").cloned(),
        _ => None,
    };
    let name = if let Some(content) = content {
        input.insert("content".into(), content);
        "file_write"
    } else {
        input.insert("edits".into(), Value::Array(edits));
        "file_edit"
    };
    event.data.insert(field::TOOL_NAME.into(), json!(name));
    event.data.insert(
        crate::payload::TOOL_KINDS.into(),
        json!(["file_write", "file_edit"]),
    );
    event
        .data
        .insert(field::TOOL_INPUT.into(), Value::Object(input));
    let native = event
        .metadata
        .entry(NATIVE)
        .or_insert_with(|| Value::Object(Map::new()));
    for key in ["file_path", "edits"] {
        if let (Value::Object(native), Some(value)) = (&mut *native, payload.get(key)) {
            native.insert(key.into(), value.clone());
        }
    }
}

fn encode_edit(event: &HookEvent) -> Value {
    let input = event.tool_input().cloned().unwrap_or_default();
    let edits = match input.get("content") {
        Some(content) => vec![json!({"old_string": "", "new_string": content})],
        None => input
            .get("edits")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|edit| json!({"old_string": edit.get("old"), "new_string": edit.get("new")}))
            .collect(),
    };
    json!({"file_path": input.get("path"), "edits": edits})
}

/// Every `/` inside a text as `\/`, and a `*` behind it as `\u002a`; comments
/// and what is escaped stay.
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

/// The rest of a comment whose first `/` was read: a quote in it is no text.
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
