//! `git`: losing work or history.

mod other_ways;
mod push;
mod settings;

use super::Objections;
use crate::input::GuardInput;
use crate::shell::{Invocation, first_operand, is_option};
use settings::{environment_aliases, is_hook_switch, sets_prune_at_once};

/// Options of `git` itself that take the next word.
const GLOBAL_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    let mut aliases: Vec<(String, String)> = Vec::new();
    let mut hooks_are_off = false;
    other_ways::judge_reversed_diffs(input, found);
    for invocation in input.invocations() {
        hooks_are_off |= matches!(
            invocation.name.as_str(),
            "export" | "set" | "declare" | "typeset"
        ) && invocation.operands().any(|word| {
            word.text
                .split_once('=')
                .is_some_and(|(name, value)| is_hook_switch(name) && !value.is_empty())
        });
        hooks_are_off |= crate::shell::SHELLS.contains(&invocation.name.as_str())
            && invocation
                .variables
                .iter()
                .any(|(name, value)| is_hook_switch(name) && !value.text.is_empty());
        if hooks_are_off
            && invocation.name == "git"
            && invocation
                .texts()
                .any(|text| text == "commit" || text == "push")
        {
            found.deny(
                "no-verify",
                invocation.shown(),
                "this switches the project's git hooks off; fix what they report",
            );
        }
        // Only a command whose output becomes options hides them.
        for (name, value) in &invocation.variables {
            if is_hook_switch(name)
                && !value.text.is_empty()
                && invocation.name == "git"
                && invocation
                    .texts()
                    .any(|text| text == "commit" || text == "push")
            {
                found.deny(
                    "no-verify",
                    invocation.shown(),
                    "this switches the project's git hooks off; fix what they report",
                );
            }
            if (name.starts_with("GIT_CONFIG_VALUE")
                || name.starts_with("GIT_CONFIG_KEY")
                || name == "GIT_CONFIG_PARAMETERS")
                && value.text.to_ascii_lowercase().contains("hookspath")
            {
                found.deny(
                    "no-verify",
                    invocation.shown(),
                    "this switches the project's git hooks off",
                );
            }
        }
        aliases.extend(environment_aliases(invocation));
        judge_invocation(invocation, &mut aliases, found);
        if found.is_settled() {
            return;
        }
    }
    found.ask_if_incomplete(input);
}

