//! Items and approval parameters of Codex as canonical tools: name, input with
//! canonical keys, output. Pure.

use anyhook_model::event::field;
use serde_json::{Map, Value, json};

use crate::shell;

pub(crate) type Object = Map<String, Value>;

/// One use of a tool; what had no canonical place is in `rest`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) native_name: String,
    pub(crate) input: Object,
    pub(crate) mcp: Option<(String, String)>,
}

impl Tool {
    fn new(name: &str, native_name: &str, input: Object) -> Self {
        Self {
            name: name.into(),
            native_name: native_name.into(),
            input,
            mcp: None,
        }
    }

    /// A shell command; `parts` are the commands that Codex found inside.
    pub(crate) fn shell(command: Option<&Value>, parts: Option<Value>, cwd: Option<&str>) -> Self {
        let mut input = Object::new();
        match command {
            Some(Value::String(line)) => put(&mut input, "command", shell::script(line)),
            Some(Value::Array(words)) => {
                let argv: Vec<String> = words
                    .iter()
                    .map(|word| {
                        word.as_str()
                            .map_or_else(|| word.to_string(), str::to_owned)
                    })
                    .collect();
                put(&mut input, "command", shell::script_of(&argv));
            }
            _ => {}
        }
        let parsed = parsed(parts);
        let commands: Vec<&Value> = parsed
            .iter()
            .filter_map(|part| part.get("command"))
            .collect();
        if commands.len() > 1 {
            put(&mut input, "commands", json!(commands));
        }
        if !parsed.is_empty() {
            put(&mut input, "parsed", Value::Array(parsed));
        }
        if let Some(cwd) = cwd {
            put(&mut input, "cwd", cwd);
        }
        Self::new("shell", "commandExecution", input)
    }

    /// A patch over any number of files.
    pub(crate) fn file_edit(changes: &Value) -> Self {
        let files: Vec<Value> = match changes {
            Value::Array(list) => list.iter().filter_map(Value::as_object).map(file).collect(),
            Value::Object(by_path) => by_path
                .iter()
                .filter_map(|(path, change)| {
                    let mut change = change.as_object()?.clone();
                    put(&mut change, "path", path.as_str());
                    Some(file(&change))
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut input = Object::new();
        if let [only] = files.as_slice()
            && let Some(path) = only.get("path")
        {
            put(&mut input, "path", path.clone());
        }
        put(&mut input, "files", Value::Array(files));
        Self::new("file_edit", "fileChange", input)
    }

    pub(crate) fn mcp(server: &str, tool: &str, arguments: Option<Value>) -> Self {
        let name = format!("mcp__{server}__{tool}");
        let mut made = Self::new(&name, &name, object(arguments));
        made.mcp = Some((server.into(), tool.into()));
        made
    }

    pub(crate) fn other(name: &str, input: Object) -> Self {
        Self::new(name, name, input)
    }

    /// Takes the tool out of an item and leaves what has no canonical place.
    /// `None` for items that are no tool: messages, reasoning, plans.
    pub(crate) fn of_item(item: &mut Object) -> Option<Self> {
        let kind = text(item, "type")?;
        Some(match kind.as_str() {
            "commandExecution" => {
                let cwd = take_text(item, "cwd");
                let parts = item.remove("commandActions");
                Self::shell(item.get("command"), parts, cwd.as_deref())
            }
            "fileChange" => Self::file_edit(&item.remove("changes").unwrap_or_default()),
            "mcpToolCall" => {
                let server = take_text(item, "server").unwrap_or_default();
                let tool = take_text(item, "tool").unwrap_or_default();
                Self::mcp(&server, &tool, item.remove("arguments"))
            }
            "dynamicToolCall" => {
                let tool = take_text(item, "tool")?;
                Self::other(&tool, object(item.remove("arguments")))
            }
            "collabAgentToolCall" => {
                let tool = take_text(item, "tool")?;
                let mut input = Object::new();
                if let Some(prompt) = item.remove("prompt") {
                    put(&mut input, "prompt", prompt);
                }
                let name = if tool == "spawnAgent" { "agent" } else { &tool };
                Self::new(name, &tool, input)
            }
            "webSearch" => {
                let query = item.remove("query").unwrap_or_default();
                let input = Object::from_iter([("query".into(), query)]);
                Self::new("web_search", "webSearch", input)
            }
            "imageView" => {
                let path = item.remove("path").unwrap_or_default();
                Self::other("view_image", Object::from_iter([("path".into(), path)]))
            }
            _ => return None,
        })
    }

    /// A later message about the same item may say less; what the earlier one
    /// said still holds.
    pub(crate) fn or_earlier(mut self, earlier: &Self) -> Self {
        let files = |tool: &Self| {
            tool.input
                .get("files")
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        };
        if self.name == earlier.name && files(&self) == 0 && files(earlier) > 0 {
            self.input.clone_from(&earlier.input);
        }
        for (key, value) in &earlier.input {
            if self.name == earlier.name && !self.input.contains_key(key) {
                self.input.insert(key.clone(), value.clone());
            }
        }
        self
    }

    pub(crate) fn place(self, data: &mut Object) {
        put(data, field::TOOL_NAME, self.name);
        put(data, field::NATIVE_TOOL_NAME, self.native_name);
        put(data, field::TOOL_INPUT, Value::Object(self.input));
        if let Some((server, tool)) = self.mcp {
            put(data, field::MCP, json!({"server": server, "tool": tool}));
        }
    }
}

/// `commandActions`, the older `parsedCmd` list, or its oldest form, one string.
fn parsed(parts: Option<Value>) -> Vec<Value> {
    let list = match parts {
        Some(Value::Array(list)) => list,
        Some(Value::String(command)) => vec![json!({"type": "unknown", "command": command})],
        _ => Vec::new(),
    };
    list.into_iter()
        .filter_map(|part| {
            let Value::Object(mut part) = part else {
                return None;
            };
            if let Some(command) = part.remove("cmd") {
                put(&mut part, "command", command);
            }
            if text(&part, "type").as_deref() == Some("list_files") {
                put(&mut part, "type", "listFiles");
            }
            part.retain(|_, value| !value.is_null());
            Some(Value::Object(part))
        })
        .collect()
}

/// One change: today's `{path, kind: {type, move_path}, diff}`, the older
/// `{type, unified_diff | content, move_path}` and the first `{path, type,
/// content}` with `modify`.
fn file(change: &Object) -> Value {
    let kind = change
        .get("kind")
        .and_then(Value::as_object)
        .unwrap_or(change);
    let native = text(kind, "type")
        .or_else(|| text(change, "kind"))
        .unwrap_or_default();
    let operation = match native.as_str() {
        "add" | "create" => "create",
        "delete" | "remove" => "delete",
        _ => "update",
    };
    let mut file = Object::new();
    for (to, value) in [
        ("path", change.get("path")),
        ("operation", Some(&json!(operation))),
        ("move_to", kind.get("move_path")),
    ] {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            put(&mut file, to, value.clone());
        }
    }
    let diff = text(change, "diff").or_else(|| text(change, "unified_diff"));
    let content = text(change, "content");
    match (operation, diff, content) {
        // The diff of a new file is its content.
        ("create", diff, content) => {
            if let Some(content) = content.or(diff) {
                put(&mut file, "content", content);
            }
        }
        ("update", Some(diff), _) => {
            put(&mut file, "edits", Value::Array(edits(&diff)));
            put(&mut file, "diff", diff);
        }
        ("update", None, Some(content)) => put(&mut file, "content", content),
        _ => {}
    }
    Value::Object(file)
}

/// Each hunk of a unified diff as one replacement, context included.
fn edits(diff: &str) -> Vec<Value> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        // Before the first hunk there are only file headers.
        let Some((old, new)) = hunks.last_mut() else {
            continue;
        };
        let rest = line.get(1..).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b'-') => old.push_str(rest),
            Some(b'+') => new.push_str(rest),
            Some(b' ') => {
                old.push_str(rest);
                new.push_str(rest);
            }
            // "\ No newline at end of file"
            Some(b'\\') => {}
            _ => {
                old.push_str(line);
                new.push_str(line);
            }
        }
    }
    hunks
        .into_iter()
        .map(|(old, new)| json!({"old": old, "new": new}))
        .collect()
}

