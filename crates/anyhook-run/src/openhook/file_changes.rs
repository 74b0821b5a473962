//! The files that a tool call changes, and the operation on each.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use openhook::FileOperation;
use serde_json::{Map, Value};

use super::edit_lines::{self, Edit, LineRange};
use super::machine::Machine;

/// The data field with the canonical tools that a combined tool covers.
const TOOL_KINDS: &str = "tool_kinds";

/// Keys of messages to the model in a tool's output; other texts may be file content.
const MESSAGE_KEYS: [&str; 6] = [
    "result",
    "output",
    "message",
    "text",
    "llmContent",
    "textResultForLlm",
];

/// A larger file is not searched for the lines that were written.
const MAX_SEARCHED_FILE_BYTES: usize = 4 * 1024 * 1024;

/// For a patch over more files, their existence before the call is not checked.
const MAX_CHECKED_FILES: usize = 64;

/// One file of a tool call's input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileChange<'a> {
    /// Absolute if the event has enough information.
    pub path: String,
    /// The operation that the input declares.
    declared: Option<FileOperation>,
    content: Option<&'a str>,
    edits: Vec<Edit<'a>>,
}

/// The files that a write, edit, patch or delete tool is called for, each once.
/// Shell commands are not analysed.
pub(crate) fn changes(event: &HookEvent) -> Vec<FileChange<'_>> {
    let Some(input) = event.tool_input() else {
        return Vec::new();
    };
    let mut collector = ChangeCollector {
        cwd: event.cwd.as_deref(),
        changes: Vec::new(),
    };
    if writes(event) {
        match input.get("files").and_then(Value::as_array) {
            Some(files) if !files.is_empty() => {
                for file in files.iter().filter_map(Value::as_object) {
                    collector.add_file(file);
                }
            }
            _ => collector.add_file(input),
        }
    } else if event.native_tool_name().is_some_and(deletes) && event.mcp().is_none() {
        for path in named_paths(input) {
            collector.add(path, Some(FileOperation::Delete), None, Vec::new());
        }
    }
    collector.changes
}

fn writes(event: &HookEvent) -> bool {
    let kinds = event.data.get(TOOL_KINDS).and_then(Value::as_array);
    let kinds = kinds.into_iter().flatten().filter_map(Value::as_str);
    event
        .tool_name()
        .into_iter()
        .chain(kinds)
        .any(|kind| matches!(kind, "file_write" | "file_edit"))
}

/// No canonical tool only deletes; agents give theirs obvious names.
fn deletes(tool: &str) -> bool {
    let name: String = tool
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    matches!(
        name.as_str(),
        "delete" | "deletefile" | "deletefiles" | "removefile" | "removefiles" | "filedelete"
    )
}

fn named_paths(input: &Map<String, Value>) -> Vec<&str> {
    let keys = [
        "path",
        "paths",
        "file_path",
        "file_paths",
        "filePath",
        "filePaths",
        "target_file",
    ];
    keys.into_iter()
        .filter_map(|key| input.get(key))
        .flat_map(|value| match value {
            Value::Array(list) => list.iter().collect(),
            one => vec![one],
        })
        .filter_map(Value::as_str)
        .collect()
}

struct ChangeCollector<'a> {
    cwd: Option<&'a str>,
    changes: Vec<FileChange<'a>>,
}

impl<'a> ChangeCollector<'a> {
    /// `{path, operation, content | edits, move_to}`, or a whole input.
    fn add_file(&mut self, file: &'a Map<String, Value>) {
        let text = |key: &str| file.get(key).and_then(Value::as_str);
        let Some(path) = text("path") else { return };
        let declared = text("operation").and_then(FileOperation::parse);
        let edits = file.get("edits").and_then(Value::as_array);
        let edits = edits.into_iter().flatten().filter_map(edit).collect();
        match text("move_to") {
            Some(target) => {
                self.add(path, Some(FileOperation::Delete), None, Vec::new());
                self.add(target, None, text("content"), edits);
            }
            None => self.add(path, declared, text("content"), edits),
        }
    }

    fn add(
        &mut self,
        path: &str,
        declared: Option<FileOperation>,
        content: Option<&'a str>,
        edits: Vec<Edit<'a>>,
    ) {
        if path.is_empty() {
            return;
        }
        let path = absolute(path, self.cwd);
        match self.changes.iter_mut().find(|change| change.path == path) {
            Some(change) => {
                change.declared = declared.or(change.declared);
                change.content = content.or(change.content);
                change.edits.extend(edits);
            }
            None => self.changes.push(FileChange {
                path,
                declared,
                content,
                edits,
            }),
        }
    }
}

fn edit(value: &Value) -> Option<Edit<'_>> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    Some(Edit {
        old: text("old").unwrap_or_default(),
        new: text("new")?,
        replace_all: value.get("replace_all") == Some(&Value::Bool(true)),
    })
}

