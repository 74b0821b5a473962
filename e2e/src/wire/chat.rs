//! OpenAI Chat Completions: `POST …/chat/completions`, streamed or not.

use serde_json::{Value, json};

use super::{
    FakeUsage, HttpAnswer, ModelRequest, TurnCounter, call_id, content_text, items, str_member,
};
use crate::script::Reply;
use crate::tools::ToolInput;

pub(super) fn parse_request(body: &Value) -> ModelRequest {
    let with_role = |role: &'static str| {
        items(body, "messages").filter(move |message| str_member(message, "role") == role)
    };
    let user_text: Vec<String> = with_role("user")
        .map(|message| content_text(message.get("content")))
        .collect();
    let mut counter = TurnCounter::default();
    for message in with_role("assistant") {
        counter.add(items(message, "tool_calls").map(|call| str_member(call, "id")));
    }
    ModelRequest {
        turns: counter.turns,
        user_text: user_text.join("\n"),
        tools: items(body, "tools")
            .filter_map(|tool| tool.get("function").or_else(|| tool.get("custom")))
            .map(|tool| str_member(tool, "name").to_owned())
            .collect(),
        schema: body.pointer("/response_format/json_schema/schema").cloned(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
    }
}

pub(super) fn render_reply(
    reply: &Reply,
    request: &ModelRequest,
    body: &Value,
    serial: usize,
) -> HttpAnswer {
    let (mut message, finish) = match reply {
        Reply::Fail { status, message } => {
            return HttpAnswer::Json(
                *status,
                json!({"error": {"message": message, "type": "invalid_request_error", "code": null, "param": null}}),
            );
        }
        Reply::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Reply::Calls(calls) => {
            let calls = calls.iter().enumerate().map(|(index, call)| {
                let id = call_id(serial, index);
                match &call.input {
                    ToolInput::Json(value) => json!({
                        "index": index, "id": id, "type": "function",
                        "function": {"name": call.name, "arguments": value.to_string()},
                    }),
                    ToolInput::Text(text) => json!({
                        "index": index, "id": id, "type": "custom",
                        "custom": {"name": call.name, "input": text},
                    }),
                }
            });
            let calls: Vec<Value> = calls.collect();
            (
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                "tool_calls",
            )
        }
    };
    let tokens = FakeUsage::of_request(serial);
    let usage = json!({
        "prompt_tokens": tokens.input, "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens": tokens.output, "total_tokens": tokens.total(),
    });
    let envelope = |kind: &str, choices: Value, usage: &Value| {
        json!({
            "id": format!("chatcmpl-{serial:04}"), "object": kind, "created": 1_700_000_000,
            "model": str_member(body, "model"), "choices": choices, "usage": usage,
        })
    };
    if request.stream {
        let chunk = |choices, usage: &Value| {
            (
                None,
                envelope("chat.completion.chunk", choices, usage).to_string(),
            )
        };
        return HttpAnswer::Events(vec![
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
    for call in message
        .pointer_mut("/tool_calls")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        call.remove("index");
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    HttpAnswer::Json(200, envelope("chat.completion", choices, &usage))
}
