//! `e2e-mcp FILE`: an MCP server on stdio with one tool, `note`, which appends its text to FILE.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: e2e-mcp FILE")?;
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        // A message without an id is a notification.
        let Some(id) = message.get("id") else {
            continue;
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        let result = match message.get("method").and_then(Value::as_str) {
            Some("initialize") => json!({
                "protocolVersion": params.get("protocolVersion").cloned().unwrap_or_else(|| "2025-06-18".into()),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "e2e", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{
                "name": "note",
                "description": "Note a text",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            }]}),
            Some("tools/call") => {
                let text = params.pointer("/arguments/text").and_then(Value::as_str);
                let mut notes = OpenOptions::new().create(true).append(true).open(&file)?;
                notes.write_all(format!("{}\n", text.unwrap_or("?")).as_bytes())?;
                json!({"content": [{"type": "text", "text": "noted"}]})
            }
            _ => json!({}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let mut stdout = io::stdout().lock();
        stdout.write_all(format!("{answer}\n").as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}
