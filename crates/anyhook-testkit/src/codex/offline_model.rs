//! What the real Codex needs to work without a network: a model on loopback that
//! asks to run a command and then to write a file, and a home configured for it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const PATCH: &str = "*** Begin Patch\n*** Add File: out.txt\n+written\n*** End Patch\n";

/// Starts a model whose answers follow from the length of the conversation;
/// returns its port.
fn start_model() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    port
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut line) = (0, String::new());
    let mut first = String::new();
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if first.is_empty() {
            first.clone_from(&line);
        }
        if let Some(("content-length", value)) = line.to_lowercase().split_once(':') {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if !first.contains("/responses") {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let input = body["input"].as_array().cloned().unwrap_or_default();
    let is_call = |item: &&Value| {
        matches!(
            item["type"].as_str(),
            Some("function_call" | "custom_tool_call")
        )
    };
    let item = match input.iter().filter(is_call).count() {
        0 => {
            let arguments = json!({"cmd": "touch approved.txt", "sandbox_permissions": "require_escalated", "justification": "May I?"});
            json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "exec_command", "arguments": arguments.to_string()})
        }
        1 => {
            json!({"type": "custom_tool_call", "id": "ct_2", "call_id": "call_2", "name": "apply_patch", "input": PATCH})
        }
        _ => {
            json!({"type": "message", "id": "m_3", "role": "assistant", "content": [{"type": "output_text", "text": "done", "annotations": []}]})
        }
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let mut text =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned();
    for event in [
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item], "usage": usage}}),
    ] {
        let name = event["type"].as_str().unwrap();
        write!(
            text,
            "event: {name}
data: {event}

"
        )
        .unwrap();
    }
    let _ = stream.write_all(text.as_bytes());
}

/// Writes a Codex configuration that uses the offline model.
pub fn write_codex_home(home: &Path) {
    let config = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\napproval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n\
             check_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.fake]\nname = \"fake\"\n\
             base_url = \"http://127.0.0.1:{}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        start_model()
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
}

/// Sets the variables that make Codex use this home.
pub fn set_codex_env(command: &mut Command, home: &Path) {
    command
        .env("HOME", home)
        .env("CODEX_HOME", home)
        .env("FAKE_KEY", "x");
}

/// The first messages of a client; the answer to the last one has the thread id.
pub fn opening_requests(cwd: &Path) -> [Value; 3] {
    [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "driver", "title": null, "version": "1"}, "capabilities": null}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "thread/start", "params": {"cwd": cwd, "approvalPolicy": "on-request", "sandbox": "read-only"}}),
    ]
}

/// Starts a turn.
pub fn turn_request(thread: &Value) -> Value {
    json!({"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": [{"type": "text", "text": "go", "text_elements": []}]}})
}
