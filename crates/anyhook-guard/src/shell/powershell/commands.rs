//! Commands that have been read: what they start and assign, and what a pipe feeds them.

use super::translation::translate;
use super::{OpenCommand, Reader};
use crate::shell::invocation::{Invocation, ResolvedWord, UNKNOWN, program_name};

impl Reader<'_, '_> {
    pub(super) fn end_command(&mut self, is_piped: bool) {
        self.end_word();
        let Some(command) = self.open.last_mut() else {
            return;
        };
        let each = command.each.clone();
        let command = std::mem::replace(
            command,
            OpenCommand {
                each,
                ..OpenCommand::default()
            },
        );
        let start = self.evaluator.invocations.len();
        if !command.words.is_empty() || !command.redirects.is_empty() {
            self.start(command);
        }
        let end = self.evaluator.invocations.len();
        if is_piped && let Some(next) = self.open.last_mut() {
            next.from = start..end;
        }
    }

    pub(super) fn start(&mut self, mut command: OpenCommand) {
        if command.words.get(1).is_some_and(|word| word.text == "=") {
            return self.assign(command);
        }
        // A variable alone is printed.
        if let ([_], Some(name)) = (command.words.as_slice(), &command.variable)
            && let Some(name) = name.strip_prefix("env:")
        {
            let words = ["printenv".to_owned(), name.to_ascii_uppercase()];
            return self.evaluator.emit(Invocation {
                name: "printenv".to_owned(),
                words: words.map(ResolvedWord::new).into(),
                ..Invocation::in_scope(&self.scope)
            });
        }
        while command.words.first().is_some_and(|word| {
            matches!(
                word.text.as_str(),
                "." | "foreach" | "if" | "while" | "return" | "try"
            )
        }) {
            command.words.remove(0);
        }
        let mut words = command.words;
        let runs_text = words.first().is_some_and(|word| {
            matches!(
                word.text.to_ascii_lowercase().as_str(),
                "iex" | "invoke-expression"
            )
        });
        let fetches = words.iter().any(|word| {
            let lower = word.text.to_ascii_lowercase();
            ["downloadstring", "downloadfile", "downloaddata"]
                .iter()
                .any(|mark| lower.contains(mark))
        });
        if fetches {
            // `iex (…).DownloadString(…)` runs what the rest of the words fetches.
            let saves = words
                .iter()
                .any(|word| word.text.to_ascii_lowercase().contains("downloadfile"));
            let mut fetched: Vec<ResolvedWord> = std::iter::once(ResolvedWord::new("curl"))
                .chain(words.drain(1..))
                .collect();
            if saves {
                let last = fetched.len() - 1;
                fetched.insert(last, ResolvedWord::new("-o"));
            }
            let start = self.evaluator.invocations.len();
            self.evaluator.emit(Invocation {
                name: "curl".to_owned(),
                words: fetched,
                redirects: command.redirects.clone(),
                ..Invocation::in_scope(&self.scope)
            });
            if !runs_text {
                return;
            }
            let mut result = ResolvedWord::unknown();
            result.sources.push(start..self.evaluator.invocations.len());
            words.push(result);
        }
        // `(command).Property` prints a part of its result.
        if words.first().is_some_and(ResolvedWord::is_unknown)
            && words.get(1).is_some_and(|word| word.text.starts_with('.'))
        {
            return;
        }
        let Some(first) = words.first() else {
            return;
        };
        let name = program_name(&first.text);
        let mut started = Invocation {
            redirects: command.redirects,
            input_from: command.from,
            ..Invocation::in_scope(&self.scope)
        };
        let (name, words) = translate(&name.to_ascii_lowercase(), &name, words);
        if name == "cd" {
            let target = words
                .get(1)
                .map(|word| word.text.clone())
                .unwrap_or_default();
            self.scope.cwd = crate::paths::normalize(self.scope.cwd.as_deref(), &target);
            return;
        }
        started.name.clone_from(&name);
        if name == "eval" {
            let text: Vec<&str> = words
                .iter()
                .skip(1)
                .map(|word| word.text.as_str())
                .collect();
            let text = text.join(" ");
            started.words = words;
            self.evaluator.emit(started);
            if !text.is_empty() && text.chars().any(|letter| letter != UNKNOWN) {
                self.run_inner(&text);
            }
            return;
        }
        if matches!(
            name.as_str(),
            "rm" | "cat" | "tee" | "mv" | "cp" | "printenv" | "mkfs" | "shutdown" | "kill"
        ) {
            started.words = words;
            // `ForEach-Object { Remove-Item $_.FullName }`: each of what was listed.
            let is_each = name == "rm"
                && started
                    .operands()
                    .next()
                    .is_some_and(|word| word.text.starts_with(UNKNOWN) && word.sources.is_empty());
            if is_each && !command.each.is_empty() {
                started.input_from = command.each;
                started.words.retain(|word| !word.text.starts_with(UNKNOWN));
            }
            if name == "rm" && started.operands().next().is_none() {
                let (fed, is_tree) = self.piped_paths(&started.input_from);
                if is_tree {
                    started.words.push(ResolvedWord::new("-r"));
                }
                started.words.push(fed);
            }
            return self.evaluator.emit(started);
        }
        let input = crate::shell::evaluate::StageInput {
            text: self.piped_text(&started.input_from).map(Into::into),
            from: started.input_from.clone(),
        };
        let mut scope = self.scope.clone();
        self.evaluator.start(words, started, &mut scope, &input);
    }

