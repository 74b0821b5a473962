//! Whether a program that a command starts is the one that a condition names.

use super::Predicate;
use super::evaluate::Truth;
use crate::paths::glob_matches;
use crate::shell::{Invocation, UNKNOWN, is_option};

/// Values with which an option is switched off.
const OFF_VALUES: [&str; 5] = ["false", "0", "no", "off", "none"];

impl Predicate {
    pub(super) fn names_program(&self) -> bool {
        !(self.commands.is_empty() && self.flags.is_empty() && self.arguments.is_empty())
    }

    /// Patterns of programs of which the call must start one; none if the condition can
    /// also hold for other calls.
    pub(crate) fn program_patterns(&self) -> Vec<&str> {
        let programs = self.commands.iter().filter_map(|words| words.first());
        programs.map(String::as_str).collect()
    }

    /// `command`, `flags` and `args` for one program. `is_exception` is set below `not`,
    /// where what only looks like a match must not count.
    pub(super) fn matches_program(&self, invocation: &Invocation, is_exception: bool) -> Truth {
        let commands = self
            .commands
            .iter()
            .map(|words| matches_words(words, invocation, is_exception));
        let flags = self
            .flags
            .iter()
            .map(|flag| Truth::from(has_flag(flag, invocation, is_exception)));
        let arguments = self
            .arguments
            .iter()
            .map(|pattern| matches_argument(pattern, invocation));
        [
            Truth::of_any(commands),
            Truth::of_any(flags),
            Truth::of_any(arguments),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(Truth::Yes)
    }
}

/// The program, then each further word in this order; options anywhere.
fn matches_words(words: &[String], invocation: &Invocation, is_exception: bool) -> Truth {
    let Some((program, rest)) = words.split_first() else {
        return Truth::No;
    };
    let mut truth = matches_name(program, invocation);
    let mut texts = invocation.texts();
    for word in rest {
        if truth == Truth::No {
            break;
        }
        let found = if word.starts_with('-') {
            Truth::from(has_flag(word, invocation, is_exception))
        } else if texts.any(|text| matches_word(word, text)) {
            Truth::Yes
        } else if invocation
            .arguments()
            .iter()
            .any(crate::shell::ResolvedWord::is_unknown)
        {
            Truth::Unknown
        } else {
            Truth::No
        };
        truth = truth.min(found);
    }
    truth
}

/// A program whose name is only known at run time may be any.
fn matches_name(pattern: &str, invocation: &Invocation) -> Truth {
    if invocation.name.is_empty() {
        return if is_hidden(invocation) {
            Truth::Unknown
        } else {
            Truth::No
        };
    }
    Truth::from(glob_matches(pattern, &invocation.name))
}

/// Whether the name of a program is only known at run time.
pub(super) fn is_hidden(invocation: &Invocation) -> bool {
    let first = invocation.words.first();
    invocation.name.is_empty() && first.is_some_and(crate::shell::ResolvedWord::has_unknown)
}

/// A word pattern: `*` also matches slashes.
fn matches_word(pattern: &str, text: &str) -> bool {
    pattern == text || glob_matches(&pattern.replace('*', "**"), text)
}

fn matches_argument(pattern: &str, invocation: &Invocation) -> Truth {
    let of_word = |text: &str| {
        if matches_word(pattern, text) {
            Truth::Yes
        } else if may_become(pattern, text) {
            Truth::Unknown
        } else {
            Truth::No
        }
    };
    invocation.texts().map(of_word).max().unwrap_or(Truth::No)
}

/// Whether the unknown parts of a word may be such that the pattern matches it.
fn may_become(pattern: &str, text: &str) -> bool {
    let (Some((start, _)), Some((_, end))) = (text.split_once(UNKNOWN), text.rsplit_once(UNKNOWN))
    else {
        return false;
    };
    pattern.contains('*') || (pattern.starts_with(start) && pattern.ends_with(end))
}

/// Whether the program has the option. As an exception it does not count with a value
/// that switches it off, nor together with its opposite (`--no-…`).
fn has_flag(flag: &str, invocation: &Invocation, is_exception: bool) -> bool {
    let options = || invocation.texts().take_while(|text| *text != "--");
    let letter = flag
        .strip_prefix('-')
        .filter(|rest| rest.chars().count() == 1);
    if let Some(letter) = letter {
        return options().any(|text| is_option(text, letter, &[]));
    }
    let opposite = flag.strip_prefix("--").map(|name| format!("--no-{name}"));
    if is_exception && options().any(|text| Some(text) == opposite.as_deref()) {
        return false;
    }
    options().any(|text| {
        let value = text
            .strip_prefix(flag)
            .and_then(|rest| rest.strip_prefix('='));
        match value {
            None => text == flag,
            Some(value) if is_exception => {
                !value.contains(UNKNOWN)
                    && !OFF_VALUES.contains(&value.to_ascii_lowercase().as_str())
            }
            Some(_) => true,
        }
    })
}
