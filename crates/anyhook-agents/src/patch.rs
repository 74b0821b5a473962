//! The `*** Begin Patch` format: what several agents send for an edit.
//!
//! Reading is forgiving: a guard must see every file that a patch touches,
//! also when a hunk is odd. Writing is for hooks that expect such a patch.

use std::fmt::Write as _;

use anyhook_util::shell::{self, Syntax};
use serde_json::{Map, Value, json};

const BEGIN_MARK: &str = "*** Begin Patch";

/// The header of each file, and what is done to it.
const FILE_MARKS: [(&str, &str); 3] = [
    ("*** Add File:", "create"),
    ("*** Update File:", "update"),
    ("*** Delete File:", "delete"),
];

const MOVE_MARK: &str = "*** Move to:";

/// The names of the program that applies such a patch.
const PROGRAMS: [&str; 2] = ["apply_patch", "applypatch"];

/// Words before the name of a program that leave it the program.
const PREFIX_WORDS: [&str; 11] = [
    "builtin", "command", "do", "else", "env", "eval", "exec", "nohup", "sudo", "then", "time",
];

/// Every file of a patch: `{path, operation, edits | content, move_to}`.
/// Empty if the text is not such a patch.
pub(crate) fn files(text: &str) -> Vec<Value> {
    let mut files: Vec<Map<String, Value>> = Vec::new();
    let mut hunk = Hunk::default();
    for line in text.lines() {
        let header = FILE_MARKS
            .into_iter()
            .find_map(|(mark, operation)| Some((after(line, mark)?, operation)));
        if let Some((path, operation)) = header {
            hunk.close(files.last_mut());
            let parts = [("path", path), ("operation", operation)];
            let parts = parts.map(|(key, text)| (key.to_owned(), json!(text)));
            files.push(Map::from_iter(parts));
            continue;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        if let Some(target) = after(line, MOVE_MARK) {
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

/// Whether a text may contain a patch.
pub(crate) fn has_mark(text: &str) -> bool {
    text.contains(BEGIN_MARK)
}

/// The files of a patch that a shell command applies; empty if the patch is not
/// in the command, `None` if it applies none. `cwd` is where the command runs.
pub(crate) fn files_in_command(command: &str, cwd: Option<&str>) -> Option<Vec<Value>> {
    let program = PROGRAMS.into_iter().find(|name| command.contains(name));
    if program.is_none() && !has_mark(command) {
        return None;
    }
    let mut files = files(&with_headers_apart(command));
    let is_unread = |file: &Value| {
        let path = file.get("path").and_then(Value::as_str);
        path.is_some_and(|path| path.contains("\\n"))
    };
    if files.iter().any(is_unread) {
        // `printf` and `$'…'` turn these into line ends.
        let command = command.replace("\\n", "\n");
        files = self::files(&with_headers_apart(&command));
    }
    if files.is_empty() && !runs_program(command) {
        return None;
    }
    let start = program.unwrap_or(BEGIN_MARK);
    let before = command.split(start).next().unwrap_or_default();
    let folder = folder_after(before, cwd.unwrap_or_default().to_owned());
    for file in files.iter_mut().filter_map(Value::as_object_mut) {
        for key in ["path", "move_to"] {
            if let Some(Value::String(path)) = file.get_mut(key) {
                *path = joined(&folder, path.trim_matches(['"', '\'']));
            }
        }
    }
    Some(files)
}

/// The text with every header at the start of a line: in a command, the first
/// line of a patch may follow other words. Lines of content stay as they are.
fn with_headers_apart(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let is_content = line.starts_with(['+', '-', ' ']);
        let marks = FILE_MARKS.iter().map(|(mark, _)| *mark).chain([MOVE_MARK]);
        let mut starts: Vec<usize> = marks
            .filter(|_| !is_content)
            .flat_map(|mark| line.match_indices(mark).map(|(at, _)| at))
            .filter(|at| *at > 0)
            .collect();
        starts.sort_unstable();
        let mut rest = line;
        let mut done = 0;
        for at in starts {
            let (head, tail) = rest.split_at_checked(at - done).unwrap_or((rest, ""));
            out.push_str(head);
            out.push('\n');
            rest = tail;
            done = at;
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

/// Whether a command runs the program that applies a patch, rather than to
/// mention it.
fn runs_program(command: &str) -> bool {
    let uses = PROGRAMS
        .into_iter()
        .flat_map(|name| command.match_indices(name));
    uses.into_iter().any(|(at, name)| {
        let (before, rest) = command.split_at_checked(at).unwrap_or((command, ""));
        let rest = rest.get(name.len()..).unwrap_or_default();
        let is_in_word = |letter: char| letter.is_alphanumeric() || "_-./".contains(letter);
        let ends = !rest.starts_with(is_in_word) || rest.starts_with(".bat");
        if !ends {
            return false;
        }
        if rest.trim_start().starts_with('<') {
            return true;
        }
        let before = before.trim_end_matches(is_in_word);
        let before = before.trim_end_matches([' ', '\t']);
        let unquoted = before.strip_suffix(['"', '\'']);
        let last_word = |text: &str| text.split_whitespace().next_back().map(str::to_owned);
        match unquoted {
            // The script of `sh -c`.
            Some(before) => last_word(before).is_some_and(|word| {
                word == "eval" || (word.starts_with('-') && word.ends_with('c'))
            }),
            None => {
                before.is_empty()
                    || before.ends_with(['\n', ';', '&', '|', '(', '{', '`'])
                    || last_word(before).is_some_and(|word| {
                        PREFIX_WORDS.contains(&word.as_str()) || word.contains('=')
                    })
            }
        }
    })
}

/// The folder in which a command runs that comes after these ones.
fn folder_after(commands: &str, folder: String) -> String {
    let line = shell::split(commands, Syntax::SCRIPT);
    let mut folder = folder;
    let mut words = line.words.iter().peekable();
    while let Some(word) = words.next() {
        if word.is_program && word.text == "cd" {
            let target = words.find(|word| !word.text.starts_with('-'));
            if let Some(target) = target {
                folder = joined(&folder, &target.text);
            }
        } else if line.is_cut && words.peek().is_none() && word.text.contains(' ') {
            // The start of the script of `sh -c`.
            folder = folder_after(&word.text, folder);
        }
    }
    folder
}

fn joined(folder: &str, path: &str) -> String {
    let is_absolute = path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":");
    if folder.is_empty() || is_absolute {
        return path.to_owned();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// Sets `files`, and for a single file its parts as well.
pub(crate) fn insert_files(text: &str, input: &mut Map<String, Value>) {
    let files = files(text);
    if let [file] = files.as_slice() {
        for key in ["path", "edits", "content"] {
            if let Some(value) = file.get(key) {
                input.insert(key.into(), value.clone());
            }
        }
    }
    input.insert("files".into(), Value::Array(files));
}

/// What follows a mark. Readers of the format trim its lines, so a header with
/// blanks before it counts. To see one file too many does no harm.
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

/// The patch for canonical `files`.
pub(crate) fn write(files: &[Value]) -> String {
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
                let edits = file.get("edits").and_then(Value::as_array);
                for edit in edits.into_iter().flatten() {
                    out.push_str("@@\n");
                    for (mark, key) in [('-', "old"), ('+', "new")] {
                        let text = edit.get(key).and_then(Value::as_str);
                        for line in text.unwrap_or_default().lines() {
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
    fn a_command_that_applies_a_patch_is_read() {
        let patch = "*** Begin Patch\n*** Update File: a/.env\n@@\n-x\n+y\n*** End Patch";
        let one = |path: &str| Some(vec![path.to_owned()]);
        for (command, expected) in [
            (format!("apply_patch <<'EOF'\n{patch}\nEOF"), one("a/.env")),
            (
                format!("apply_patch \"$(cat <<EOF\n{patch}\nEOF\n)\""),
                one("a/.env"),
            ),
            (
                format!("cd sub && apply_patch <<EOF\n{patch}\nEOF"),
                one("sub/a/.env"),
            ),
            (
                format!("cd /x; cd y; apply_patch <<EOF\n{patch}\nEOF"),
                one("/x/y/a/.env"),
            ),
            (
                format!("bash -lc \"cd sub && apply_patch <<'EOF'\n{patch}\nEOF\""),
                one("sub/a/.env"),
            ),
            (format!("apply_patch '{patch}'"), one("a/.env")),
            (
                format!("printf '{}' | apply_patch", patch.replace('\n', "\\n")),
                one("a/.env"),
            ),
            (format!("echo \"{patch}\" > p"), one("a/.env")),
            ("apply_patch < /tmp/p".to_owned(), Some(Vec::new())),
            ("cat p | apply_patch".to_owned(), Some(Vec::new())),
            ("bash -c 'apply_patch p'".to_owned(), Some(Vec::new())),
            ("FOO=1 /usr/bin/apply_patch p".to_owned(), Some(Vec::new())),
            ("grep -rn apply_patch src".to_owned(), None),
            ("grep \"apply_patch\" src".to_owned(), None),
            ("git commit -m 'fix apply_patch'".to_owned(), None),
            ("cat apply_patch.rs".to_owned(), None),
            ("grep '*** Begin Patch' src".to_owned(), None),
            ("ls".to_owned(), None),
        ] {
            let found = files_in_command(&command, None).map(|files| {
                let path = |file: &Value| file["path"].as_str().unwrap().to_owned();
                files.iter().map(path).collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn other_text_is_no_patch() {
        assert!(files("echo hi").is_empty());
        assert!(files("").is_empty());
    }
}
