//! Gemini: `POST …/models/<model>:generateContent` and `:streamGenerateContent` (server-sent events with
//! `alt=sse`, else a JSON array).

use serde_json::{Value, json};

use super::{Answer, Ask, items, said_in, text_of};
use crate::script::Reply;
use crate::tools::Input;

pub fn read(path: &str, body: &Value) -> Ask {
    let of_role = |role: &'static str| {
        items(body, "contents").filter(move |content| text_of(content, "role") == role)
    };
    let said: Vec<String> = of_role("user")
        .map(|content| said_in(content.get("parts")))
        .collect();
    let config = body.get("generationConfig").unwrap_or(&Value::Null);
    Ask {
        turns: of_role("model").count(),
        said: said.join("\n"),
        tools: items(body, "tools")
            .flat_map(|group| items(group, "functionDeclarations"))
            .map(|tool| text_of(tool, "name").to_owned())
            .collect(),
        schema: config
            .get("responseJsonSchema")
            .or_else(|| config.get("responseSchema"))
            .cloned(),
        stream: path.contains("alt=sse"),
    }
}

pub fn write(reply: &Reply, ask: &Ask, serial: usize) -> Answer {
    let part = match reply {
        Reply::Fail { status, message } => {
            return Answer::Json(
                *status,
                json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}),
            );
        }
        Reply::Say(text) => json!({ "text": text }),
        Reply::Call(call) => {
            let args = match &call.input {
                Input::Json(value) => value.clone(),
                Input::Text(text) => json!({ "input": text }),
            };
            json!({"functionCall": {"id": format!("call_{serial:04}"), "name": call.name, "args": args}})
        }
    };
    let body = json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "fake-model", "responseId": format!("resp_{serial:04}"),
    });
    if ask.stream {
        Answer::Events(vec![(None, body.to_string())])
    } else {
        Answer::Json(200, body)
    }
}
