//! The files of tools that have no place in the vocabulary, such as those of MCP servers.
//!
//! Nobody knows what such a tool does. Each value of its input that is given as a path counts,
//! and the words of its name say what happens to it; without such a word it is read.

use serde_json::{Map, Value};

use super::FileUse;

const PATH_KEYS: &[&str] = &[
    "absolutepath",
    "dest",
    "destination",
    "destinationpath",
    "dst",
    "file",
    "filename",
    "filepath",
    "files",
    "newpath",
    "notebookpath",
    "oldpath",
    "outputpath",
    "path",
    "paths",
    "source",
    "sourcepath",
    "src",
    "target",
    "targetfile",
    "targetpath",
    "uri",
];

/// What a tool is called that deletes files, or takes them away.
const DELETING: &[&str] = &[
    "delete", "erase", "move", "mv", "purge", "remove", "rename", "rm", "rmdir", "trash", "unlink",
];

const WRITING: &[&str] = &[
    "append", "apply", "checkout", "chmod", "create", "edit", "insert", "patch", "put", "replace",
    "restore", "save", "set", "truncate", "update", "upload", "write",
];

/// Keys of what is written.
const CONTENT_KEYS: &[&str] = &["content", "contents", "data", "edits", "text"];

const MAX_FILES: usize = 64;
const MAX_DEPTH: usize = 4;

pub(super) struct NamedFile<'i> {
    pub(super) path: &'i str,
    pub(super) file_use: FileUse,
}

/// The files that the input of a tool names, with what the tool's name says about them.
pub(super) fn named_files<'i>(tool: &str, input: &'i Map<String, Value>) -> Vec<NamedFile<'i>> {
    let words = words_of(tool);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let writes_content = CONTENT_KEYS.iter().any(|key| input.contains_key(*key));
    let general_use = if has(DELETING) {
        FileUse::Delete
    } else if has(WRITING) || writes_content {
        FileUse::Write
    } else {
        FileUse::Read
    };
    let is_copy = words
        .iter()
        .any(|word| matches!(word.as_str(), "copy" | "cp"));
    let mut found = Vec::new();
    collect(input, MAX_DEPTH, &mut |key, path| {
        let is_target = key.starts_with("dest") || matches!(key, "dst" | "newpath" | "outputpath");
        let file_use = match general_use {
            FileUse::Delete | FileUse::Read if is_target => FileUse::Write,
            _ if is_copy && key.starts_with("target") => FileUse::Write,
            other => other,
        };
        if found.len() < MAX_FILES {
            found.push(NamedFile { path, file_use });
        }
    });
    found
}

fn collect<'i>(input: &'i Map<String, Value>, depth: usize, note: &mut impl FnMut(&str, &'i str)) {
    for (key, value) in input {
        let plain: String = key
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        let is_path = PATH_KEYS.contains(&plain.as_str());
        let items = match value {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        for item in items.iter().take(MAX_FILES) {
            match item {
                Value::String(text) if is_path && is_local_path(text) => {
                    note(&plain, text.strip_prefix("file://").unwrap_or(text));
                }
                Value::String(text) if text.contains("\n+++ ") => {
                    // A patch: `--- a/file`, `+++ b/file`.
                    let headers = text.lines().filter_map(|line| {
                        line.strip_prefix("+++ ")
                            .or_else(|| line.strip_prefix("--- "))
                    });
                    for path in headers.take(MAX_FILES) {
                        let path = path.split('\t').next().unwrap_or_default().trim();
                        let path = path.strip_prefix("a/").or(path.strip_prefix("b/"));
                        if let Some(path) = path {
                            note("destination", path);
                        }
                    }
                }
                Value::Object(inner) if depth > 0 => collect(inner, depth - 1, note),
                _ => {}
            }
        }
    }
}

/// Whether a text may be a path: one line, and no address of another kind.
fn is_local_path(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 4096
        && !text.contains('\n')
        && (text.starts_with("file://") || !text.contains("://"))
}

/// The words of a name: `mcp__fs__moveFile` has `mcp`, `fs`, `move` and `file`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
