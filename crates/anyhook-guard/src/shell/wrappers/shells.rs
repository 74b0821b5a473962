//! Shells that start with a script, and the programs that keep shells: `tmux`, `screen`.

use std::rc::Rc;

use super::{child_of, first_operand};
use crate::shell::evaluate::{Evaluator, MAX_WRAPPERS, Scope, StageInput};
use crate::shell::invocation::{Invocation, ResolvedWord};
use crate::shell::output::base64_bytes;
use crate::shell::{powershell, windows_cmd};

pub(crate) const SHELLS: [&str; 19] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash",
    "elvish", "nu", "xonsh", "osh", "ysh", "pdksh", "oksh",
];

impl Evaluator<'_> {
    /// `tmux new-session 'cmd'`, `tmux send-keys 'cmd' Enter`, `screen -dm cmd`.
    pub(super) fn open_multiplexer(
        &mut self,
        started: Invocation,
        scope: &Scope,
        input: &StageInput,
    ) {
        const VALUES: &[&str] = &[
            "-c", "-e", "-F", "-f", "-h", "-L", "-l", "-n", "-p", "-S", "-s", "-T", "-t", "-x",
            "-y",
        ];
        const RUNNING: &[&str] = &[
            "display-popup",
            "if",
            "if-shell",
            "new",
            "new-session",
            "new-window",
            "neww",
            "pipe-pane",
            "pipep",
            "popup",
            "respawn-pane",
            "respawn-window",
            "respawnp",
            "respawnw",
            "run",
            "run-shell",
            "send",
            "send-keys",
            "split-window",
            "splitw",
        ];
        let name = started.name.clone();
        self.emit(started.clone());
        let child = child_of(scope, &name);
        for command in started.arguments().split(|word| word.text == ";") {
            let mut at = first_operand(command, 0, VALUES);
            if name == "tmux" {
                let verb = command.get(at).map_or("", |word| word.text.as_str());
                if !RUNNING.contains(&verb) {
                    continue;
                }
                at = first_operand(command, at + 1, VALUES);
            } else if let Some(typed) = command.iter().position(|word| word.text == "stuff") {
                at = typed + 1;
            }
            let is_typed = command
                .iter()
                .any(|word| matches!(word.text.as_str(), "send-keys" | "send" | "stuff"));
            let rest = command.get(at..).unwrap_or_default();
            if !is_typed && rest.len() > 1 {
                let started = Invocation::in_scope(&child);
                self.start(rest.to_vec(), started, &mut child.clone(), input);
                continue;
            }
            let typed: Vec<&str> = command
                .iter()
                .skip(at)
                .map(|word| word.text.as_str())
                .filter(|text| !matches!(*text, "Enter" | "C-m" | "C-j"))
                .collect();
            let script = typed.join(" ").replace("\\n", "\n").replace("^M", "\n");
            self.run_child_text(&script, &child, input);
        }
    }

    pub(super) fn open_shell(
        &mut self,
        started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        let words = &started.words;
        let mut script = None;
        // What `--rcfile` names is run first.
        let mut first_file: Option<ResolvedWord> = None;
        let mut parameters = 0;
        let mut reads_input = true;
        let is_bare_s = words
            .iter()
            .skip(1)
            .take_while(|word| word.text.starts_with(['-', '+']))
            .any(|word| word.text == "-s");
        let mut index = 1;
        while let Some(word) = words.get(index) {
            let text = word.text.as_str();
            index += 1;
            let is_cluster = text.starts_with(['-', '+']) && !text.starts_with("--");
            if matches!(text, "--rcfile" | "--init-file") {
                first_file = words.get(index).cloned();
                index += 1;
                continue;
            }
            if is_cluster && text.ends_with(['o', 'O']) && !text.contains('c') {
                index += 1;
                continue;
            }
            if text == "--command"
                || (text.starts_with('-') && !text.starts_with("--") && text.contains('c'))
            {
                // The script follows the remaining options.
                while words.get(index).is_some_and(|next| {
                    next.text.starts_with('-') && next.text.len() > 1 && !next.text.contains(' ')
                }) {
                    index += 1;
                }
                script = words.get(index).cloned();
                parameters = index + 1;
                reads_input = false;
                break;
            }
            if text == "-s" || text == "-" || text.starts_with('+') && text.len() > 1 {
                continue;
            }
            if !text.starts_with('-') {
                // A file; `/dev/stdin` and `<(…)` are not.
                reads_input = matches!(text, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
                if is_bare_s {
                    // `bash -s -- a b` reads its input.
                    reads_input = true;
                    break;
                }
                script = self.file_text(word, scope).map(ResolvedWord::new);
                break;
            }
        }
        let first_text = first_file.and_then(|file| self.file_text(&file, scope));
        let mut child = scope.clone();
        let arguments = words.get(parameters..).unwrap_or_default().to_vec();
        child.via.push(started.name.clone());
        for (name, value) in &started.variables {
            Rc::make_mut(&mut child.variables).insert(name.clone(), vec![value.clone()]);
        }
        // `sh -n` only checks the syntax.
        if started.has_option("n", &["--noexec"]) {
            return self.emit(started);
        }
        let mut noted = started;
        noted.code = script.as_ref().map(|script| script.text.clone());
        self.emit(noted);
        if !Self::nesting_left(scope) || child.via.len() > MAX_WRAPPERS {
            self.is_incomplete = true;
            return;
        }
        if let Some(text) = first_text {
            self.run_text(&text, &mut child, &StageInput::default());
        }
        match script {
            Some(script) => {
                if parameters > 0 {
                    let variables = Rc::make_mut(&mut child.variables);
                    for (index, word) in arguments.iter().enumerate().take(9) {
                        variables.insert(index.to_string(), vec![word.clone()]);
                    }
                    let all: Vec<_> = arguments.iter().skip(1).take(64).cloned().collect();
                    variables.insert("@".to_owned(), all.clone());
                    variables.insert("*".to_owned(), all);
                }
                self.run_text(&script.text, &mut child, input);
            }
            None if reads_input => {
                let known = input.text.as_deref().map(str::to_owned).or_else(|| {
                    crate::shell::output::partial_output(&self.invocations, input.from.clone())
                });
                if let Some(text) = known {
                    self.run_text(&text, &mut child, &StageInput::default());
                }
            }
            None => {}
        }
    }

    /// The text of a file that this command writes, or that a process prints.
    pub(in crate::shell) fn file_text(&self, file: &ResolvedWord, scope: &Scope) -> Option<String> {
        self.written_text(scope, &file.text).or_else(|| {
            let source = file.sources.last()?;
            crate::shell::output::known_output(&self.invocations, source.clone())
        })
    }

    pub(super) fn open_powershell(&mut self, started: Invocation, scope: &Scope) {
        let mut script = None;
        let texts: Vec<&str> = started.texts().collect();
        for (index, text) in texts.iter().enumerate() {
            let lower = text.to_ascii_lowercase();
            if lower.starts_with("-c") && "-command".starts_with(&lower) {
                script = Some(texts.get(index + 1..).unwrap_or_default().join(" "));
                break;
            }
            if is_encoded_command(text) {
                break;
            }
            if !lower.starts_with('-') && index == 0 {
                script = Some(texts.join(" "));
                break;
            }
        }
        let encoded = texts.windows(2).find_map(|pair| match pair {
            [option, value] if is_encoded_command(option) => decode_utf16(value),
            _ => None,
        });
        let script = encoded.or(script).or_else(|| started.input_text.clone());
        let via = started.name.clone();
        self.emit(started);
        if let Some(script) = script {
            powershell::run(self, &script, &child_of(scope, &via));
        }
    }

    pub(super) fn open_cmd(&mut self, started: Invocation, scope: &Scope) {
        let texts: Vec<&str> = started.texts().collect();
        let at = texts
            .iter()
            .position(|text| text.eq_ignore_ascii_case("/c") || text.eq_ignore_ascii_case("/k"));
        let words = at.and_then(|at| texts.get(at + 1..)).unwrap_or_default();
        let quoted = |text: &&str| {
            if words.len() > 1 && text.contains([' ', '\t', '&', '|']) {
                format!("\"{text}\"")
            } else {
                (*text).to_owned()
            }
        };
        let script: Vec<String> = words.iter().map(quoted).collect();
        let script = at.map(|_| script.join(" "));
        self.emit(started);
        if let Some(script) = script {
            windows_cmd::run(self, &script, &child_of(scope, "cmd"));
        }
    }
}

/// `-EncodedCommand` in any of its short forms.
pub(crate) fn is_encoded_command(option: &str) -> bool {
    let lower = option.to_ascii_lowercase().replacen('/', "-", 1);
    lower.len() >= 2
        && lower.starts_with("-e")
        && ("-encodedcommand".starts_with(&lower) || lower == "-ec")
}

/// Base64 of UTF-16, as `-EncodedCommand` takes it.
fn decode_utf16(text: &str) -> Option<String> {
    let bytes = base64_bytes(text);
    let units = bytes.chunks_exact(2).map(|pair| {
        let unit = pair
            .iter()
            .rev()
            .fold(0u32, |unit, byte| unit << 8 | u32::from(*byte));
        u16::try_from(unit).unwrap_or_default()
    });
    let text: String = char::decode_utf16(units)
        .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    (!text.is_empty()).then_some(text)
}
