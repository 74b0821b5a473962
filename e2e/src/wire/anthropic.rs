//! Anthropic Messages: `POST …/v1/messages`, streamed or not.

use serde_json::{Value, json};

use super::{Answer, Ask, items, said_in, text_of, typed_event};
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
            .map(|tool| text_of(tool, "name").to_owned())
            .collect(),
        schema: body
            .pointer("/output_config/format/schema")
            .or_else(|| body.pointer("/output_format/schema"))
            .cloned(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
    }
}

pub fn write(reply: &Reply, ask: &Ask, body: &Value, serial: usize) -> Answer {
    let (full, opening, delta, stop) = match reply {
        Reply::Fail { status, message } => {
            return Answer::Json(
                *status,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}),
            );
        }
        Reply::Say(text) => (
            json!({"type": "text", "text": text}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        Reply::Call(call) => {
            let input = match &call.input {
                Input::Json(value) => value.clone(),
                Input::Text(text) => json!({ "input": text }),
            };
            let block = |input: &Value| json!({"type": "tool_use", "id": format!("toolu_{serial:04}"), "name": call.name, "input": input});
            (
                block(&input),
                block(&json!({})),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
                "tool_use",
            )
        }
    };
    let message = |content: Value, stop: Value| {
        json!({
            "id": format!("msg_{serial:04}"), "type": "message", "role": "assistant",
            "model": text_of(body, "model"), "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        })
    };
    if !ask.stream {
        return Answer::Json(200, message(json!([full]), json!(stop)));
    }
    let events = [
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": opening}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    Answer::Events(events.iter().map(typed_event).collect())
}