fn absolute(path: &str, cwd: Option<&str>) -> String {
    let Some(cwd) = cwd.filter(|cwd| !cwd.is_empty() && !is_absolute(path)) else {
        return path.to_owned();
    };
    let separator = if cwd.contains('\\') && !cwd.contains('/') {
        '\\'
    } else {
        '/'
    };
    let path = path.strip_prefix("./").unwrap_or(path);
    format!("{}{separator}{path}", cwd.trim_end_matches(['/', '\\']))
}

/// An absolute path of Unix or Windows, on either platform.
pub(crate) fn is_absolute(path: &str) -> bool {
    let mut letters = path.chars();
    let (first, second) = (letters.next(), letters.next());
    first == Some('/')
        || path.starts_with("\\\\")
        || (first.is_some_and(|drive| drive.is_ascii_alphabetic()) && second == Some(':'))
}

/// The files that do not exist before the call; `None` if that is unknown.
pub(crate) fn absent(changes: &[FileChange<'_>], machine: &dyn Machine) -> Option<Vec<String>> {
    if changes.is_empty() || changes.len() > MAX_CHECKED_FILES {
        return None;
    }
    let mut absent = Vec::new();
    for change in changes {
        if !machine.exists(&change.path)? {
            absent.push(change.path.clone());
        }
    }
    Some(absent)
}

impl FileChange<'_> {
    /// The operation, from the files themselves; if they do not show it, from the
    /// input and output of the tool. `None` if nothing happened.
    pub(crate) fn operation(
        &self,
        absent: Option<&[String]>,
        output: Option<&Value>,
        machine: &dyn Machine,
    ) -> Option<FileOperation> {
        use FileOperation::{Create, Delete, Update};
        let before = absent.map(|absent| !absent.contains(&self.path));
        let now = machine.exists(&self.path);
        let reported = || {
            let declared = self.declared.filter(|declared| *declared != Update);
            declared
                .or_else(|| output.and_then(|output| reported_operation(output, 0)))
                .unwrap_or(Update)
        };
        let operation = match (before, now) {
            (Some(false), Some(true)) => Create,
            (Some(true), Some(true)) => Update,
            (Some(true), Some(false)) => Delete,
            (Some(false), None) => match reported() {
                Update => Create,
                other => other,
            },
            // Missing before and after: the file may be on another machine.
            _ => reported(),
        };
        let remains = self.declared == Some(Delete) && now == Some(true);
        (!remains).then_some(operation)
    }

    /// The lines that were written.
    pub(crate) fn lines(
        &self,
        operation: FileOperation,
        machine: &dyn Machine,
    ) -> Option<LineRange> {
        if operation == FileOperation::Delete {
            return None;
        }
        if let Some(content) = self.content {
            return edit_lines::all_lines(content);
        }
        let file = machine.read_tail(&self.path, MAX_SEARCHED_FILE_BYTES)?;
        let content = std::str::from_utf8(&file.bytes)
            .ok()
            .filter(|_| file.whole)?;
        if self.edits.is_empty() {
            let is_new = operation == FileOperation::Create;
            return edit_lines::all_lines(content).filter(|_| is_new);
        }
        edit_lines::written_lines(content, &self.edits)
    }
}

/// The operation that a tool's output reports.
fn reported_operation(output: &Value, depth: usize) -> Option<FileOperation> {
    use FileOperation::{Create, Update};
    let create_or_update = |is_new| Some(if is_new { Create } else { Update });
    match output {
        Value::Object(map) => {
            for (key, value) in map {
                let operation = match (key.as_str(), value) {
                    ("type" | "operation" | "changeType", Value::String(word)) => {
                        FileOperation::parse(word)
                    }
                    ("isNewFile", Value::Bool(is_new)) => create_or_update(*is_new),
                    ("exists", Value::Bool(existed)) => create_or_update(!existed),
                    _ => None,
                };
                if operation.is_some() {
                    return operation;
                }
            }
            map.iter()
                .filter(|(key, value)| {
                    depth < 3 && (value.is_object() || MESSAGE_KEYS.contains(&key.as_str()))
                })
                .find_map(|(_, value)| reported_operation(value, depth + 1))
        }
        Value::String(text) => {
            let line: String = text.lines().next()?.chars().take(200).collect();
            let line = line.to_ascii_lowercase();
            let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
            match (has(&["created"]), has(&["updated", "modified", "overw"])) {
                (true, false) => create_or_update(true),
                (false, true) => create_or_update(false),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an event is the end of a successful call.
pub(crate) fn succeeded(event: &HookEvent) -> bool {
    if event.event == "tool_use_failure" {
        return false;
    }
    let failed = event
        .data
        .get(field::ERROR)
        .is_some_and(|error| !matches!(error, Value::Null) && error.as_str() != Some(""));
    match event.text(field::STATUS) {
        Some("success") => true,
        Some("error") => false,
        _ => !failed,
    }
}
