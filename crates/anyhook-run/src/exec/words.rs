//! A command line as words, as far as can be known without running a shell.

use std::path::Path;

#[derive(Debug)]
pub struct Word {
    pub start: usize,
    pub end: usize,
    /// Without its quotes.
    pub text: String,
    /// The first word of one of the line's commands.
    pub is_program: bool,
    /// Output is redirected to it.
    pub is_target: bool,
    /// The shell puts something in place of a part of it.
    pub expands: bool,
    /// The shell looks for files of that pattern.
    pub is_pattern: bool,
}

/// Splits as a shell would, as far as quotes and separators go. Expansions
/// stay as they are written.
pub fn words(command: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut is_program = true;
    let mut is_target = false;
    let mut before = ' ';
    for (at, c) in command.char_indices() {
        let after = std::mem::replace(&mut before, c);
        let separates = quote.is_none() && !escaped && (c.is_whitespace() || ";|&()<>".contains(c));
        if separates {
            if let Some(mut ended) = word.take() {
                ended.end = at;
                words.push(ended);
                is_target = false;
            }
            is_target |= c == '>';
            is_program |= ";|&(\n".contains(c) && !is_target;
            continue;
        }
        // What follows `$(…)` at once is the rest of what that gives.
        let is_rest = after == ')';
        let current = word.get_or_insert_with(|| Word {
            start: at,
            end: at,
            text: if is_rest {
                "$()".to_owned()
            } else {
                String::new()
            },
            is_program: std::mem::take(&mut is_program),
            is_target,
            expands: is_rest,
            is_pattern: false,
        });
        if escaped {
            escaped = false;
            current.text.push(c);
            continue;
        }
        current.expands |= quote != Some('\'') && "$`".contains(c);
        current.is_pattern |= quote.is_none() && "*?[".contains(c);
        match (quote, c) {
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => current.text.push(c),
        }
    }
    if let Some(mut ended) = word {
        ended.end = command.len();
        words.push(ended);
    }
    words
}

/// What a word is in its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Program,
    /// What an interpreter is to run.
    Script,
    /// Where `cd` goes.
    Folder,
    Argument,
    /// It is written to, not run nor obeyed.
    Output,
}

/// Tells the role of each word, one after the other.
#[derive(Debug, Default)]
pub struct Roles {
    program: String,
    /// A program is still to come: this was `NAME=value`, or `env`.
    is_due: bool,
    /// Its operand is still to come.
    awaits_operand: bool,
}

/// Programs that run the file that is their first operand.
const INTERPRETERS: [&str; 17] = [
    ".", "bash", "dash", "fish", "ksh", "node", "nodejs", "perl", "php", "pwsh", "python", "ruby",
    "sh", "source", "ts-node", "tsx", "zsh",
];

/// With these the program is in the line, or is no file.
const INLINE: [&str; 8] = ["-c", "-e", "-m", "-p", "-r", "-lc", "--eval", "--print"];

/// Words that a program follows.
const WRAPPERS: [&str; 16] = [
    "!", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then",
    "time", "until", "while", "{",
];

/// Programs that do not run, nor obey, the files that they are given.
const WRITERS: [&str; 5] = ["mkdir", "rm", "rmdir", "tee", "touch"];

impl Roles {
    pub fn next(&mut self, word: &Word) -> Role {
        if word.is_target {
            return Role::Output;
        }
        if word.is_program || self.is_due {
            if assignment(&word.text).is_some() || (self.is_due && word.text.starts_with('-')) {
                self.is_due = true;
                return Role::Argument;
            }
            let name = Path::new(&word.text).file_name();
            let name = name.map_or(word.text.as_str(), |name| name.to_str().unwrap_or_default());
            name.clone_into(&mut self.program);
            self.is_due = WRAPPERS.contains(&name);
            let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let bare = if bare.is_empty() { name } else { bare };
            self.awaits_operand = bare == "cd" || INTERPRETERS.contains(&bare);
            return Role::Program;
        }
        if WRITERS.contains(&self.program.as_str()) {
            return Role::Output;
        }
        if self.awaits_operand {
            if INLINE.contains(&word.text.as_str()) {
                self.awaits_operand = false;
            } else if !word.text.starts_with('-') {
                self.awaits_operand = false;
                return if self.program == "cd" {
                    Role::Folder
                } else {
                    Role::Script
                };
            }
        }
        Role::Argument
    }
}

/// `NAME=value`
pub fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, value))
}
