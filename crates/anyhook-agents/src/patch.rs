//! The `*** Begin Patch` format: what several agents send for an edit.
//!
//! Reading is forgiving: a guard must see every file that a patch touches,
//! also when a hunk is odd. Writing is for hooks that expect such a patch.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// Every file of a patch: `{path, operation, edits | content, move_to}`.
/// Empty when the text is no such patch.
pub fn files(text: &str) -> Vec<Value> {
    let mut files: Vec<Map<String, Value>> = Vec::new();
    let mut hunk = Hunk::default();
    for line in text.lines() {
        let header = [
            ("*** Add File:", "create"),
            ("*** Update File:", "update"),
            ("*** Delete File:", "delete"),
        ]
        .into_iter()
        .find_map(|(mark, operation)| Some((after(line, mark)?, operation)));
        if let Some((path, operation)) = header {
            hunk.close(files.last_mut());
            let mut file = Map::new();
            file.insert("path".into(), json!(path));
            file.insert("operation".into(), json!(operation));
            files.push(file);
            continue;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        if let Some(target) = after(line, "*** Move to:") {
            file.insert("move_to".into(), json!(target));
        } else if line.starts_with("*** ") || line.starts_with("@@") {
            hunk.close(Some(file));
        } else if file.get("operation") == Some(&json!("create")) {
            if let Some(added) = line.strip_prefix('+') {
                let content = file.entry("content").or_insert_with(|| json!(""));
                if let Value::String(content) = content {
                    content.push_str(added);
                    content.push('\n');
                }
            }
        } else {
            hunk.line(line);
        }
    }
    hunk.close(files.last_mut());
    files.into_iter().map(Value::Object).collect()
}

/// What follows a mark. Readers of the format trim its lines, so blanks before
/// a header hide no file; a header that is none is one file too many, no harm.
fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let line = line.trim();
    let head = line.get(..mark.len())?;
    let rest = line.get(mark.len()..)?;
    head.eq_ignore_ascii_case(mark).then(|| rest.trim())
}

#[derive(Default)]
struct Hunk {
    old: Vec<String>,
    new: Vec<String>,
}

impl Hunk {
    fn line(&mut self, line: &str) {
        if let Some(added) = line.strip_prefix('+') {
            self.new.push(added.to_owned());
        } else if let Some(removed) = line.strip_prefix('-') {
            self.old.push(removed.to_owned());
        } else {
            let kept = line.strip_prefix(' ').unwrap_or(line).to_owned();
            self.old.push(kept.clone());
            self.new.push(kept);
        }
    }

    fn close(&mut self, file: Option<&mut Map<String, Value>>) {
        let hunk = std::mem::take(self);
        if hunk.old.is_empty() && hunk.new.is_empty() {
            return;
        }
        let Some(file) = file else { return };
        let edits = file.entry("edits").or_insert_with(|| json!([]));
        if let Value::Array(edits) = edits {
            edits.push(json!({"old": hunk.old.join("\n"), "new": hunk.new.join("\n")}));
        }
    }
}

/// A patch that says what canonical `files` say.
pub fn write(files: &[Value]) -> String {
    let mut out = String::from("*** Begin Patch\n");
    for file in files {
        let text = |key: &str| file.get(key).and_then(Value::as_str);
        let path = text("path").unwrap_or_default();
        match text("operation") {
            Some("create") => {
                let _ = writeln!(out, "*** Add File: {path}");
                for line in text("content").unwrap_or_default().lines() {
                    let _ = writeln!(out, "+{line}");
                }
            }
            Some("delete") => {
                let _ = writeln!(out, "*** Delete File: {path}");
            }
            _ => {
                let _ = writeln!(out, "*** Update File: {path}");
                if let Some(target) = text("move_to") {
                    let _ = writeln!(out, "*** Move to: {target}");
                }
                let none = Vec::new();
                for edit in file.get("edits").and_then(Value::as_array).unwrap_or(&none) {
                    out.push_str("@@\n");
                    for (mark, key) in [('-', "old"), ('+', "new")] {
                        for line in edit
                            .get(key)
                            .and_then(Value::as_str)
                            .unwrap_or_default()
                            .lines()
                        {
                            let _ = writeln!(out, "{mark}{line}");
                        }
                    }
                }
            }
        }
    }
    out.push_str("*** End Patch\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_is_seen() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** Update File: b.txt\n*** Move to: c.txt\n@@ fn\n keep\n-old\n+new\n*** Delete File: d.txt\n*** End Patch\n";
        assert_eq!(
            files(text),
            vec![
                json!({"path": "a.txt", "operation": "create", "content": "one\ntwo\n"}),
                json!({"path": "b.txt", "operation": "update", "move_to": "c.txt",
                       "edits": [{"old": "keep\nold", "new": "keep\nnew"}]}),
                json!({"path": "d.txt", "operation": "delete"}),
            ]
        );
    }

    #[test]
    fn blanks_and_case_hide_no_file() {
        let text = "*** Begin Patch\n*** Delete File: harmless\n  *** delete file: .env\n\t*** Move to: x\n*** End Patch";
        let paths: Vec<Value> = files(text)
            .iter()
            .map(|file| file["path"].clone())
            .collect();
        assert_eq!(paths, ["harmless", ".env"]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let before = vec![
            json!({"path": "a.txt", "operation": "create", "content": "one\n"}),
            json!({"path": "b.txt", "operation": "update", "edits": [{"old": "x", "new": "y"}]}),
            json!({"path": "d.txt", "operation": "delete"}),
        ];
        assert_eq!(files(&write(&before)), before);
    }

    #[test]
    fn other_text_is_no_patch() {
        assert!(files("echo hi").is_empty());
        assert!(files("").is_empty());
    }
}
