//! Items and approval parameters of Codex as canonical tool calls: name, and input
//! with canonical keys. Pure.

use anyhook_model::event::field;
use anyhook_util::shell::join_script;
use serde_json::{Map, Value, json};

use crate::shell;

pub(crate) type Object = Map<String, Value>;

/// Codex' name for a patch.
const FILE_CHANGE: &str = "fileChange";

/// One call of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) native_name: String,
    pub(crate) input: Object,
    /// Server and tool.
    pub(crate) mcp: Option<(String, String)>,
}

impl ToolCall {
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
            Some(Value::String(line)) => put(&mut input, "command", shell::line_script(line)),
            Some(Value::Array(words)) => {
                let text = |word: &Value| word.as_str().map_or(word.to_string(), str::to_owned);
                let argv: Vec<String> = words.iter().map(text).collect();
                put(&mut input, "command", join_script(&argv));
            }
            _ => {}
        }
        let parsed = command_parts(parts);
        let commands = parsed.iter().filter_map(|part| part.get("command"));
        let commands: Vec<&Value> = commands.collect();
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
            Value::Array(list) => list
                .iter()
                .filter_map(Value::as_object)
                .map(changed_file)
                .collect(),
            Value::Object(by_path) => by_path
                .iter()
                .filter_map(|(path, change)| {
                    let mut change = change.as_object()?.clone();
                    put(&mut change, "path", path.as_str());
                    Some(changed_file(&change))
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut input = Object::new();
        if let [only] = files.as_slice() {
            for key in ["path", "content", "edits"] {
                if let Some(value) = only.get(key) {
                    put(&mut input, key, value.clone());
                }
            }
        }
        let is_new = |file: &Value| file.get("operation") == Some(&json!("create"));
        let creates = !files.is_empty() && files.iter().all(is_new);
        let name = if creates { "file_write" } else { "file_edit" };
        put(&mut input, "files", Value::Array(files));
        Self::new(name, FILE_CHANGE, input)
    }

    pub(crate) fn mcp(server: &str, tool: &str, arguments: Option<Value>) -> Self {
        let name = format!("mcp__{server}__{tool}");
        let mut made = Self::new(&name, &name, arguments_object(arguments));
        made.mcp = Some((server.into(), tool.into()));
        made
    }

    /// A call of which not even the kind of tool is known.
    pub(crate) fn unnamed(input: Object) -> Self {
        Self::new("", "", input)
    }

    pub(crate) fn other(name: &str, input: Object) -> Self {
        Self::new(name, name, input)
    }

    /// Takes the call out of an item and leaves what has no canonical key. `None` for
    /// other items: messages, reasoning, plans.
    pub(crate) fn from_item(item: &mut Object) -> Option<Self> {
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
                Self::other(&tool, arguments_object(item.remove("arguments")))
            }
            "collabAgentToolCall" => {
                let tool = take_text(item, "tool")?;
                let prompt = item.remove("prompt").map(|it| ("prompt".into(), it));
                let name = if tool == "spawnAgent" { "agent" } else { &tool };
                Self::new(name, &tool, prompt.into_iter().collect())
            }
            "webSearch" => Self::new("web_search", "webSearch", take_member(item, "query")),
            "imageView" => Self::other("view_image", take_member(item, "path")),
            _ => return None,
        })
    }

    /// Fills in what an earlier message about the same item contained: a later one may
    /// contain less.
    pub(crate) fn completed_by(mut self, earlier: Option<&Self>) -> Self {
        let is_same = |earlier: &&Self| earlier.native_name == self.native_name;
        let Some(earlier) = earlier.filter(is_same) else {
            return self;
        };
        if self.file_count() == 0 && earlier.file_count() > 0 {
            self.name.clone_from(&earlier.name);
            self.input.clone_from(&earlier.input);
        }
        for (key, value) in &earlier.input {
            self.input
                .entry(key.as_str())
                .or_insert_with(|| value.clone());
        }
        self
    }

    pub(crate) fn file_count(&self) -> usize {
        let files = self.input.get("files").and_then(Value::as_array);
        files.map_or(0, Vec::len)
    }

    pub(crate) fn write_to(self, data: &mut Object) {
        if !self.name.is_empty() {
            put(data, field::TOOL_NAME, self.name);
            put(data, field::NATIVE_TOOL_NAME, self.native_name.as_str());
        }
        // A guard of either sees every change of a file.
        if self.native_name == FILE_CHANGE {
            put(data, field::TOOL_KINDS, json!(["file_edit", "file_write"]));
        }
        put(data, field::TOOL_INPUT, Value::Object(self.input));
        if let Some((server, tool)) = self.mcp {
            put(data, field::MCP, json!({"server": server, "tool": tool}));
        }
    }
}

/// `commandActions`, the older `parsedCmd` list, or its oldest form, one string.
fn command_parts(parts: Option<Value>) -> Vec<Value> {
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
fn changed_file(change: &Object) -> Value {
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
        ("create", Some(content), None) | ("create", _, Some(content)) => {
            put(&mut file, "content", content);
        }
        ("update", Some(diff), _) => {
            put(&mut file, "edits", Value::Array(hunk_edits(&diff)));
            put(&mut file, "diff", diff);
        }
        ("update", None, Some(content)) => put(&mut file, "content", content),
        _ => {}
    }
    Value::Object(file)
}

/// Each hunk of a unified diff as one replacement, context included.
fn hunk_edits(diff: &str) -> Vec<Value> {
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

/// Removes the member if it is a text.
pub(crate) fn take_text(object: &mut Object, key: &str) -> Option<String> {
    let found = text(object, key)?;
    object.remove(key);
    Some(found)
}

/// An input with one member of an item, null if it is absent.
fn take_member(item: &mut Object, key: &str) -> Object {
    let value = item.remove(key).unwrap_or_default();
    Object::from_iter([(key.into(), value)])
}

/// Arguments of another type are kept under one key.
fn arguments_object(value: Option<Value>) -> Object {
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
    fn every_form_of_a_change_has_its_path() {
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
            let tool = ToolCall::file_edit(&changes);
            assert_eq!(tool.input.get("files"), Some(&json!([file])), "{changes}");
            assert_eq!(tool.input.get("path"), Some(&json!("/p/a")), "{changes}");
        }
    }

    #[test]
    fn several_commands_are_all_listed() {
        let parts = json!([{"type": "read", "cmd": "cat a", "name": "a", "path": "a"}, {"type": "list_files", "cmd": "ls b", "path": null}]);
        let tool = ToolCall::shell(
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
