//! Every file in `cases/` is one edit: the operation, the text before, the text
//! after. Each is also taken out again, which must give the text before back.
//! `UPDATE_CASES=1` writes what comes out into the files; read the diff.

#![cfg(test)]

use std::path::Path;

use anyhook_edit::{EditAction, EditError, EditOptions, EditedText, Key, UndoMethod, edit, undo};
use anyhook_model::Format;
use serde_json::Value;

struct Case {
    head: String,
    format: Format,
    verb: String,
    path: Vec<Key>,
    value: Value,
    options: EditOptions,
    before: String,
    after: String,
}

/// Header lines up to `=== before`; `no-newline` drops the last newline of the text before.
fn read(file: &Path) -> Case {
    let whole = std::fs::read_to_string(file).unwrap();
    let (head, rest) = whole.split_once("=== before\n").unwrap();
    let (before, after) = rest.split_once("=== after\n").unwrap();
    let mut case = Case {
        head: head.to_owned(),
        format: Format::Json,
        verb: String::new(),
        path: Vec::new(),
        value: Value::Null,
        options: EditOptions::default(),
        before: before.to_owned(),
        after: after.to_owned(),
    };
    for line in head.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "format" => case.format = serde_json::from_value(Value::from(rest)).unwrap(),
            "append" | "set" => word.clone_into(&mut case.verb),
            "escape-slashes" => case.options.escape_slashes = true,
            "no-newline" => {
                case.before.pop();
            }
            "preamble" => case.options.preamble = serde_json::from_str(rest).unwrap(),
            "path" => case.path = serde_json::from_str(rest).unwrap(),
            "value" => case.value = serde_json::from_str(rest).unwrap(),
            "#" => {}
            other => panic!("{}: unknown line `{other}`", file.display()),
        }
    }
    case
}

fn run(case: &Case) -> Result<EditedText, EditError> {
    let action = if case.verb == "set" {
        EditAction::Set
    } else {
        EditAction::Append
    };
    edit(
        &case.before,
        case.format,
        action,
        &case.path,
        &case.value,
        &case.options,
    )
}

#[test]
fn every_case_goes_in_as_written_and_comes_out_without_a_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 20, "the cases are there");
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut wrong = Vec::new();
    for file in files {
        let case = read(&file);
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let got = match run(&case) {
            Ok(edited) => {
                let out = undo(&edited.text, &edited.patch, &|_| false).unwrap();
                assert_eq!(out.method, UndoMethod::Exact, "{name}");
                assert_eq!(out.text, case.before, "{name}");
                edited.text
            }
            Err(error) => format!("error: {error}\n"),
        };
        // A file ends in a newline even when the text of the case does not.
        let got = if got.ends_with('\n') { got } else { got + "\n" };
        if got == case.after {
            continue;
        }
        if update {
            let mut before = case.before.clone();
            if !before.is_empty() && !before.ends_with('\n') {
                before.push('\n');
            }
            let text = format!("{}=== before\n{before}=== after\n{got}", case.head);
            std::fs::write(&file, text).unwrap();
        } else {
            wrong.push(format!(
                "{name}:\n{}",
                anyhook_edit::diff(&case.after, &got, "expected", "got")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
