//! The folders that the output of a command names.

use std::ops::Range;

use super::Evaluator;
use super::builtins::temporary_name;
use crate::paths::normalize;
use crate::shell::invocation::Invocation;

impl Evaluator<'_> {
    /// Folders that commands print.
    pub(super) fn known_folder(&self, range: Range<usize>) -> Option<String> {
        let [only] = self.invocations.get(range.clone())? else {
            return None;
        };
        match only.name.as_str() {
            "pwd" => only.cwd.clone(),
            "mktemp" => Some(temporary_name(only, range.start)),
            "git" if only.has_word("--show-toplevel") => self.project.map(str::to_owned),
            "which" | "type" => only.arguments().last().map(|word| word.text.clone()),
            "command" => only.arguments().last().map(|word| word.text.clone()),
            "realpath" | "readlink" => {
                let path = only.operands().last()?;
                (!path.has_unknown()).then(|| normalize(only.cwd.as_deref(), &path.text))?
            }
            "dirname" => {
                let path = only.operands().last()?;
                let (folder, _) = path.text.rsplit_once('/')?;
                Some(if folder.is_empty() {
                    "/".into()
                } else {
                    folder.into()
                })
            }
            _ => None,
        }
    }

    /// The folders below which the names lie that a pipeline's commands print.
    pub(in crate::shell) fn listed_folders(&self, from: &Range<usize>) -> Vec<String> {
        let Some(first) = self.first_producer(from) else {
            return Vec::new();
        };
        let cwd = || first.cwd.clone().into_iter().collect();
        match first.name.as_str() {
            "find" | "fd" | "fdfind" => {
                let roots: Vec<&str> = if first.name == "find" {
                    first
                        .texts()
                        .skip_while(|text| matches!(*text, "-H" | "-L" | "-P"))
                        .take_while(|text| !text.starts_with(['-', '(', '!']))
                        .collect()
                } else {
                    first
                        .operands()
                        .skip(1)
                        .map(|word| word.text.as_str())
                        .collect()
                };
                if roots.is_empty() {
                    return cwd();
                }
                roots
                    .iter()
                    .filter_map(|root| normalize(first.cwd.as_deref(), root))
                    .collect()
            }
            "locate" | "plocate" | "mdfind" => vec!["/".to_owned()],
            "ls" | "dir" => {
                let roots: Vec<String> = first
                    .operands()
                    .filter_map(|word| normalize(first.cwd.as_deref(), &word.text))
                    .map(|path| path.trim_end_matches(['*', '/']).to_owned())
                    .collect();
                // Without a folder in its output, a name is relative to the reader.
                if roots.is_empty() { cwd() } else { roots }
            }
            "git"
                if first.has_word("ls-files")
                    || first.has_word("status")
                    || first.has_word("diff") =>
            {
                cwd()
            }
            "rg" | "grep" | "egrep" | "fgrep" | "ag" => {
                let roots: Vec<String> = first
                    .operands()
                    .skip(1)
                    .filter(|word| !word.is_pattern)
                    .filter_map(|word| normalize(first.cwd.as_deref(), &word.text))
                    .collect();
                if roots.is_empty() { cwd() } else { roots }
            }
            _ => Vec::new(),
        }
    }

    /// The command at the head of a pipeline, through filters.
    fn first_producer(&self, from: &Range<usize>) -> Option<&Invocation> {
        let mut from = from.clone();
        for _ in 0..16 {
            let invocation = self.invocations.get(from.clone())?.last()?;
            let is_filter = matches!(
                invocation.name.as_str(),
                "grep"
                    | "egrep"
                    | "fgrep"
                    | "head"
                    | "tail"
                    | "sort"
                    | "uniq"
                    | "sed"
                    | "awk"
                    | "cut"
                    | "tr"
                    | "xargs"
                    | "tee"
                    | "rg"
                    | "cat"
            );
            if is_filter && !invocation.input_from.is_empty() {
                from = invocation.input_from.clone();
                continue;
            }
            return Some(invocation);
        }
        None
    }
}
