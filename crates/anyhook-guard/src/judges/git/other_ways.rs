//! Other ways to lose work: patches applied backwards, pushes through the forge.

use super::{GLOBAL_VALUES, first_operand};
use crate::input::GuardInput;
use crate::judges::Objections;
use crate::shell::Invocation;

/// `git diff | git apply -R` takes back what is not committed.
pub(super) fn judge_reversed_diffs(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    for analysis in input.analyses() {
        for (index, invocation) in analysis.invocations.iter().enumerate() {
            let is_apply = verb(invocation) == Some("apply") || invocation.name == "patch";
            if !is_apply || !invocation.has_option("R", &["--reverse"]) {
                continue;
            }
            let fed = invocation
                .words
                .iter()
                .flat_map(|word| word.sources.iter().cloned().flatten());
            let starts: Vec<usize> = std::iter::once(index).chain(fed).collect();
            let mut named = starts
                .iter()
                .skip(1)
                .filter_map(|at| analysis.invocations.get(*at));
            let mut sources = analysis.upstream(starts.iter().copied()).into_iter();
            if sources.any(is_diff_of_worktree) || named.any(is_diff_of_worktree) {
                found.deny(
                    "discard",
                    invocation.shown(),
                    "this takes uncommitted changes back; stash them first",
                );
            }
        }
    }
}

fn verb(invocation: &Invocation) -> Option<&str> {
    if invocation.name != "git" {
        return None;
    }
    let at = first_operand(&invocation.words, 1, GLOBAL_VALUES);
    invocation.words.get(at).map(|word| word.text.as_str())
}

/// A diff of what is not committed: it names no commit but `HEAD`.
fn is_diff_of_worktree(invocation: &Invocation) -> bool {
    let at = first_operand(&invocation.words, 1, GLOBAL_VALUES);
    let rest = invocation.words.get(at + 1..).unwrap_or_default();
    verb(invocation) == Some("diff")
        && rest
            .iter()
            .take_while(|word| word.text != "--")
            .all(|word| word.text.starts_with('-') || word.text == "HEAD")
}

/// Force pushes through the forge's own client.
pub(super) fn judge_forge(invocation: &Invocation, found: &mut Objections<'_>) {
    let operands: Vec<&str> = invocation
        .operands()
        .map(|word| word.text.as_str())
        .collect();
    let overwrites = match operands.as_slice() {
        ["repo", "sync", ..] => invocation.has_option("", &["--force"]),
        ["api", ..] => {
            invocation.texts().any(|text| text.contains("git/refs"))
                && invocation
                    .texts()
                    .any(|text| text.ends_with("force=true") || text.contains("\"force\":true"))
        }
        _ => false,
    };
    if overwrites {
        found.deny(
            "force-push",
            invocation.shown(),
            "this overwrites remote history",
        );
    }
}
