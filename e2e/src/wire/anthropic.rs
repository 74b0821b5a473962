//! Anthropic Messages: `POST …/v1/messages`, streamed or not.

use serde_json::{Value, json};

use super::{
    FakeUsage, HttpAnswer, ModelRequest, TurnCounter, call_id, content_text, items, str_member,
    typed_event,
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
        let calls =
            items(message, "content").filter(|block| str_member(block, "type") == "tool_use");
        counter.add(calls.map(|block| str_member(block, "id")));
    }
    ModelRequest {
        turns: counter.turns,
        user_text: user_text.join("\n"),
        tools: items(body, "tools")
            .map(|tool| str_member(tool, "name").to_owned())
            .collect(),
        schema: body
            .pointer("/output_config/format/schema")
            .or_else(|| body.pointer("/output_format/schema"))
            .cloned(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
    }
}

/// A block of the answer: whole, and as a stream begins and continues it.
struct Block {
    full: Value,
    opening: Value,
    delta: Value,
}

pub(super) fn render_reply(
    reply: &Reply,
    request: &ModelRequest,
    body: &Value,
    serial: usize,
) -> HttpAnswer {
    let (blocks, stop) = match reply {
        Reply::Fail { status, message } => {
            return HttpAnswer::Json(
                *status,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}),
            );
        }
        Reply::Say(text) => (
            vec![Block {
                full: json!({"type": "text", "text": text}),
                opening: json!({"type": "text", "text": ""}),
                delta: json!({"type": "text_delta", "text": text}),
            }],
            "end_turn",
        ),
        Reply::Calls(calls) => {
            let blocks = calls.iter().enumerate().map(|(index, call)| {
                let input = match &call.input {
                    ToolInput::Json(value) => value.clone(),
                    ToolInput::Text(text) => json!({ "input": text }),
                };
                let block = |input: &Value| json!({"type": "tool_use", "id": call_id(serial, index), "name": call.name, "input": input});
                Block {
                    full: block(&input),
                    opening: block(&json!({})),
                    delta: json!({"type": "input_json_delta", "partial_json": input.to_string()}),
                }
            });
            (blocks.collect(), "tool_use")
        }
    };
    let FakeUsage {
        input,
        cached,
        output,
    } = FakeUsage::of_request(serial);
    let message = |content: Value, stop: Value| {
        json!({
            "id": format!("msg_{serial:04}"), "type": "message", "role": "assistant",
            "model": str_member(body, "model"), "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": input - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": output},
        })
    };
    if !request.stream {
        let content = blocks.into_iter().map(|block| block.full).collect();
        return HttpAnswer::Json(200, message(content, json!(stop)));
    }
    let mut events =
        vec![json!({"type": "message_start", "message": message(json!([]), Value::Null)})];
    for (index, block) in blocks.into_iter().enumerate() {
        events.extend([
            json!({"type": "content_block_start", "index": index, "content_block": block.opening}),
            json!({"type": "content_block_delta", "index": index, "delta": block.delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]);
    }
    events.extend([
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": output}}),
        json!({"type": "message_stop"}),
    ]);
    HttpAnswer::Events(events.iter().map(typed_event).collect())
}
