//! Calls of canonical tools that a call of another tool amounts to.

use anyhook_model::HookEvent;
use anyhook_model::event::field::TOOL_KINDS;
use anyhook_model::event::{NATIVE, field};
use serde_json::{Map, Value, json};

use super::{NATIVE_ABSENT, NATIVE_WHEN};
use crate::likeness;
use crate::tools::canonical_files;

/// `event` as a call of another canonical tool.
pub(super) fn with_tool(event: &HookEvent, name: &str, input: Map<String, Value>) -> HookEvent {
    let mut part = event.clone();
    part.data.insert(field::TOOL_NAME.into(), json!(name));
    part.data.shift_remove(field::NATIVE_TOOL_NAME);
    let input = Value::Object(input);
    part.data.insert(field::TOOL_INPUT.into(), input);
    part
}

/// The calls of tools of the vocabulary that a call of another tool amounts to.
/// No native name or field belongs to them.
pub fn inferred_calls(event: &HookEvent) -> Vec<HookEvent> {
    let is_kind = |kind: &str| event.tool_kinds().any(|one| one == kind);
    let is_file_tool = |name: &str| matches!(name, "file_write" | "file_edit");
    let name = event.tool_name().unwrap_or_default();
    let runs = is_kind("shell") && name != "shell";
    let writes = event.tool_kinds().any(is_file_tool) && !is_file_tool(name);
    if !runs && !writes {
        return Vec::new();
    }
    let mut base = event.clone();
    base.source.clear();
    for key in [NATIVE, NATIVE_ABSENT, NATIVE_WHEN, likeness::INFERRED_INPUT] {
        base.metadata.shift_remove(key);
    }
    for key in [TOOL_KINDS, field::MCP] {
        base.data.shift_remove(key);
    }
    let input = event.tool_input().cloned().unwrap_or_default();
    let mut calls = Vec::new();
    if runs {
        let mut command = input.clone();
        command.retain(|key, _| matches!(key.as_str(), "command" | "commands" | "cwd"));
        calls.push(with_tool(&base, "shell", command));
    }
    if writes {
        let kinds = json!(["file_write", "file_edit"]);
        base.data.insert(TOOL_KINDS.into(), kinds);
        let files = canonical_files(&input);
        let parts = files.iter().flat_map(|file| file_parts(&base, file));
        let parts: Vec<HookEvent> = parts.collect();
        if parts.is_empty() {
            calls.push(with_tool(&base, "file_edit", Map::new()));
        }
        calls.extend(parts);
    }
    calls
}

/// One file of a patch as calls of single-file tools. A move is two: the new file
/// is edited, the old one is emptied.
pub(super) fn file_parts(event: &HookEvent, file: &Value) -> Vec<HookEvent> {
    let call = |tool: &str, path: &Value, key: &str, value: Value| {
        let mut input = Map::new();
        input.insert("path".into(), path.clone());
        input.insert(key.to_owned(), value);
        with_tool(event, tool, input)
    };
    let field = |key: &str, default: Value| file.get(key).cloned().unwrap_or(default);
    let path = field("path", json!(""));
    if file.get("operation").and_then(Value::as_str) != Some("update") {
        // A deletion becomes a write of an empty file, so that a guard over paths
        // sees it.
        let content = field("content", json!(""));
        return vec![call("file_write", &path, "content", content)];
    }
    let target = file.get("move_to");
    let edits = field("edits", json!([]));
    let mut parts = vec![call("file_edit", target.unwrap_or(&path), "edits", edits)];
    if target.is_some() {
        parts.push(call("file_write", &path, "content", json!("")));
    }
    parts
}