fn judge_invocation(
    invocation: &Invocation,
    aliases: &mut Vec<(String, String)>,
    found: &mut Objections<'_>,
) {
    let (at, verb) = match invocation.name.as_str() {
        "git" | "hub" | "jj" | "dulwich" => {
            let at = first_operand(&invocation.words, 1, GLOBAL_VALUES);
            let Some(verb) = invocation.words.get(at) else {
                return;
            };
            for (index, word) in invocation.words.iter().enumerate().take(at).skip(1) {
                if word.text == "-c"
                    && let Some((key, value)) = invocation
                        .words
                        .get(index + 1)
                        .and_then(|word| word.text.split_once('='))
                {
                    let key = key.to_ascii_lowercase();
                    if let Some(alias) = key.strip_prefix("alias.") {
                        aliases.push((alias.to_owned(), value.to_owned()));
                    }
                    if key == "core.hookspath" {
                        found.deny(
                            "no-verify",
                            invocation.shown(),
                            "this switches the project's git hooks off; fix what they report",
                        );
                    }
                    let overwrites = key.starts_with("remote.")
                        && (key.ends_with(".push") && value.starts_with('+')
                            || key.ends_with(".mirror") && value != "false");
                    if overwrites && verb.text == "push" {
                        found.deny(
                            "force-push",
                            invocation.shown(),
                            "this overwrites remote history; use `--force-with-lease`",
                        );
                    }
                    if key == "clean.requireforce" && verb.text == "clean" {
                        found.deny("clean", invocation.shown(), "this deletes untracked files");
                    }
                }
                if word.text.starts_with("--config-env")
                    && word.text.to_ascii_lowercase().contains("hookspath")
                {
                    found.deny(
                        "no-verify",
                        invocation.shown(),
                        "this switches the project's git hooks off",
                    );
                }
            }
            if !matches!(invocation.name.as_str(), "git" | "hub") {
                return;
            }
            (at, verb.text.clone())
        }
        "gh" => return other_ways::judge_forge(invocation, found),
        "git-filter-repo" | "bfg" | "bfg.jar" => {
            return found.deny("history", invocation.shown(), "this rewrites the history");
        }
        "java"
            if invocation
                .texts()
                .any(|text| text.contains("bfg") && text.ends_with(".jar")) =>
        {
            return found.deny("history", invocation.shown(), "this rewrites the history");
        }
        name => match name.strip_prefix("git-") {
            Some(verb) => (0, verb.to_owned()),
            None => return,
        },
    };
    if let Some((_, value)) = aliases.iter().find(|(name, _)| *name == verb).cloned() {
        // Expanded once; an alias of an alias is not followed.
        let mut words = invocation.words.clone();
        let replaced: Vec<_> = value
            .trim_start_matches("!git ")
            .split_whitespace()
            .map(crate::shell::ResolvedWord::new)
            .collect();
        words.splice(at..=at, replaced);
        let expanded = Invocation {
            words,
            ..invocation.clone()
        };
        return judge_invocation(&expanded, &mut Vec::new(), found);
    }
    let words = invocation.words.get(at + 1..).unwrap_or_default();
    let call = GitCall {
        invocation,
        texts: words.iter().map(|word| word.text.as_str()).collect(),
    };
    if verb.contains(crate::shell::UNKNOWN) {
        if call.has("f", &["--hard", "--force"]) {
            found.ask_user(
                "dynamic",
                invocation.shown(),
                "which git command this runs is only known at run time",
            );
        }
        return;
    }
    if call
        .before_dashes()
        .any(|text| text == "--help" || text == "-h")
    {
        return;
    }
    call.judge_verb(&verb, aliases, found);
}

/// Whether a word can only be a path: no branch has such a name.
fn names_pathspec(text: &str) -> bool {
    matches!(text, "." | ".." | ":/" | ":(top)")
        || text.ends_with('/')
        || text.contains('*')
        || text.starts_with("./")
        || text.starts_with("../")
}

/// Whether what follows a commit is a file: a path, or a name with an extension.
fn names_file(operands: &[&str]) -> bool {
    operands.iter().skip(1).any(|text| {
        let name = text.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        !extension.is_empty()
            && extension
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric())
    })
}

struct GitCall<'i> {
    invocation: &'i Invocation,
    texts: Vec<&'i str>,
}

