//! The plain hook contract: `tool_name` and `tool_input` in, `decision` out.
//!
//! Names of tools and events come from the table of the pseudo-agent, which
//! serves callers that use the contract. A program gets more than that table
//! carries: every event, all data, and every field of a canonical answer.

use anyhook_agents::Adapter;
use anyhook_agents::payload::inferred_calls;
use anyhook_model::event::field;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{HookEvent, Loss, Matcher, matches};
use serde_json::{Map, Value};

use super::canonical::parse_answer_with_fields;
use super::{Dialect, ParsedAnswer, Payload, ProgramOutput};

pub(super) struct ContractDialect<'a> {
    /// The hook's.
    pub matcher: Option<&'a Matcher>,
}

impl Dialect for ContractDialect<'_> {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let inferred = inferred_calls(event);
        if inferred.is_empty() {
            return Ok(vec![encode_call(event)?]);
        }
        let mut itself = event.clone();
        itself.data.shift_remove(field::TOOL_KINDS);
        let mut payloads = Vec::new();
        if matches(self.matcher, &itself) {
            payloads.push(encode_call(event)?);
        }
        for call in inferred {
            if matches(self.matcher, &call) {
                payloads.push(Payload {
                    call: Some(call.clone()),
                    ..encode_call(&call)?
                });
            }
        }
        Ok(payloads)
    }

    fn parse_answer(&self, _event: &HookEvent, output: ProgramOutput<'_>) -> ParsedAnswer {
        let mut read = parse_answer_with_fields(output.stdout, &["message", "lint_command"]);
        let response = &mut read.response;
        if let Some(Value::String(message)) = response.extra.shift_remove("message") {
            response.system_message.get_or_insert(message);
        }
        if let Some(command) = response.extra.shift_remove("lint_command") {
            if let Some(command) = command.as_str().filter(|it| !it.trim().is_empty()) {
                let suggestion =
                    format!("A hook suggests this command (it was not run): {command}");
                for text in [&mut response.context, &mut response.system_message] {
                    *text = Some(match text.take() {
                        Some(before) => format!("{before}\n{suggestion}"),
                        None => suggestion.clone(),
                    });
                }
            }
            response.metadata.insert("lint_command".to_owned(), command);
        }
        read
    }
}

fn encode_call(event: &HookEvent) -> Result<Payload, String> {
    let table = anyhook_agents::get_for_run(NeutralDialect::Contract.as_str())
        .ok_or("its table cannot be read")?;
    let lifecycle = table
        .event_for(&event.event, None)
        .and_then(|event| event.payload_name.as_deref());
    let tool = event.tool_name().filter(|_| lifecycle.is_none());
    let (name, input) = if let Some(tool) = tool {
        tool_call(table, event, tool)
    } else {
        let name = lifecycle.unwrap_or(&event.event);
        (name.to_owned(), lifecycle_input(event))
    };
    let mut payload = Map::new();
    payload.insert("tool_name".to_owned(), name.into());
    payload.insert("tool_input".to_owned(), input.into());
    if tool.is_some() {
        for key in [field::TOOL_OUTPUT, field::STATUS, field::TOOL_CALL_ID] {
            if let Some(value) = event.data.get(key) {
                payload.insert(key.to_owned(), value.clone());
            }
        }
    }
    let mut stdin = serde_json::to_vec(&payload).map_err(|error| error.to_string())?;
    stdin.push(b'\n');
    let loss = Loss::new("metadata", "the contract has no place for it");
    Ok(Payload {
        stdin,
        env: Vec::new(),
        lost: (!event.metadata.is_empty())
            .then_some(loss)
            .into_iter()
            .collect(),
        ..Payload::default()
    })
}

/// The contract's tool for several edits at once, which agents name alike.
const MULTI_EDIT: &str = "MultiEdit";

fn tool_call(table: &Adapter, event: &HookEvent, tool: &str) -> (String, Map<String, Value>) {
    let mut input = event.tool_input().cloned().unwrap_or_default();
    let mut name = match table.tool_by_canonical(tool) {
        Some(row) => row.native.to_string(),
        None => event.native_tool_name().unwrap_or(tool).to_owned(),
    };
    if tool == "file_write"
        && let Some(content) = input.shift_remove("content")
    {
        input.insert("contents".to_owned(), content);
    }
    if tool == "file_edit" {
        let edits = input.get("edits").and_then(Value::as_array);
        let edits = edits.cloned().unwrap_or_default();
        let is_multiple = event
            .native_tool_name()
            .is_some_and(|native| native.eq_ignore_ascii_case(MULTI_EDIT));
        if edits.len() > 1 || is_multiple {
            MULTI_EDIT.clone_into(&mut name);
        } else if let [only] = edits.as_slice() {
            for (canonical, contract) in [("old", "old_string"), ("new", "new_string")] {
                if let Some(text) = only.get(canonical) {
                    input.insert(contract.to_owned(), text.clone());
                }
            }
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
        let [payload] = &ContractDialect { matcher: None }.encode(&event).unwrap()[..] else {
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
                tool("deferred", json!({})),
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
    fn message_and_lint_command_reach_the_user_and_the_model() {
        let stdout =
            r#"{"decision":"deny","reason":"no","message":"note","lint_command":"lint --fix"}"#;
        let read = ContractDialect { matcher: None }.parse_answer(
            &HookEvent::default(),
            ProgramOutput {
                stdout,
                stderr: "",
                exit: 0,
            },
        );
        assert!(read.response.is_deny());
        let suggestion = "A hook suggests this command (it was not run): lint --fix";
        let message = format!("note\n{suggestion}");
        assert_eq!(read.response.system_message, Some(message));
        assert_eq!(read.response.context.as_deref(), Some(suggestion));
        assert_eq!(
            read.response.metadata.get("lint_command"),
            Some(&json!("lint --fix"))
        );
        assert_eq!(read.warnings, Vec::<String>::new());
        assert!(read.error.is_none());
    }
}