    /// `$name = value`: a text is kept, a command is run.
    fn assign(&mut self, mut command: OpenCommand) {
        let name = command.variable.take().unwrap_or_default();
        command.words.drain(..2);
        let is_value = command.assigns_text
            || matches!(command.words.as_slice(), [only] if only.has_unknown())
            || command
                .words
                .first()
                .is_some_and(|first| !first.sources.is_empty());
        let value = if is_value {
            let text: Vec<&str> = command
                .words
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            ResolvedWord {
                text: text.join(" "),
                sources: command
                    .words
                    .iter()
                    .flat_map(|word| word.sources.iter().cloned())
                    .collect(),
                ..ResolvedWord::default()
            }
        } else {
            let start = self.evaluator.invocations.len();
            command.assigns_text = false;
            if !command.words.is_empty() {
                self.start(command);
            }
            let mut value = ResolvedWord::unknown();
            value.sources.push(start..self.evaluator.invocations.len());
            value
        };
        if let Some(variable) = name.strip_prefix("env:") {
            let text = format!("{}={}", variable.to_ascii_uppercase(), value.text);
            self.evaluator.emit(Invocation {
                name: "export".to_owned(),
                words: vec![ResolvedWord::new("export"), ResolvedWord::new(text)],
                ..Invocation::in_scope(&self.scope)
            });
        }
        if !name.is_empty() {
            self.scope.set(&name, vec![value]);
        }
    }

    /// A text that is piped into a program, if it is known.
    fn piped_text(&self, from: &std::ops::Range<usize>) -> Option<String> {
        let known = crate::shell::output::known_output(&self.evaluator.invocations, from.clone());
        let known = known.filter(|text| !text.is_empty());
        known.or_else(|| {
            // `'a text' | program`: the text is read like the name of a program.
            let [only] = self.evaluator.invocations.get(from.clone())? else {
                return None;
            };
            let [text] = only.words.as_slice() else {
                return None;
            };
            (text.text.contains(' ') && !text.has_unknown()).then(|| text.text.clone())
        })
    }

    /// What a listing feeds into a command: a word, and whether whole trees.
    fn piped_paths(&self, from: &std::ops::Range<usize>) -> (ResolvedWord, bool) {
        let stages = self
            .evaluator
            .invocations
            .get(from.clone())
            .unwrap_or_default();
        let is_tree = stages
            .iter()
            .any(|stage| stage.name == "ls" && stage.has_word("-r"));
        let Some(folder) = self.evaluator.listed_folders(from).into_iter().next() else {
            return (ResolvedWord::unknown(), is_tree);
        };
        let is_filtered = stages
            .iter()
            .any(|stage| stage.name != "ls" || stage.has_word("--filtered"));
        let folder = folder.trim_end_matches('/');
        let mut fed = ResolvedWord::new(if is_filtered {
            format!("{folder}/{UNKNOWN}")
        } else {
            format!("{folder}/*")
        });
        fed.is_pattern = !is_filtered;
        (fed, is_tree)
    }
}
