//! `paths`: read-only and forbidden files for every tool.

use super::Objections;
use super::access::{Access, shell_files};
use crate::input::{FileUse, GuardInput};
use crate::paths::{glob_matches, is_within, normalize, path_matches};
use crate::shell::{Invocation, ResolvedWord, UNKNOWN};

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    if !found.options.has("--read-only") && !found.options.has("--forbid") {
        return;
    }
    let lists = PathLists {
        read_only: found
            .options
            .all("--read-only")
            .map(str::to_owned)
            .collect(),
        forbidden: found.options.all("--forbid").map(str::to_owned).collect(),
        project: input.project.as_deref(),
        home: input.home.as_deref(),
    };
    for file in input.files() {
        let changes = matches!(file.file_use, FileUse::Write | FileUse::Delete);
        let is_forbidden = lists.matches(
            &lists.forbidden,
            &file.path,
            file.file_use == FileUse::Delete,
        ) || file.file_use == FileUse::Search
            && file.glob.as_deref().is_some_and(|glob| lists.names(glob));
        if is_forbidden {
            found.deny("forbidden", &file.path, "this file must not be used");
        } else if changes
            && lists.matches(
                &lists.read_only,
                &file.path,
                file.file_use == FileUse::Delete,
            )
        {
            found.deny("read-only", &file.path, "this file must not be changed");
        }
    }
    for invocation in input.invocations() {
        lists.judge(invocation, found);
        if found.is_settled() {
            return;
        }
    }
    found.ask_if_incomplete(input);
}

struct PathLists<'i> {
    read_only: Vec<String>,
    forbidden: Vec<String>,
    project: Option<&'i str>,
    home: Option<&'i str>,
}