pub(crate) fn put(object: &mut Object, key: &str, value: impl Into<Value>) {
    object.insert(key.into(), value.into());
}

pub(crate) fn text(object: &Object, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(str::to_owned)
}

/// Removes the member when it is a text; one of another shape stays.
pub(crate) fn take_text(object: &mut Object, key: &str) -> Option<String> {
    let found = text(object, key)?;
    object.remove(key);
    Some(found)
}

/// Arguments that are no object are kept under one key.
fn object(value: Option<Value>) -> Object {
    match value {
        Some(Value::Object(object)) => object,
        None | Some(Value::Null) => Object::new(),
        Some(other) => Object::from_iter([("arguments".into(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_a_change_names_its_file() {
        let cases = [
            (
                json!([{"path": "/p/a", "kind": {"type": "add"}, "diff": "hi\n"}]),
                json!({"path": "/p/a", "operation": "create", "content": "hi\n"}),
            ),
            (
                json!([{"path": "/p/a", "type": "modify", "content": "new"}]),
                json!({"path": "/p/a", "operation": "update", "content": "new"}),
            ),
            (
                json!({"/p/a": {"type": "update", "unified_diff": "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n", "move_path": "/p/b"}}),
                json!({"path": "/p/a", "operation": "update", "move_to": "/p/b",
                       "edits": [{"old": "one\ntwo\n", "new": "one\nthree\n"}],
                       "diff": "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"}),
            ),
            (
                json!([{"path": "/p/a", "kind": {"type": "delete"}, "diff": "old"}]),
                json!({"path": "/p/a", "operation": "delete"}),
            ),
        ];
        for (changes, file) in cases {
            let tool = Tool::file_edit(&changes);
            assert_eq!(tool.input.get("files"), Some(&json!([file])), "{changes}");
            assert_eq!(tool.input.get("path"), Some(&json!("/p/a")), "{changes}");
        }
    }

    #[test]
    fn several_commands_are_all_listed() {
        let parts = json!([{"type": "read", "cmd": "cat a", "name": "a", "path": "a"}, {"type": "list_files", "cmd": "ls b", "path": null}]);
        let tool = Tool::shell(
            Some(&json!(["bash", "-lc", "cat a && ls b"])),
            Some(parts),
            Some("/p"),
        );
        assert_eq!(
            Value::Object(tool.input),
            json!({"command": "cat a && ls b", "commands": ["cat a", "ls b"],
                   "parsed": [{"type": "read", "name": "a", "path": "a", "command": "cat a"}, {"type": "listFiles", "command": "ls b"}],
                   "cwd": "/p"})
        );
    }
}
