//! Calls of `gh` that destroy.

use crate::judges::{Objections, is_delete_request};
use crate::shell::Invocation;

pub(super) fn judge_github(lower: &[String], invocation: &Invocation, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    let group = lower.first().map_or("", String::as_str);
    let action = lower.get(1).map_or("", String::as_str);
    match (group, action) {
        ("repo", "delete") => found.deny("repository", shown(), "this deletes a repository"),
        ("repo", "archive" | "rename")
        | (
            "release" | "secret" | "variable" | "cache" | "codespace" | "gist" | "issue" | "label"
            | "project" | "ruleset" | "ssh-key" | "gpg-key" | "run",
            "delete",
        )
        | ("secret" | "variable", "remove")
        | ("workflow", "disable")
        | ("release", "delete-asset") => {
            found.ask_user(
                "repository",
                shown(),
                "this deletes or archives a part of a repository",
            );
        }
        ("repo", "edit")
            if invocation
                .texts()
                .any(|text| text.starts_with("--visibility")) =>
        {
            found.ask_user(
                "repository",
                shown(),
                "this changes who can see the repository",
            );
        }
        ("api", _) => {
            let deletes = is_delete_request(invocation);
            let is_repository = lower.iter().any(|text| {
                let parts = text.trim_start_matches('/').split('/').count();
                text.trim_start_matches('/').starts_with("repos/") && parts == 3
            });
            let graphql = invocation
                .texts()
                .any(|text| text.contains("deleteRepository") || text.contains("deleteRef"));
            if deletes && is_repository || graphql {
                found.deny("repository", shown(), "this deletes a repository");
            } else if deletes {
                found.ask_user(
                    "repository",
                    shown(),
                    "this sends a delete request to GitHub",
                );
            }
        }
        _ => {}
    }
}