impl PathLists<'_> {
    /// Whether a pattern of the list matches the path; for a delete also whether
    /// the path is a folder above what the pattern names.
    fn matches(&self, list: &[String], path: &str, with_parents: bool) -> bool {
        list.iter().any(|pattern| {
            path_matches(pattern, path, self.project, self.home)
                || with_parents && self.is_above(pattern, path)
        })
    }

    fn is_above(&self, pattern: &str, path: &str) -> bool {
        let fixed: Vec<&str> = pattern
            .split('/')
            .take_while(|part| !part.contains(['*', '?', '[']))
            .collect();
        let fixed = fixed.join("/");
        if fixed.is_empty() {
            return false;
        }
        let expanded = match (fixed.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => format!("{home}/{rest}"),
            _ => fixed,
        };
        normalize(self.project, &expanded)
            .is_some_and(|fixed| is_within(&fixed, path) && path != "/")
    }

    /// Whether a pattern of a search names a forbidden path.
    fn names(&self, glob: &str) -> bool {
        let path = glob.trim_start_matches("**/");
        normalize(self.project, path)
            .is_some_and(|path| self.matches(&self.forbidden, &path, false))
    }

    fn judge(&self, invocation: &Invocation, found: &mut Objections<'_>) {
        let shown = || invocation.shown();
        for file in shell_files(invocation) {
            let Some(path) = &file.path else {
                continue;
            };
            let changes = matches!(file.access, Access::Write | Access::Delete);
            if path.contains(UNKNOWN) {
                let known = path
                    .split(UNKNOWN)
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches('/');
                if changes && self.matches(&self.read_only, known, false) {
                    found.deny(
                        "read-only",
                        shown(),
                        "this changes files that must not be changed",
                    );
                } else if self.matches(&self.forbidden, known, false) {
                    found.deny(
                        "forbidden",
                        shown(),
                        "this uses files that must not be used",
                    );
                } else if changes
                    && !self.read_only.is_empty()
                    && invocation.via.iter().any(|via| via == "find")
                    && self
                        .read_only
                        .iter()
                        .any(|pattern| self.is_above(pattern, known))
                {
                    found.ask_user(
                        "read-only",
                        shown(),
                        "this may change files that must not be changed",
                    );
                } else if changes
                    && file.word.is_unknown()
                    && invocation
                        .redirects
                        .iter()
                        .any(|redirect| redirect.target.is_unknown())
                {
                    found.ask_user(
                        "unknown-path",
                        shown(),
                        "which file this changes is only known at run time",
                    );
                }
                continue;
            }
            let is_tree =
                file.access == Access::Delete || invocation.has_option("rR", &["--recursive"]);
            if self.hits(&self.forbidden, path, file.word.is_pattern, is_tree) {
                found.deny(
                    "forbidden",
                    shown(),
                    "this uses a file that must not be used",
                );
            } else if changes
                && !self.is_scratch_copy(path)
                && self.hits(&self.read_only, path, file.word.is_pattern, is_tree)
            {
                found.deny(
                    "read-only",
                    shown(),
                    "this changes a file that must not be changed",
                );
            }
        }
        // Every other program that names a forbidden file.
        if !self.forbidden.is_empty()
            && !matches!(
                invocation.name.as_str(),
                "echo" | "printf" | "git" | "sed" | "grep" | "rg" | "awk" | ""
            )
        {
            // A script of the folder as well, which is read to run it.
            let is_script = |word: &&ResolvedWord| word.text.contains('/');
            let program = invocation.words.first().filter(is_script);
            for word in program.into_iter().chain(invocation.arguments()) {
                for text in [
                    word.text.as_str(),
                    word.text.rsplit(['=', '@', ':']).next().unwrap_or_default(),
                ] {
                    let looks_like_path = text.contains('/')
                        || self.forbidden.iter().any(|pattern| !pattern.contains('/'))
                        || self
                            .forbidden
                            .iter()
                            .any(|pattern| pattern.split('/').next() == Some(text));
                    if looks_like_path
                        && !text.contains([' ', '\n'])
                        && let Some(path) = normalize(invocation.cwd.as_deref(), text)
                        && self.hits(&self.forbidden, &path, word.is_pattern, false)
                    {
                        found.deny(
                            "forbidden",
                            shown(),
                            "this uses a file that must not be used",
                        );
                    }
                }
            }
        }
        if let Some(cwd) = invocation.cwd.as_deref()
            && !invocation.name.is_empty()
            && self.matches(&self.forbidden, cwd, false)
        {
            found.deny(
                "forbidden",
                shown(),
                "this runs in a folder that must not be used",
            );
        }
        self.judge_patch(invocation, found);
    }

    /// A file in a temporary folder that only has the name of a listed one:
    /// `cp LICENSE /tmp`.
    fn is_scratch_copy(&self, path: &str) -> bool {
        ["/tmp/", "/var/tmp/"].iter().any(|folder| {
            path.starts_with(folder)
                && !self
                    .project
                    .is_some_and(|project| project.starts_with(folder))
                && !self
                    .read_only
                    .iter()
                    .any(|pattern| pattern.starts_with(folder))
        })
    }

    fn hits(&self, list: &[String], path: &str, is_pattern: bool, is_tree: bool) -> bool {
        if self.matches(list, path, is_tree) {
            return true;
        }
        if !is_pattern {
            return false;
        }
        // A shell's pattern against the fixed start of ours, part by part.
        let mine: Vec<&str> = path.split('/').collect();
        list.iter().any(|pattern| {
            let expanded = match (pattern.strip_prefix("~/"), self.home) {
                (Some(rest), Some(home)) => format!("{home}/{rest}"),
                _ => pattern.clone(),
            };
            let Some(theirs) = normalize(
                self.project,
                expanded.trim_end_matches("/**").trim_start_matches("**/"),
            ) else {
                return false;
            };
            let theirs: Vec<&str> = theirs.split('/').collect();
            theirs.len() <= mine.len()
                && theirs
                    .iter()
                    .zip(&mine)
                    .all(|(their, my)| glob_matches(my, their) || glob_matches(their, my))
        })
    }

    /// Patches on the standard input of `git apply`, `patch` and `apply_patch`.
    fn judge_patch(&self, invocation: &Invocation, found: &mut Objections<'_>) {
        for path in patched_paths(invocation) {
            let Some(path) = normalize(invocation.cwd.as_deref(), &path) else {
                continue;
            };
            if self.matches(&self.forbidden, &path, false)
                || self.matches(&self.read_only, &path, false)
            {
                found.deny(
                    "read-only",
                    &path,
                    "this patch changes a file that must not be changed",
                );
            }
        }
    }
}

/// The files that a patch on standard input or in an argument names.
pub(crate) fn patched_paths(invocation: &Invocation) -> Vec<String> {
    let is_patch = matches!(
        invocation.name.as_str(),
        "patch" | "apply_patch" | "applypatch"
    ) || invocation.name == "git"
        && (invocation.has_word("apply") || invocation.has_word("am"));
    if !is_patch {
        return Vec::new();
    }
    let texts = invocation
        .input_text
        .as_deref()
        .into_iter()
        .chain(invocation.texts().filter(|text| text.contains('\n')));
    let mut found = Vec::new();
    for line in texts.flat_map(str::lines) {
        let line = line.trim();
        for mark in [
            "*** Update File: ",
            "*** Add File: ",
            "*** Delete File: ",
            "*** Move to: ",
            "+++ ",
            "--- ",
            "rename to ",
        ] {
            if let Some(path) = line.strip_prefix(mark) {
                let path = path.split('\t').next().unwrap_or_default();
                let path = path
                    .strip_prefix("a/")
                    .or_else(|| path.strip_prefix("b/"))
                    .unwrap_or(path);
                found.push(path.to_owned());
            }
        }
    }
    found
}