impl GitCall<'_> {
    fn before_dashes(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().copied().take_while(|text| *text != "--")
    }

    fn has(&self, letters: &str, long: &[&str]) -> bool {
        self.before_dashes()
            .any(|text| is_option(text, letters, long))
    }

    /// Whether changes are thrown away; in `-bfix` the name of a branch follows the letter.
    fn is_forced(&self, named: &[char], long: &[&str]) -> bool {
        self.before_dashes().any(|text| {
            let is_cluster = text.starts_with('-') && !text.starts_with("--");
            let end = text.find(named).filter(|_| is_cluster);
            is_option(
                text.get(..end.unwrap_or(text.len())).unwrap_or(text),
                "f",
                long,
            )
        })
    }

    /// Operands before and after `--`, options left out.
    fn operands(&self) -> Vec<&str> {
        let mut all = false;
        let mut found = Vec::new();
        for text in &self.texts {
            if all {
                found.push(*text);
            } else if *text == "--" {
                all = true;
            } else if !text.starts_with('-') || *text == "-" {
                found.push(*text);
            }
        }
        found
    }

    fn has_unknown(&self) -> bool {
        self.texts
            .iter()
            .any(|text| text.contains(crate::shell::UNKNOWN))
    }

    fn judge_verb(
        &self,
        verb: &str,
        aliases: &mut Vec<(String, String)>,
        found: &mut Objections<'_>,
    ) {
        let shown = || self.invocation.shown();
        let operands = self.operands();
        match verb {
            "reset" => {
                if self.has("", &["--hard", "--merge"])
                    && !self.before_dashes().any(|text| text == "--h")
                {
                    found.deny(
                        "reset-hard",
                        shown(),
                        "this discards uncommitted work; commit or stash it first",
                    );
                } else if self.texts.iter().any(|text| {
                    text.chars().all(|c| c == crate::shell::UNKNOWN) && !text.is_empty()
                }) && self
                    .invocation
                    .words
                    .iter()
                    .any(|word| word.is_unknown() && !word.sources.is_empty())
                {
                    found.ask_user(
                        "dynamic",
                        shown(),
                        "the options of this reset are only known at run time",
                    );
                }
            }
            "clean" => {
                if self.has("f", &["--force"])
                    && !self.has("n", &["--dry-run"])
                    && !self.has("i", &["--interactive"])
                {
                    found.deny("clean", shown(), "this deletes untracked files; list them with `git clean -n` and delete by name");
                } else if aliases.iter().any(|(name, _)| name == "clean.requireforce")
                    && !self.has("n", &["--dry-run"])
                {
                    found.deny("clean", shown(), "this deletes untracked files");
                }
            }
            "push" => self.judge_push(&operands, found),
            "send-pack" if self.has("f", &["--force", "--mirror"]) => {
                found.deny("force-push", shown(), "this overwrites remote history");
            }
            "checkout" => {
                let dashes = self.texts.iter().position(|text| *text == "--");
                let creates = self.has("bBt", &["--track", "--orphan", "--detach"]);
                if self.is_forced(&['b', 'B'], &["--force"]) {
                    found.deny("discard", shown(), "this discards uncommitted work");
                } else if dashes.is_some_and(|at| at + 1 < self.texts.len())
                    || dashes.is_some() && !self.invocation.input_from.is_empty()
                    || (!creates && operands.iter().any(|text| names_pathspec(text)))
                    || self.has("", &["--pathspec-from-file"])
                {
                    found.deny(
                        "discard",
                        shown(),
                        "this discards uncommitted changes to files; stash them first",
                    );
                } else if !creates && operands.len() > 1 && names_file(&operands) {
                    found.deny(
                        "discard",
                        shown(),
                        "this overwrites files with an older version; stash them first",
                    );
                } else if self.has("B", &[]) {
                    found.ask_user("discard", shown(), "this moves an existing branch");
                }
            }
            "switch" if self.is_forced(&['c', 'C'], &["--force", "--discard-changes"]) => {
                found.deny("discard", shown(), "this discards uncommitted work");
            }
            "switch" if self.has("C", &["--force-create"]) => {
                found.ask_user("move-branch", shown(), "this moves an existing branch");
            }
            "restore" => {
                let worktree = self.has("W", &["--worktree"]);
                let staged = self.has("S", &["--staged"]);
                if (worktree || !staged)
                    && (!operands.is_empty() || self.has("", &["--pathspec-from-file"]))
                {
                    found.deny(
                        "discard",
                        shown(),
                        "this discards uncommitted changes to files; stash them first",
                    );
                }
            }
            "checkout-index" if self.has("f", &["--force"]) => found.deny(
                "discard",
                shown(),
                "this overwrites files in the working tree",
            ),
            "read-tree" if self.has("", &["--reset"]) => {
                found.deny("discard", shown(), "this discards uncommitted work");
            }
            "branch" => {
                let force = self.has("f", &["--force"]);
                if self.has("D", &[]) || (self.has("d", &["--delete"]) && force) {
                    found.deny(
                        "delete-branch",
                        shown(),
                        "this deletes a branch whose commits may be nowhere else; use `-d`",
                    );
                } else if force && !operands.is_empty() || self.has("MC", &[]) {
                    found.ask_user(
                        "move-branch",
                        shown(),
                        "this moves or overwrites an existing branch",
                    );
                }
            }
            "tag" if self.has("d", &["--delete"]) => {
                found.ask_user("delete-tag", shown(), "this deletes a tag");
            }
            "stash" if matches!(operands.first(), Some(&"drop" | &"clear")) => {
                found.deny("stash", shown(), "this deletes stashed work");
            }
            "reflog"
                if matches!(operands.first(), Some(&"expire" | &"delete" | &"drop"))
                    && !self.has("n", &["--dry-run"]) =>
            {
                found.deny(
                    "history",
                    shown(),
                    "this deletes the record with which lost commits can be found",
                );
            }
            "gc" if self.before_dashes().any(|text| {
                text.split_once('=').is_some_and(|(option, value)| {
                    option.len() > 2
                        && "--prune".starts_with(option)
                        && matches!(value, "now" | "all" | "0")
                })
            }) || sets_prune_at_once(self.invocation) =>
            {
                found.deny(
                    "history",
                    shown(),
                    "this deletes unreachable commits for good",
                );
            }
            "prune" if !self.has("n", &["--dry-run"]) => found.deny(
                "history",
                shown(),
                "this deletes unreachable commits for good",
            ),
            "update-ref" if self.has("d", &["--stdin"]) => {
                found.deny("delete-branch", shown(), "this deletes a reference");
            }
            "update-ref" if operands.len() == 2 => {
                found.ask_user(
                    "move-branch",
                    shown(),
                    "this moves a branch to another commit",
                );
            }
            "symbolic-ref" if self.has("d", &["--delete"]) => {
                found.deny("delete-branch", shown(), "this deletes a reference");
            }
            "filter-repo" if self.has("", &["--dry-run", "--analyze"]) => {}
            "filter-branch" | "filter-repo" | "replace"
                if !operands.is_empty() || !self.texts.is_empty() || verb != "replace" =>
            {
                found.deny("history", shown(), "this rewrites the history");
            }
            "worktree" if operands.first() == Some(&"remove") && self.has("f", &["--force"]) => {
                found.deny(
                    "discard",
                    shown(),
                    "this deletes a working tree with its changes",
                );
            }
            "submodule" if operands.first() == Some(&"deinit") && self.has("f", &["--force"]) => {
                found.deny("discard", shown(), "this discards changes in a submodule");
            }
            "lfs" if matches!(operands.as_slice(), ["migrate", "import" | "export", ..]) => {
                found.deny("history", shown(), "this rewrites the history");
            }
            "rm" if self.has("f", &["--force"])
                && operands
                    .iter()
                    .any(|text| matches!(*text, "." | "*" | ":/"))
                && !self.has("", &["--cached", "--dry-run"]) =>
            {
                found.deny(
                    "discard",
                    shown(),
                    "this deletes every file of the working tree",
                );
            }
            "remote" if matches!(operands.first(), Some(&"prune")) => {}
            "config" => self.judge_config(&operands, aliases, found),
            "commit" | "merge" | "rebase" | "am" | "cherry-pick" | "revert" | "pull" => {
                if self.skips_hooks(verb == "commit" || verb == "am") {
                    found.deny(
                        "no-verify",
                        shown(),
                        "this skips the project's git hooks; fix what they report",
                    );
                }
                if verb == "rebase" && self.has("", &["--root"]) {
                    found.ask_user(
                        "history",
                        shown(),
                        "this rewrites the whole history of the branch",
                    );
                }
            }
            "fast-import" | "fast-export" if self.has("f", &["--force"]) => {
                found.deny("history", shown(), "this overwrites branches");
            }
            _ => {}
        }
    }
}
