//! The plain hook contract: `tool_name` and `tool_input` in, `decision` out,
//! with tool names of its own.

use anyhook_model::event::field;
use anyhook_model::{HookEvent, Loss};
use serde_json::{Map, Value};

use super::canonical::read_answer;
use super::{Dialect, Payload, Read};

pub struct Contract;

/// Canonical tools by the contract's names.
const TOOLS: [(&str, &str); 9] = [
    ("shell", "Shell"),
    ("file_read", "Read"),
    ("file_write", "Write"),
    ("file_edit", "Edit"),
    ("search", "Grep"),
    ("find", "Glob"),
    ("web_search", "WebSearch"),
    ("web_fetch", "WebFetch"),
    ("agent", "Task"),
];

/// Canonical events that stand in the place of a tool.
const LIFECYCLE: [(&str, &str); 5] = [
    ("session_start", "SessionStart"),
    ("before_prompt", "beforeSubmitPrompt"),
    ("agent_stop", "Stop"),
    ("before_compact", "PreCompact"),
    ("session_end", "SessionEnd"),
];

fn named<'a>(table: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let row = table.iter().find(|(canonical, _)| *canonical == name);
    row.map(|(_, contract)| *contract)
}

impl Dialect for Contract {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let mut payload = Map::new();
        match event.tool_name() {
            Some(tool) if named(&LIFECYCLE, &event.event).is_none() => {
                let input = event.tool_input().cloned().unwrap_or_default();
                let (name, input) = tool_call(event, tool, input);
                payload.insert("tool_name".to_owned(), name.into());
                payload.insert("tool_input".to_owned(), input.into());
                for key in [field::TOOL_OUTPUT, field::STATUS, field::TOOL_CALL_ID] {
                    if let Some(value) = event.data.get(key) {
                        payload.insert(key.to_owned(), value.clone());
                    }
                }
            }
            _ => {
                let name = named(&LIFECYCLE, &event.event).unwrap_or(&event.event);
                payload.insert("tool_name".to_owned(), name.into());
                payload.insert("tool_input".to_owned(), lifecycle_input(event).into());
            }
        }
        let mut stdin = serde_json::to_vec(&payload).map_err(|error| error.to_string())?;
        stdin.push(b'\n');
        let lost = if event.metadata.is_empty() {
            Vec::new()
        } else {
            vec![Loss::new("metadata", "the contract has no place for it")]
        };
        Ok(vec![Payload {
            stdin,
            env: Vec::new(),
            lost,
        }])
    }

    fn read(&self, _event: &HookEvent, stdout: &[u8], _stderr: &[u8], _exit: Option<i32>) -> Read {
        let mut read = read_answer(&String::from_utf8_lossy(stdout));
        // These two are the contract's own; the reader took them for mistakes.
        read.warnings.retain(|warning| {
            !warning.starts_with("`message`") && !warning.starts_with("`lint_command`")
        });
        let response = &mut read.response;
        if let Some(Value::String(message)) = response.extra.shift_remove("message") {
            response.system_message.get_or_insert(message);
        }
        if let Some(command) = response.extra.shift_remove("lint_command") {
            response.metadata.insert("lint_command".to_owned(), command);
        }
        read
    }
}

fn tool_call(
    event: &HookEvent,
    tool: &str,
    mut input: Map<String, Value>,
) -> (String, Map<String, Value>) {
    let native = || event.native_tool_name().unwrap_or(tool).to_owned();
    let mut name = named(&TOOLS, tool).map_or_else(native, str::to_owned);
    if tool == "file_write"
        && let Some(content) = input.shift_remove("content")
    {
        input.insert("contents".to_owned(), content);
    }
    if tool == "file_edit" {
        let edits = input.get("edits").and_then(Value::as_array);
        let edits = edits.cloned().unwrap_or_default();
        if let [only] = edits.as_slice() {
            for (canonical, contract) in [("old", "old_string"), ("new", "new_string")] {
                if let Some(text) = only.get(canonical) {
                    input.insert(contract.to_owned(), text.clone());
                }
            }
        } else if edits.len() > 1 {
            "MultiEdit".clone_into(&mut name);
        }
    }
    (name, input)
}

fn lifecycle_input(event: &HookEvent) -> Map<String, Value> {
    let mut input = Map::new();
    for (key, value) in [("session_id", &event.session_id), ("cwd", &event.cwd)] {
        if let Some(value) = value {
            input.insert(key.to_owned(), value.as_str().into());
        }
    }
    input.extend(event.data.clone());
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn encoded(event: Value) -> Value {
        let event: HookEvent = serde_json::from_value(event).unwrap();
        let [payload] = &Contract.encode(&event).unwrap()[..] else {
            panic!("one payload");
        };
        assert!(payload.stdin.ends_with(b"\n"));
        serde_json::from_slice(&payload.stdin).unwrap()
    }

    #[test]
    fn tools_and_lifecycle_by_the_contracts_names() {
        let tool = |name: &str, input: Value| {
            encoded(json!({"event": "before_tool_execute", "source": "x",
                "data": {"tool_name": name, "native_tool_name": "Native", "tool_input": input}}))
        };
        let cases = [
            (
                tool("shell", json!({"command": "ls"})),
                json!({"tool_name": "Shell", "tool_input": {"command": "ls"}}),
            ),
            (
                tool("file_write", json!({"path": "a", "content": "b"})),
                json!({"tool_name": "Write", "tool_input": {"path": "a", "contents": "b"}}),
            ),
            (
                tool(
                    "file_edit",
                    json!({"path": "a", "edits": [{"old": "1", "new": "2"}]}),
                ),
                json!({"tool_name": "Edit", "tool_input": {"path": "a", "edits": [{"old": "1", "new": "2"}], "old_string": "1", "new_string": "2"}}),
            ),
            (
                tool("file_edit", json!({"path": "a", "edits": [{}, {}]})),
                json!({"tool_name": "MultiEdit", "tool_input": {"path": "a", "edits": [{}, {}]}}),
            ),
            (
                tool("unheard", json!({})),
                json!({"tool_name": "Native", "tool_input": {}}),
            ),
            (
                encoded(
                    json!({"event": "before_prompt", "source": "x", "session_id": "s", "cwd": "/p", "data": {"prompt": "hi"}}),
                ),
                json!({"tool_name": "beforeSubmitPrompt", "tool_input": {"session_id": "s", "cwd": "/p", "prompt": "hi"}}),
            ),
            (
                encoded(
                    json!({"event": "agent_stop", "source": "x", "data": {"stop_hook_active": true}}),
                ),
                json!({"tool_name": "Stop", "tool_input": {"stop_hook_active": true}}),
            ),
        ];
        for (actual, expected) in cases {
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn message_and_lint_command_are_carried() {
        let stdout =
            br#"{"decision":"deny","reason":"no","message":"note","lint_command":"lint --fix"}"#;
        let read = Contract.read(&HookEvent::default(), stdout, b"", Some(0));
        assert!(read.response.is_deny());
        assert_eq!(read.response.system_message.as_deref(), Some("note"));
        assert_eq!(
            read.response.metadata.get("lint_command"),
            Some(&json!("lint --fix"))
        );
        assert_eq!(read.warnings, Vec::<String>::new());
        assert!(read.error.is_none());
    }
}
