//! Programs that start one for the words they are fed: `xargs` and `parallel`.

use super::first_operand;
use crate::shell::evaluate::{Evaluator, Scope, StageInput};
use crate::shell::invocation::{Invocation, ResolvedWord, UNKNOWN};

impl Evaluator<'_> {
    pub(super) fn open_xargs(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        const VALUES: &[&str] = &[
            "-a",
            "-d",
            "-E",
            "-I",
            "-L",
            "-n",
            "-P",
            "-s",
            "-J",
            "-R",
            "-S",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--max-chars",
            "--process-slot-var",
        ];
        let at = first_operand(&started.words, 1, VALUES);
        let options = started.words.get(1..at).unwrap_or_default();
        let mut replaced = None;
        for (index, word) in options.iter().enumerate() {
            let attached = word
                .text
                .strip_prefix("-I")
                .or_else(|| word.text.strip_prefix("-i"))
                .or_else(|| word.text.strip_prefix("--replace="))
                .filter(|rest| !rest.is_empty());
            if let Some(attached) = attached {
                replaced = Some(attached.to_owned());
            } else if word.text == "-I" || word.text == "-J" {
                replaced = options.get(index + 1).map(|word| word.text.clone());
            } else if matches!(word.text.as_str(), "-i" | "--replace" | "--replace=") {
                replaced = Some("{}".to_owned());
            }
        }
        let mut words = started.words.get(at..).unwrap_or_default().to_vec();
        if words.is_empty() {
            return self.emit(started);
        }
        // A placeholder is replaced by a whole line.
        let takes_lines = options
            .iter()
            .any(|word| word.text.starts_with("-d") || word.text.starts_with("--delimiter"));
        let mut fed = if replaced.is_some() || takes_lines {
            self.fed_lines(input)
        } else {
            self.fed_words(input)
        };
        let file = options.windows(2).find_map(|pair| match pair {
            [option, file] if matches!(option.text.as_str(), "-a" | "--arg-file") => {
                Some(file.text.clone())
            }
            _ => None,
        });
        if let Some(file) = file {
            // It reads the file, and the words are those of the file.
            fed = vec![ResolvedWord::unknown()];
            let mut reader = Invocation::in_scope(scope);
            "cat".clone_into(&mut reader.name);
            reader.words = vec![ResolvedWord::new("cat"), ResolvedWord::new(file)];
            self.emit(reader);
        }
        if replaced.is_some() {
            return self.start_with_each(&words, &fed, replaced.as_deref(), started, scope, input);
        }
        words = insert_fed(words, &fed, None);
        self.start_inner(words, started, scope, input, Some("xargs"));
    }

    /// Starts a command once for each word in the place of a mark.
    fn start_with_each(
        &mut self,
        words: &[ResolvedWord],
        fed: &[ResolvedWord],
        mark: Option<&str>,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        let via = started.name.clone();
        let unknown = [ResolvedWord::unknown()];
        let fed = if fed.is_empty() { &unknown } else { fed };
        for value in fed.iter().take(8) {
            let words = insert_fed(words.to_vec(), std::slice::from_ref(value), mark);
            self.start_inner(words, started.clone(), scope, input, Some(&via));
        }
    }

    /// Lines that come from the input of a command.
    fn fed_lines(&self, input: &StageInput) -> Vec<ResolvedWord> {
        let Some(text) = &input.text else {
            return self.fed_words(input);
        };
        let lines = text.lines().map(str::trim_start);
        lines
            .filter(|line| !line.is_empty())
            .take(64)
            .map(|line| ResolvedWord {
                text: line.to_owned(),
                sources: vec![input.from.clone()],
                ..ResolvedWord::default()
            })
            .collect()
    }

    /// Words that come from the input of a command.
    fn fed_words(&self, input: &StageInput) -> Vec<ResolvedWord> {
        let sources = vec![input.from.clone()];
        if let Some(text) = &input.text {
            return text
                .split_whitespace()
                .take(64)
                .map(|word| ResolvedWord {
                    text: word.to_owned(),
                    sources: sources.clone(),
                    ..ResolvedWord::default()
                })
                .collect();
        }
        let folders = self.listed_folders(&input.from);
        let texts: Vec<String> = if folders.is_empty() {
            vec![UNKNOWN.to_string()]
        } else {
            folders
                .iter()
                .map(|folder| format!("{}/{UNKNOWN}", folder.trim_end_matches('/')))
                .collect()
        };
        let word = |text| ResolvedWord {
            text,
            sources: sources.clone(),
            ..ResolvedWord::default()
        };
        texts.into_iter().map(word).collect()
    }

    pub(super) fn open_parallel(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        const VALUES: &[&str] = &[
            "-j",
            "-I",
            "-a",
            "-S",
            "--jobs",
            "--colsep",
            "-C",
            "--joblog",
            "-N",
            "-n",
            "-P",
            "--results",
            "--res",
            "--delay",
            "--timeout",
            "--retries",
            "--tmpdir",
            "--workdir",
            "--wd",
            "--tagstring",
            "--sshlogin",
            "--max-args",
            "--max-procs",
            "--arg-file",
            "--load",
            "--memfree",
            "--block",
            "--nice",
            "--halt",
            "--env",
            "-d",
            "--delimiter",
        ];
        let at = first_operand(&started.words, 1, VALUES);
        let words = started.words.get(at..).unwrap_or_default();
        let split = words.iter().position(|word| word.text.starts_with(":::"));
        let (words, values) = match split {
            Some(split) => words.split_at(split),
            None => (words, &[][..]),
        };
        let fed = if split.is_some() {
            values
                .iter()
                .filter(|word| !word.text.starts_with(":::"))
                .cloned()
                .collect()
        } else {
            self.fed_lines(input)
        };
        let texts: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        if texts.is_empty() {
            // Every value is a command.
            for word in fed.iter().take(16) {
                self.run_child_text(&word.text, scope, &StageInput::default());
            }
            return self.emit(started);
        }
        let script = texts.join(" ");
        let options = started.words.get(..at).unwrap_or_default();
        let takes_none = options
            .iter()
            .any(|word| matches!(word.text.as_str(), "-N0" | "-n0" | "--max-args=0"));
        if takes_none {
            return self.run_child_text(&script, scope, &StageInput::default());
        }
        if script.contains([' ', ';', '|', '&']) && words.len() == 1 {
            for value in fed.iter().take(16) {
                let text = if script.contains("{}") {
                    script.replace("{}", &value.text)
                } else {
                    format!("{script} {}", value.text)
                };
                self.run_child_text(&text, scope, &StageInput::default());
            }
            return;
        }
        let words = words.to_vec();
        self.start_with_each(&words, &fed, Some("{}"), started, scope, input);
    }
}

/// Puts words in place of a mark, or at the end if there is no mark.
pub(super) fn insert_fed(
    words: Vec<ResolvedWord>,
    fed: &[ResolvedWord],
    mark: Option<&str>,
) -> Vec<ResolvedWord> {
    let has_mark = mark.is_some_and(|mark| words.iter().any(|word| word.text.contains(mark)));
    let mut placed = Vec::with_capacity(words.len() + fed.len());
    let Some(mark) = mark.filter(|_| has_mark) else {
        placed.extend(words);
        if mark.is_none_or(|mark| mark == "{}") {
            placed.extend(fed.iter().cloned());
        }
        return placed;
    };
    for word in words {
        if !word.text.contains(mark) {
            placed.push(word);
            continue;
        }
        for value in fed.iter().take(16) {
            placed.push(ResolvedWord {
                text: word.text.replace(mark, &value.text),
                is_pattern: word.is_pattern || value.is_pattern,
                sources: value.sources.clone(),
                variables: value.variables.clone(),
            });
        }
    }
    placed
}
