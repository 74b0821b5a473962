//! OpenAI Chat Completions: `POST …/chat/completions`, streamed or not.

use serde_json::{Value, json};

use super::{Answer, Ask, items, said_in, text_of};
use crate::script::Reply;
use crate::tools::Input;

pub fn read(body: &Value) -> Ask {
    let of_role = |role: &'static str| {
        items(body, "messages").filter(move |message| text_of(message, "role") == role)
    };
    let said: Vec<String> = of_role("user")
        .map(|message| said_in(message.get("content")))
        .collect();
    Ask {
        turns: of_role("assistant").count(),
        said: said.join("\n"),
        tools: items(body, "tools")
            .filter_map(|tool| tool.get("function"))
            .map(|tool| text_of(tool, "name").to_owned())
            .collect(),
        schema: body.pointer("/response_format/json_schema/schema").cloned(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
    }
}

pub fn write(reply: &Reply, ask: &Ask, body: &Value, serial: usize) -> Answer {
    let (mut message, finish) = match reply {
        Reply::Fail { status, message } => {
            return Answer::Json(
                *status,
                json!({"error": {"message": message, "type": "invalid_request_error", "code": null, "param": null}}),
            );
        }
        Reply::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Reply::Call(call) => {
            let arguments = match &call.input {
                Input::Json(value) => value.to_string(),
                Input::Text(text) => json!({ "input": text }).to_string(),
            };
            let tool_call = json!({
                "index": 0, "id": format!("call_{serial:04}"), "type": "function",
                "function": {"name": call.name, "arguments": arguments},
            });
            (
                json!({"role": "assistant", "content": null, "tool_calls": [tool_call]}),
                "tool_calls",
            )
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let envelope = |kind: &str, choices: Value, usage: &Value| {
        json!({
            "id": format!("chatcmpl-{serial:04}"), "object": kind, "created": 1_700_000_000,
            "model": text_of(body, "model"), "choices": choices, "usage": usage,
        })
    };
    if ask.stream {
        let chunk = |choices, usage: &Value| {
            (
                None,
                envelope("chat.completion.chunk", choices, usage).to_string(),
            )
        };
        return Answer::Events(vec![
            chunk(
                json!([{"index": 0, "delta": message, "finish_reason": null}]),
                &Value::Null,
            ),
            chunk(
                json!([{"index": 0, "delta": {}, "finish_reason": finish}]),
                &Value::Null,
            ),
            chunk(json!([]), &usage),
            (None, "[DONE]".to_owned()),
        ]);
    }
    if let Some(call) = message
        .pointer_mut("/tool_calls/0")
        .and_then(Value::as_object_mut)
    {
        call.remove("index");
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    Answer::Json(200, envelope("chat.completion", choices, &usage))
}
