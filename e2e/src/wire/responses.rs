//! OpenAI Responses: `POST …/responses`, streamed or not.

use serde_json::{Value, json};

use super::{
    FakeUsage, HttpAnswer, ModelRequest, TurnCounter, call_id, content_text, items, str_member,
    typed_event,
};
use crate::script::Reply;
use crate::tools::{Call, ToolInput};

pub(super) fn parse_request(body: &Value) -> ModelRequest {
    let (mut counter, mut user_text) = (TurnCounter::default(), Vec::new());
    if let Some(text) = body.get("input").and_then(Value::as_str) {
        user_text.push(text.to_owned());
    }
    let mut tools = Vec::new();
    collect_tools(body, &mut tools);
    for item in items(body, "input") {
        match (str_member(item, "type"), str_member(item, "role")) {
            ("function_call" | "custom_tool_call", _) => {
                counter.add([str_member(item, "call_id")].into_iter());
            }
            ("message" | "", "assistant") => counter.add([].into_iter()),
            ("message" | "", "user") => user_text.push(content_text(item.get("content"))),
            // The task of a sub-agent; a model of one's own gets it as plain text.
            ("agent_message", _) => user_text.extend(
                items(item, "content").map(|part| str_member(part, "encrypted_content").to_owned()),
            ),
            // Some models get their tools as an item.
            ("additional_tools", _) => collect_tools(item, &mut tools),
            _ => {}
        }
    }
    ModelRequest {
        turns: counter.turns,
        user_text: user_text.join("\n"),
        tools,
        schema: body.pointer("/text/format/schema").cloned(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
    }
}

/// Adds the names of the tools of a request or an item, also of those inside a namespace.
fn collect_tools(holder: &Value, names: &mut Vec<String>) {
    for tool in items(holder, "tools") {
        if str_member(tool, "type") == "namespace" {
            collect_tools(tool, names);
        } else if !str_member(tool, "name").is_empty() {
            names.push(str_member(tool, "name").to_owned());
        }
    }
}

/// An item of the answer, and the events that lead up to it in a stream.
struct Item {
    events: Vec<Value>,
    full: Value,
}

fn message_item(text: &str, serial: usize) -> Item {
    let id = format!("item_{serial:04}");
    let item = |status: &str, content: Value| json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let place = |kind: &str, key: &str, value: Value| json!({"type": kind, "item_id": id, "output_index": 0, "content_index": 0, key: value});
    Item {
        events: vec![
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", json!([]))}),
            place("response.content_part.added", "part", part("")),
            place("response.output_text.delta", "delta", json!(text)),
            place("response.output_text.done", "text", json!(text)),
            place("response.content_part.done", "part", part(text)),
        ],
        full: item("completed", json!([part(text)])),
    }
}

fn call_item(call: &Call, serial: usize, index: usize) -> Item {
    let (id, call_id) = (format!("item_{serial:04}x{index}"), call_id(serial, index));
    let mut rendered = match &call.input {
        ToolInput::Json(arguments) => {
            let arguments = arguments.to_string();
            let item = |status: &str, arguments: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "status": status, "name": call.name, "arguments": arguments});
            Item {
                events: vec![
                    json!({"type": "response.output_item.added", "output_index": index, "item": item("in_progress", "")}),
                    json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": arguments}),
                    json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": index, "arguments": arguments}),
                ],
                full: item("completed", &arguments),
            }
        }
        ToolInput::Text(text) => {
            let item = |status: &str, input: &str| json!({"type": "custom_tool_call", "id": id, "call_id": call_id, "status": status, "name": call.name, "input": input});
            Item {
                events: vec![
                    json!({"type": "response.output_item.added", "output_index": index, "item": item("in_progress", "")}),
                ],
                full: item("completed", text),
            }
        }
    };
    if let (Some(namespace), Some(item)) = (&call.namespace, rendered.full.as_object_mut()) {
        item.insert("namespace".to_owned(), json!(namespace));
    }
    rendered
}

pub(super) fn render_reply(
    reply: &Reply,
    request: &ModelRequest,
    body: &Value,
    serial: usize,
) -> HttpAnswer {
    let output = match reply {
        Reply::Fail { status, message } => {
            return HttpAnswer::Json(
                *status,
                json!({"error": {"message": message, "type": "invalid_request_error", "code": null, "param": null}}),
            );
        }
        Reply::Say(text) => vec![message_item(text, serial)],
        Reply::Calls(calls) => calls
            .iter()
            .enumerate()
            .map(|(index, call)| call_item(call, serial, index))
            .collect(),
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": format!("resp_{serial:04}"), "object": "response", "created_at": 1_700_000_000, "status": status,
            "model": str_member(body, "model"), "output": output, "parallel_tool_calls": false, "tools": [], "usage": usage,
        })
    };
    let tokens = FakeUsage::of_request(serial);
    let usage = json!({
        "input_tokens": tokens.input, "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.total(),
    });
    let full = output.iter().map(|item| item.full.clone()).collect();
    let completed = response("completed", full, usage);
    if !request.stream {
        return HttpAnswer::Json(200, completed);
    }
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
    ];
    for (index, item) in output.into_iter().enumerate() {
        events.extend(item.events);
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item.full}),
        );
    }
    events.push(json!({"type": "response.completed", "response": completed}));
    for (number, event) in events.iter_mut().enumerate() {
        if let Some(event) = event.as_object_mut() {
            event.insert("sequence_number".to_owned(), json!(number));
        }
    }
    HttpAnswer::Events(events.iter().map(typed_event).collect())
}
