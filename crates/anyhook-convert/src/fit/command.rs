//! What the converted hook starts.

use std::fmt::Write as _;

use anyhook_agents::config::hook_keys;
use anyhook_agents::spec::Shell;
use anyhook_model::{Handler, HandlerKind, interpreter};
use anyhook_util::shell::{self, Syntax};
use serde_json::{Map, Value};

use super::HookFitter;
use crate::report::WarningSeverity::Critical;

impl HookFitter<'_> {
    /// Writes a program and its arguments as a shell line, where the target has no
    /// arguments.
    pub(super) fn fit_arguments(&mut self, handler: &mut Handler, data: &mut Map<String, Value>) {
        let command = handler.command.as_deref().unwrap_or_default();
        if interpreter::runs_its_input(command, handler.args.as_deref()) {
            let message = format!(
                "`{command}` has no script: it runs the event on its input as one, with the model's text in it"
            );
            self.warnings.warn(Critical, "handler.command", message);
        }
        let spelled = data.get_mut(hook_keys::SECOND_POINTERS);
        let spelled = spelled.and_then(Value::as_object_mut);
        let has_own_form = spelled.as_ref().is_some_and(|it| it.contains_key("args"));
        let has_arguments = handler.args.as_ref().is_some_and(|args| !args.is_empty());
        if has_arguments && (has_own_form || self.config.handler.has("args")) {
            return;
        }
        // The keys of the own form would get what is a shell line now.
        if let Some(spelled) = spelled.filter(|_| has_own_form) {
            spelled.retain(|field, _| field != "args" && field != "command");
        }
        if handler.args.is_some() {
            handler.command = command_line(handler);
            handler.args = None;
            let message = format!("{} starts a shell line: quoted as one", self.target());
            self.warnings.info("handler.args", message);
            self.warnings
                .info("handler.command", "its arguments are part of it now");
        }
    }
}

impl HookFitter<'_> {
    /// Starts a shell for a line that needs one, where the target starts none.
    pub(super) fn fit_missing_shell(&mut self, handler: &mut Handler) {
        let Some(line) = handler.command.as_mut() else {
            return;
        };
        let launch = &self.adapter.spec.launch;
        let has_mark = |marks: &str| line.contains(|letter| marks.contains(letter));
        let marks = launch.shell_characters.as_deref();
        let has_shell = launch.shell != Shell::None && marks.is_none_or(has_mark);
        if has_shell || self.is_same_config || handler.args.is_some() || is_plain_line(line) {
            return;
        }
        *line = if marks.is_some() {
            format!("true; {line}")
        } else {
            format!("/bin/sh -c {}", shell::quote(line))
        };
        let message = format!("{} starts no shell: a shell runs the line", self.target());
        self.warnings.info("handler.command", message);
    }
}

/// Commands of a shell that are no programs.
const BUILT_IN: [&str; 12] = [
    "!", ".", ":", "cd", "eval", "exec", "exit", "export", "set", "source", "ulimit", "umask",
];

/// Whether a line means the same when it is only split into words.
fn is_plain_line(line: &str) -> bool {
    let syntax = Syntax {
        escapes: true,
        operators: true,
        is_blank: |letter| letter == ' ' || letter == '\t',
    };
    let split = shell::split(line, syntax);
    let is_plain = |word: &shell::Word| !word.expands && !word.is_pattern;
    let needs_shell =
        |word: &shell::Word| word.text.contains('=') || BUILT_IN.contains(&word.text.as_str());
    !split.has_operators
        && !split.is_cut
        && !line.contains(['\n', '#'])
        && split.words.iter().all(is_plain)
        && !split.words.first().is_some_and(needs_shell)
}

impl HookFitter<'_> {
    /// Fits a hook that has a command for Windows and none for other systems.
    /// Returns whether it can be written.
    pub(super) fn fit_windows_only(&mut self, handler: &mut Handler) -> bool {
        if !is_windows_only(handler) || self.is_same_config {
            return true;
        }
        let target = self.target();
        if !self.config.handler.has("platform.windows") {
            let message = format!(
                "it runs on Windows only, and {target} has no commands per operating system: \
                 the hook is left out"
            );
            self.warn_weakened("handler.platform", message);
            return false;
        }
        let own = self.hook.provider_data.get(self.adapter.spec.id.as_ref());
        let was_alone = own.and_then(|data| data.get(hook_keys::WINDOWS_ONLY));
        handler.command = match was_alone {
            Some(_) => None,
            None => Some(hook_keys::NO_COMMAND.to_owned()),
        };
        let message = "it runs on Windows only: elsewhere nothing is started";
        self.warnings.info("handler.command", message);
        true
    }
}

/// Whether a handler has a command for Windows and none for other systems.
pub(crate) fn is_windows_only(handler: &Handler) -> bool {
    let command = handler.command.as_deref().unwrap_or_default();
    let others = [&handler.platform.linux, &handler.platform.osx];
    handler.kind == HandlerKind::Command
        && handler.platform.windows.is_some()
        && (command.is_empty() || command == hook_keys::NO_COMMAND)
        && others.iter().all(|command| command.is_none())
}

/// The command as a line for a POSIX shell; `${NAME}` stays a variable.
pub(crate) fn command_line(handler: &Handler) -> Option<String> {
    let command = handler.command.as_ref()?;
    let Some(args) = &handler.args else {
        return Some(command.clone());
    };
    let words = std::iter::once(command).chain(args);
    let words: Vec<String> = words.map(|word| quote_around_variables(word)).collect();
    Some(words.join(" "))
}

/// One word for a POSIX shell, in which `${NAME}` is expanded and nothing else.
fn quote_around_variables(word: &str) -> String {
    let mut quoted = String::new();
    let mut rest = word;
    while let Some((before, name, after)) = next_braced(rest) {
        if !before.is_empty() {
            quoted.push_str(&shell::quote_if_needed(before));
        }
        let _ = write!(quoted, "\"${{{name}}}\"");
        rest = after;
    }
    if !rest.is_empty() || quoted.is_empty() {
        quoted.push_str(&shell::quote_if_needed(rest));
    }
    quoted
}

/// The text before the first `${NAME}`, the name, and the text after it.
fn next_braced(text: &str) -> Option<(&str, &str, &str)> {
    for (start, _) in text.match_indices("${") {
        let Some((name, after)) = text.get(start + 2..).and_then(|rest| rest.split_once('}'))
        else {
            continue;
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.is_empty() && name.chars().all(is_name) {
            return Some((text.get(..start)?, name, after));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_words_of_a_line() {
        for (args, line) in [
            (vec!["guard.sh"], "bash guard.sh"),
            (vec![], "bash"),
            (vec!["a b", "", "it's"], r"bash 'a b' '' 'it'\''s'"),
            (vec!["$(id)", "`id`", "*.sh"], "bash '$(id)' '`id`' '*.sh'"),
            (
                vec!["${P_DIR}/my hooks/g.sh", "--x=${Y}", "${a-b}"],
                "bash \"${P_DIR}\"'/my hooks/g.sh' --x=\"${Y}\" '${a-b}'",
            ),
        ] {
            let handler = Handler {
                command: Some("bash".to_owned()),
                args: Some(args.into_iter().map(str::to_owned).collect()),
                ..Handler::default()
            };
            assert_eq!(command_line(&handler).as_deref(), Some(line));
        }
    }
}
