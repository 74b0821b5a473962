//! Programs that start one for the files they find: `find` and `fd`.

use super::fed_words::insert_fed;
use super::first_operand;
use crate::shell::evaluate::{Evaluator, Scope, StageInput};
use crate::shell::invocation::{Invocation, ResolvedWord, UNKNOWN};

impl Evaluator<'_> {
    pub(super) fn open_find(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let texts: Vec<String> = started.texts().map(str::to_owned).collect();
        let roots: Vec<&String> = texts
            .iter()
            .skip_while(|text| matches!(text.as_str(), "-H" | "-L" | "-P"))
            .take_while(|text| !text.starts_with(['-', '(', '!']))
            .collect();
        let roots: Vec<String> = if roots.is_empty() {
            vec![".".to_owned()]
        } else {
            roots.into_iter().cloned().collect()
        };
        // What is left out by name still leaves everything else.
        let mut is_negated = false;
        let is_filtered = texts.iter().any(|text| {
            if matches!(text.as_str(), "!" | "-not") {
                is_negated = true;
                return false;
            }
            matches!(
                text.as_str(),
                "-name"
                    | "-iname"
                    | "-path"
                    | "-ipath"
                    | "-regex"
                    | "-mtime"
                    | "-mmin"
                    | "-newer"
                    | "-size"
                    | "-empty"
                    | "-user"
                    | "-perm"
                    | "-wholename"
                    | "-atime"
                    | "-ctime"
                    | "-cmin"
                    | "-amin"
            ) && !std::mem::take(&mut is_negated)
        });
        // One plain name is known; of a pattern only the folder is.
        let mut names = texts.windows(2).filter_map(|pair| match pair {
            [option, name] if option == "-name" => Some(name),
            _ => None,
        });
        let only_name = match (names.next(), names.next()) {
            (Some(name), None) if !name.contains(['*', '?', '[', UNKNOWN]) => Some(name),
            _ => None,
        };
        let found: Vec<ResolvedWord> = roots
            .iter()
            .map(|root| {
                let folder = root.trim_end_matches('/');
                let mut word =
                    ResolvedWord::new(if let Some(name) = only_name.filter(|_| is_filtered) {
                        format!("{folder}/{UNKNOWN}/{name}")
                    } else if is_filtered {
                        format!("{folder}/{UNKNOWN}")
                    } else if folder.is_empty() {
                        "/".to_owned()
                    } else {
                        folder.to_owned()
                    });
                // Everything below the folder, or the folder itself.
                if folder == "." && !is_filtered {
                    "./*".clone_into(&mut word.text);
                    word.is_pattern = true;
                }
                word
            })
            .collect();
        self.emit(started.clone());
        if has_delete_action(&texts) {
            let mut words = vec![ResolvedWord::new("rm"), ResolvedWord::new("-r")];
            words.extend(found.iter().cloned());
            self.start_inner(words, started.clone(), scope, input, Some("find"));
        }
        let mut index = 0;
        while let Some(text) = texts.get(index) {
            index += 1;
            if !matches!(text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
                continue;
            }
            let words: Vec<ResolvedWord> = started
                .arguments()
                .iter()
                .skip(index)
                .take_while(|word| !matches!(word.text.as_str(), ";" | "+"))
                .cloned()
                .collect();
            index += words.len();
            let has_mark = words.iter().any(|word| word.text.contains("{}"));
            let words = if has_mark {
                insert_fed(words, &found, Some("{}"))
            } else {
                words
            };
            self.start_inner(
                words,
                started.clone(),
                scope,
                &StageInput::default(),
                Some("find"),
            );
        }
    }

    pub(super) fn open_fd(&mut self, started: Invocation, scope: &mut Scope, input: &StageInput) {
        let exec = started
            .words
            .iter()
            .position(|word| matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        self.emit(started.clone());
        let Some(at) = exec else {
            return;
        };
        let before = started.words.get(..at).unwrap_or_default();
        let values = &[
            "-t",
            "--type",
            "-e",
            "--extension",
            "-E",
            "--exclude",
            "-d",
            "--max-depth",
            "-S",
            "--size",
            "-j",
            "--threads",
        ];
        let pattern = first_operand(before, 1, values);
        let root = before
            .get(first_operand(before, pattern + 1, values))
            .map_or(".", |word| word.text.trim_end_matches('/'));
        let found = [ResolvedWord::new(format!("{root}/{UNKNOWN}"))];
        let words = started.words.get(at + 1..).unwrap_or_default().to_vec();
        let words = insert_fed(words, &found, Some("{}"));
        self.start_inner(words, started, scope, input, Some("fd"));
    }
}

/// Whether `find` deletes by itself; the words of a command that it starts do not count.
fn has_delete_action(texts: &[String]) -> bool {
    let mut in_command = false;
    texts.iter().any(|text| match text.as_str() {
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            in_command = true;
            false
        }
        ";" | "+" => {
            in_command = false;
            false
        }
        "-delete" => !in_command,
        _ => false,
    })
}
