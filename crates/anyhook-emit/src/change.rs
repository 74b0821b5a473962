//! Which files a tool call changes, and what it did to each.

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use openhook::FileOperation;
use serde_json::{Map, Value};

use crate::lines::{self, Edit, Range};
use crate::world::World;

/// A tool that does what several canonical ones do lists them here.
const TOOL_KINDS: &str = "tool_kinds";

/// A file larger than this is not searched for the lines that were written.
const FILE_LIMIT: usize = 4 * 1024 * 1024;

/// A patch over more files is told without having looked before.
const MOST_LOOKED_AT: usize = 64;

/// One file of a tool call's input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change<'a> {
    /// Absolute where the event lets one know it.
    pub path: String,
    /// What the input says will happen.
    declared: Option<FileOperation>,
    content: Option<&'a str>,
    edits: Vec<Edit<'a>>,
}

/// The files that a write, edit, patch or delete tool is called for, each once.
/// A shell command says nothing that could be relied on.
pub(crate) fn changes(event: &HookEvent) -> Vec<Change<'_>> {
    let Some(input) = event.tool_input() else {
        return Vec::new();
    };
    let mut found = Found {
        cwd: event.cwd.as_deref(),
        changes: Vec::new(),
    };
    if writes(event) {
        match input.get("files").and_then(Value::as_array) {
            Some(files) if !files.is_empty() => {
                for file in files.iter().filter_map(Value::as_object) {
                    found.file(file);
                }
            }
            _ => found.file(input),
        }
    } else if event.native_tool_name().is_some_and(deletes) && event.mcp().is_none() {
        for path in named_paths(input) {
            found.add(path, Some(FileOperation::Delete), None, Vec::new());
        }
    }
    found.changes
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

/// The vocabulary has no tool that only deletes; agents name theirs plainly.
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

struct Found<'a> {
    cwd: Option<&'a str>,
    changes: Vec<Change<'a>>,
}

impl<'a> Found<'a> {
    /// `{path, operation, content | edits, move_to}`, or a whole input.
    fn file(&mut self, file: &'a Map<String, Value>) {
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
            None => self.changes.push(Change {
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

/// Of Unix or of Windows, on whichever this runs.
pub(crate) fn is_absolute(path: &str) -> bool {
    let mut letters = path.chars();
    let (first, second) = (letters.next(), letters.next());
    first == Some('/')
        || path.starts_with("\\\\")
        || (first.is_some_and(|drive| drive.is_ascii_alphabetic()) && second == Some(':'))
}

/// The files that are not there, before the call. None when that cannot be known.
pub(crate) fn absent(changes: &[Change<'_>], world: &dyn World) -> Option<Vec<String>> {
    if changes.is_empty() || changes.len() > MOST_LOOKED_AT {
        return None;
    }
    let mut absent = Vec::new();
    for change in changes {
        if !world.exists(&change.path)? {
            absent.push(change.path.clone());
        }
    }
    Some(absent)
}

impl Change<'_> {
    /// What happened, by looking; where looking does not tell, by what the
    /// input and the output say. None when nothing did.
    pub(crate) fn operation(
        &self,
        absent: Option<&[String]>,
        output: Option<&Value>,
        world: &dyn World,
    ) -> Option<FileOperation> {
        use FileOperation::{Create, Delete, Update};
        let before = absent.map(|absent| !absent.contains(&self.path));
        let now = world.exists(&self.path);
        let said = || {
            let said = self.declared.filter(|said| *said != Update);
            said.or_else(|| output.and_then(|output| told(output, 0)))
                .unwrap_or(Update)
        };
        let operation = match (before, now) {
            (Some(false), Some(true)) => Create,
            (Some(true), Some(true)) => Update,
            (Some(true), Some(false)) => Delete,
            (Some(false), None) => match said() {
                Update => Create,
                other => other,
            },
            // Gone on both sides: it may have been on another machine.
            _ => said(),
        };
        let remains = self.declared == Some(Delete) && now == Some(true);
        (!remains).then_some(operation)
    }

    /// The lines that were written.
    pub(crate) fn lines(&self, operation: FileOperation, world: &dyn World) -> Option<Range> {
        if operation == FileOperation::Delete {
            return None;
        }
        if let Some(content) = self.content {
            return lines::whole(content);
        }
        let file = world.read_tail(&self.path, FILE_LIMIT)?;
        let content = std::str::from_utf8(&file.bytes)
            .ok()
            .filter(|_| file.whole)?;
        if self.edits.is_empty() {
            let is_new = operation == FileOperation::Create;
            return lines::whole(content).filter(|_| is_new);
        }
        lines::written(content, &self.edits)
    }
}

/// Whether a tool's output says that the file is new.
fn told(output: &Value, depth: usize) -> Option<FileOperation> {
    let of = |is_new| {
        Some(if is_new {
            FileOperation::Create
        } else {
            FileOperation::Update
        })
    };
    match output {
        Value::Object(map) => {
            for (key, value) in map {
                let said = match (key.as_str(), value) {
                    ("type" | "operation" | "changeType", Value::String(word)) => {
                        FileOperation::parse(word)
                    }
                    ("isNewFile", Value::Bool(is_new)) => of(*is_new),
                    ("exists", Value::Bool(existed)) => of(!existed),
                    _ => None,
                };
                if said.is_some() {
                    return said;
                }
            }
            map.iter()
                .filter(|(key, value)| depth < 3 && (value.is_object() || speaks(key)))
                .find_map(|(_, value)| told(value, depth + 1))
        }
        Value::String(text) => {
            let line: String = text.lines().next()?.chars().take(200).collect();
            let line = line.to_ascii_lowercase();
            let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
            match (has(&["created"]), has(&["updated", "modified", "overw"])) {
                (true, false) => of(true),
                (false, true) => of(false),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Under these keys a tool speaks to the model; other texts may be the file's.
fn speaks(key: &str) -> bool {
    matches!(
        key,
        "result" | "output" | "message" | "text" | "llmContent" | "textResultForLlm"
    )
}

/// Whether an event ends a call that did its work.
pub(crate) fn succeeded(event: &HookEvent) -> bool {
    if event.event == "after_tool_failure" {
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
