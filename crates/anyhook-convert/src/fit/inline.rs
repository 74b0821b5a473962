//! Commands whose whole program is the command line itself.

use anyhook_util::shell::{self, Syntax};

/// Commands that print or decide, and read nothing.
const PRINTING_COMMANDS: [&str; 9] = [
    ":", "[", "echo", "exit", "false", "printf", "set", "test", "true",
];

/// Programs that read their input and do with it what their arguments say, and
/// nothing else.
const FILTERS: [&str; 9] = [
    "cat", "cut", "egrep", "fgrep", "grep", "head", "jq", "tail", "tr",
];

/// Whether the command prints and ends, whatever its input is.
pub(super) fn only_prints(command: &str) -> bool {
    consists_of(command, |program| PRINTING_COMMANDS.contains(&program))
}

/// Whether nothing but the line shows what the command does: it starts no script.
pub(super) fn is_whole_program(command: &str) -> bool {
    consists_of(command, |program| {
        PRINTING_COMMANDS.contains(&program) || FILTERS.contains(&program)
    })
}

fn consists_of(command: &str, is_known: impl Fn(&str) -> bool) -> bool {
    let lines = command.lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
    let command = lines.collect::<Vec<_>>().join("\n");
    let line = shell::split(&command, Syntax::SCRIPT);
    let mut programs = line.words.iter().filter(|word| word.is_program).peekable();
    programs.peek().is_some()
        && !line.is_cut
        && !command.contains("$(")
        && !command.contains('`')
        && programs.all(|word| is_known(&word.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_are_taken_for_the_program() {
        for (command, prints, is_whole) in [
            ("echo checking", true, true),
            ("echo no >&2; exit 2", true, true),
            ("#!/bin/sh\n# nothing\nexit 0\n", true, true),
            ("#!/usr/bin/env python3\nimport sys\n", false, false),
            ("true", true, true),
            ("jq -e .tool_input.command && exit 2", false, true),
            ("cat | grep -q rm && exit 2", false, true),
            ("./guard.sh", false, false),
            ("echo \"$(./guard.sh)\"", false, false),
            ("echo `./guard.sh`", false, false),
            ("cat | ./guard.sh", false, false),
            ("jq . | my-guard", false, false),
            ("X=1 my-guard", false, false),
            ("sh -c 'exit 2'", false, false),
            ("python3 guard.py", false, false),
            ("if ./guard.sh; then exit 2; fi", false, false),
            ("! ./guard.sh", false, false),
            ("echo 'open", false, false),
            ("", false, false),
        ] {
            assert_eq!(only_prints(command), prints, "{command}");
            assert_eq!(is_whole_program(command), is_whole, "{command}");
        }
    }
}
