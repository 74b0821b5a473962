//! OpenAI Responses: `POST …/responses`, streamed or not.

use serde_json::{Value, json};

use super::{Answer, Ask, items, said_in, text_of, typed_event};
use crate::script::Reply;
use crate::tools::Input;

pub fn read(body: &Value) -> Ask {
    let (mut turns, mut said) = (0, Vec::new());
    if let Some(text) = body.get("input").and_then(Value::as_str) {
        said.push(text.to_owned());
    }
    for item in items(body, "input") {
        match (text_of(item, "type"), text_of(item, "role")) {
            ("function_call" | "custom_tool_call", _) | ("message" | "", "assistant") => turns += 1,
            ("message" | "", "user") => said.push(said_in(item.get("content"))),
            _ => {}
        }
    }
    Ask {
        turns,
        said: said.join("\n"),
        tools: items(body, "tools")
            .map(|tool| text_of(tool, "name").to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        schema: body.pointer("/text/format/schema").cloned(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
    }
}

pub fn write(reply: &Reply, ask: &Ask, body: &Value, serial: usize) -> Answer {
    let (call_id, item_id) = (format!("call_{serial:04}"), format!("item_{serial:04}"));
    let mut events = Vec::new();
    let item = match reply {
        Reply::Fail { status, message } => {
            return Answer::Json(
                *status,
                json!({"error": {"message": message, "type": "invalid_request_error", "code": null, "param": null}}),
            );
        }
        Reply::Say(text) => {
            let item = |status: &str, content: Value| json!({"type": "message", "id": item_id, "role": "assistant", "status": status, "content": content});
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            let place = |kind: &str, key: &str, value: Value| json!({"type": kind, "item_id": item_id, "output_index": 0, "content_index": 0, key: value});
            events.extend([
                json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", json!([]))}),
                place("response.content_part.added", "part", part("")),
                place("response.output_text.delta", "delta", json!(text)),
                place("response.output_text.done", "text", json!(text)),
                place("response.content_part.done", "part", part(text)),
            ]);
            item("completed", json!([part(text)]))
        }
        Reply::Call(call) => match &call.input {
            Input::Json(arguments) => {
                let arguments = arguments.to_string();
                let item = |status: &str, arguments: &str| json!({"type": "function_call", "id": item_id, "call_id": call_id, "status": status, "name": call.name, "arguments": arguments});
                events.extend([
                    json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", "")}),
                    json!({"type": "response.function_call_arguments.delta", "item_id": item_id, "output_index": 0, "delta": arguments}),
                    json!({"type": "response.function_call_arguments.done", "item_id": item_id, "output_index": 0, "arguments": arguments}),
                ]);
                item("completed", &arguments)
            }
            Input::Text(text) => {
                let item = |status: &str, input: &str| json!({"type": "custom_tool_call", "id": item_id, "call_id": call_id, "status": status, "name": call.name, "input": input});
                events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", "")}));
                item("completed", text)
            }
        },
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": format!("resp_{serial:04}"), "object": "response", "created_at": 1_700_000_000, "status": status,
            "model": text_of(body, "model"), "output": output, "parallel_tool_calls": false, "tools": [], "usage": usage,
        })
    };
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    });
    let completed = response("completed", json!([item]), usage);
    if !ask.stream {
        return Answer::Json(200, completed);
    }
    events.insert(
        0,
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
    );
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": completed}));
    for (number, event) in events.iter_mut().enumerate() {
        if let Some(event) = event.as_object_mut() {
            event.insert("sequence_number".to_owned(), json!(number));
        }
    }
    Answer::Events(events.iter().map(typed_event).collect())
}
