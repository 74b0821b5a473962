//! Gemini: `POST …/models/<model>:generateContent` and `:streamGenerateContent` (server-sent events with
//! `alt=sse`, else a JSON array).

use serde_json::{Value, json};

use super::{FakeUsage, HttpAnswer, ModelRequest, call_id, content_text, items, str_member};
use crate::script::Reply;
use crate::tools::ToolInput;

pub(super) fn parse_request(path: &str, body: &Value) -> ModelRequest {
    let with_role = |role: &'static str| {
        items(body, "contents").filter(move |content| str_member(content, "role") == role)
    };
    let user_text: Vec<String> = with_role("user")
        .map(|content| content_text(content.get("parts")))
        .collect();
    let config = body.get("generationConfig").unwrap_or(&Value::Null);
    ModelRequest {
        turns: with_role("model").count(),
        user_text: user_text.join("\n"),
        tools: items(body, "tools")
            .flat_map(|group| items(group, "functionDeclarations"))
            .map(|tool| str_member(tool, "name").to_owned())
            .collect(),
        schema: config
            .get("responseJsonSchema")
            .or_else(|| config.get("responseSchema"))
            .cloned(),
        stream: path.contains("alt=sse"),
    }
}

pub(super) fn render_reply(reply: &Reply, request: &ModelRequest, serial: usize) -> HttpAnswer {
    let parts = match reply {
        Reply::Fail { status, message } => {
            return HttpAnswer::Json(
                *status,
                json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}),
            );
        }
        Reply::Say(text) => json!([{ "text": text }]),
        Reply::Calls(calls) => calls
            .iter()
            .enumerate()
            .map(|(index, call)| {
                let args = match &call.input {
                    ToolInput::Json(value) => value.clone(),
                    ToolInput::Text(text) => json!({ "input": text }),
                };
                json!({"functionCall": {"id": call_id(serial, index), "name": call.name, "args": args}})
            })
            .collect(),
    };
    let usage = FakeUsage::of_request(serial);
    let body = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": usage.input, "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output, "totalTokenCount": usage.total(),
        },
        "modelVersion": "fake-model", "responseId": format!("resp_{serial:04}"),
    });
    if request.stream {
        HttpAnswer::Events(vec![(None, body.to_string())])
    } else {
        HttpAnswer::Json(200, body)
    }
}
