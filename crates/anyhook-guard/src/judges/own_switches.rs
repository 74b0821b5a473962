//! `self`: texts that switch the hooks off once they are in a file: `ANYHOOK=0` where
//! shells and tools read their variables, `core.hooksPath` in a settings file of git.

use super::Objections;
use super::access::{Access, shell_files};
use super::own_files::anyhook_switch;
use crate::input::{FileUse, GuardInput};
use crate::shell::Invocation;

/// Files from which variables reach the agent or its next session.
const FILES_OF_VARIABLES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".env",
    ".env.local",
    ".envrc",
    ".mise.toml",
    ".pam_environment",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "bash.bashrc",
    "config.fish",
    "environment",
    "mise.toml",
    "zshenv",
];

const FOLDERS_OF_VARIABLES: &[&str] = &["/environment.d/", "/profile.d/", "/fish/conf.d/"];

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    for file in input.files() {
        if file.file_use == FileUse::Write {
            judge_text(&file.path, [file.content.as_str()], &file.path, found);
        }
    }
    for invocation in input.invocations() {
        for file in shell_files(invocation) {
            if let Some(path) = &file.path
                && !matches!(file.access, Access::Read | Access::Search | Access::Delete)
            {
                judge_text(path, texts_of(invocation), &invocation.shown(), found);
            }
        }
    }
}

/// What a command may write: its words, its input, its code.
fn texts_of(invocation: &Invocation) -> impl Iterator<Item = &str> {
    let words = invocation.texts();
    let rest = [invocation.input_text.as_deref(), invocation.code.as_deref()];
    words.chain(rest.into_iter().flatten())
}

fn judge_text<'t>(
    path: &str,
    texts: impl IntoIterator<Item = &'t str>,
    shown: &str,
    found: &mut Objections<'_>,
) {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_git = path.ends_with("/.git/config")
        || path.ends_with("/git/config")
        || matches!(
            name,
            ".gitconfig" | ".gitmodules" | "config.worktree" | "gitconfig"
        );
    let has_variables = FILES_OF_VARIABLES.contains(&name)
        || FOLDERS_OF_VARIABLES
            .iter()
            .any(|folder| path.contains(folder));
    if !is_git && !has_variables {
        return;
    }
    for text in texts {
        if is_git && text.to_ascii_lowercase().contains("hookspath") {
            return found.deny("git-hooks", shown, "this changes which git hooks run");
        }
        if has_variables && sets_switch(text) {
            return found.deny(
                "variables",
                shown,
                "this switches the hooks off or redirects them",
            );
        }
    }
}

/// Whether a text sets a variable of anyhook: `ANYHOOK=0`, `set -gx ANYHOOK 0`.
fn sets_switch(text: &str) -> bool {
    if !text.to_ascii_lowercase().contains("anyhook") {
        return false;
    }
    let words: Vec<&str> = text
        .split(|letter: char| letter.is_whitespace() || "\"';(),{}".contains(letter))
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(index, word)| {
        let next = || words.get(index + 1).copied().unwrap_or_default();
        match word.split_once('=') {
            Some((name, "")) => anyhook_switch(name, next()),
            Some((name, value)) => anyhook_switch(name, value),
            None if next() == "=" => {
                anyhook_switch(word, words.get(index + 2).copied().unwrap_or_default())
            }
            None => {
                let is_set = index > 0
                    && words
                        .iter()
                        .take(index)
                        .rev()
                        .take_while(|word| !word.contains('='))
                        .any(|word| matches!(*word, "set" | "setenv"));
                is_set && anyhook_switch(word, next())
            }
        }
    })
}
