//! The role of each word of a command line, as far as it is known without running a shell.

use std::path::Path;

use anyhook_util::shell::Word;

/// The role of a word in its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordRole {
    Program,
    /// The file that an interpreter runs.
    Script,
    /// The folder of `cd`.
    Folder,
    Argument,
    /// A file that is only written.
    Output,
}

/// Classifies the words of a line, one after the other.
#[derive(Debug, Default)]
pub(crate) struct WordRoles {
    program: String,
    /// A program still follows: the last word was `NAME=value`, or `env`.
    expects_program: bool,
    /// The operand of the program still follows.
    expects_operand: bool,
    /// The program runs what follows it, as far as that is known.
    wraps: bool,
}

/// Programs that run the file that is their first operand.
const INTERPRETERS: [&str; 17] = [
    ".", "bash", "dash", "fish", "ksh", "node", "nodejs", "perl", "php", "pwsh", "python", "ruby",
    "sh", "source", "ts-node", "tsx", "zsh",
];

/// With these options the program is in the line, or is not a file.
const INLINE_OPTIONS: [&str; 8] = ["-c", "-e", "-m", "-p", "-r", "-lc", "--eval", "--print"];

/// Words that are followed by a program.
const WRAPPERS: [&str; 33] = [
    "!", "builtin", "chroot", "chrt", "command", "coproc", "do", "doas", "elif", "else", "env",
    "eval", "exec", "flock", "if", "ionice", "nice", "nohup", "parallel", "setsid", "stdbuf",
    "strace", "sudo", "taskset", "then", "time", "timeout", "unshare", "until", "watch", "while",
    "xargs", "{",
];

/// Options that are followed by a program.
const PROGRAM_OPTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Programs that change the folder.
const MOVERS: [&str; 2] = ["cd", "pushd"];

/// Programs that only write the files that they are given.
const WRITERS: [&str; 5] = ["mkdir", "rm", "rmdir", "tee", "touch"];

impl WordRoles {
    pub(crate) fn next_role(&mut self, word: &Word) -> WordRole {
        if word.is_target {
            return WordRole::Output;
        }
        if word.is_program || self.expects_program {
            let is_option = |text: &str| {
                // `-n 5`, `-I {}`: the argument of an option of a wrapper.
                text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) || text == "{}"
            };
            if assignment(&word.text).is_some() || (self.expects_program && is_option(&word.text)) {
                self.expects_program = true;
                return WordRole::Argument;
            }
            let name = program_name(&word.text);
            // A path leads to a program of the same name that may do anything.
            let is_path = word.text.contains('/');
            self.wraps = WRAPPERS.contains(&name) && !is_path;
            self.expects_program = self.wraps;
            let unversioned = unversioned(name);
            self.expects_operand =
                MOVERS.contains(&unversioned) || INTERPRETERS.contains(&unversioned);
            self.program = if is_path && WRITERS.contains(&name) {
                word.text.clone()
            } else {
                name.to_owned()
            };
            return WordRole::Program;
        }
        if is_program_option(&word.text) {
            self.expects_program = true;
            return WordRole::Argument;
        }
        if WRITERS.contains(&self.program.as_str()) {
            return WordRole::Output;
        }
        if self.expects_operand {
            if INLINE_OPTIONS.contains(&word.text.as_str()) {
                self.expects_operand = false;
            } else if !word.text.starts_with('-') {
                self.expects_operand = false;
                return if MOVERS.contains(&self.program.as_str()) {
                    WordRole::Folder
                } else {
                    WordRole::Script
                };
            }
        }
        WordRole::Argument
    }
}

impl WordRoles {
    /// The name of the current program.
    pub(crate) fn program(&self) -> &str {
        unversioned(&self.program)
    }

    /// Whether what follows may be a program, even if it looks like an argument.
    pub(super) fn wraps(&self) -> bool {
        self.wraps
    }
}

pub(super) fn is_interpreter(program: &str) -> bool {
    INTERPRETERS.contains(&program)
}

/// Whether this option is followed by a program.
pub(super) fn is_program_option(option: &str) -> bool {
    PROGRAM_OPTIONS.contains(&option)
}

/// Whether this option is followed by code.
pub(super) fn is_inline_option(option: &str) -> bool {
    INLINE_OPTIONS.contains(&option)
}

/// The last part of a program's path.
fn program_name(text: &str) -> &str {
    let name = Path::new(text).file_name();
    name.map_or(text, |name| name.to_str().unwrap_or_default())
}

/// `python3.12` as `python`.
fn unversioned(name: &str) -> &str {
    let short = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if short.is_empty() { name } else { short }
}

/// `NAME=value`
pub(super) fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, value))
}
