//! `git push`: what it overwrites or deletes at the remote.

use super::GitCall;
use crate::judges::Objections;
use crate::paths::glob_matches;
use crate::shell::is_option;

impl GitCall<'_> {
    pub(super) fn judge_push(&self, operands: &[&str], found: &mut Objections<'_>) {
        let shown = || self.invocation.shown();
        let is_dry = self.has("n", &["--dry-run"]);
        if is_dry {
            return;
        }
        let force = self.before_dashes().any(|text| {
            is_option(text, "f", &["--force"])
                && !text.starts_with("--force-")
                && !text.starts_with("--force=")
        });
        let refs = operands.get(1..).unwrap_or_default();
        if force
            || self.before_dashes().any(|text| text == "--mirror")
            || refs.iter().any(|text| text.starts_with('+'))
        {
            found.deny(
                "force-push",
                shown(),
                "this overwrites remote history; use `--force-with-lease`",
            );
        }
        if self.has("d", &["--delete", "--prune"])
            || refs
                .iter()
                .any(|text| text.starts_with(':') && text.len() > 1)
        {
            found.deny(
                "delete-remote",
                shown(),
                "this deletes branches or tags of the remote",
            );
        }
        if self.skips_hooks(false) {
            found.deny(
                "no-verify",
                shown(),
                "this skips the project's git hooks; fix what they report",
            );
        }
        for pattern in found
            .options
            .all("--protect")
            .map(str::to_owned)
            .collect::<Vec<_>>()
        {
            let hits = refs.iter().any(|text| {
                let target = text.rsplit(':').next().unwrap_or_default();
                let target = target
                    .trim_start_matches('+')
                    .trim_start_matches("refs/heads/");
                // `refs/heads/*:refs/heads/*` pushes every branch.
                glob_matches(&pattern, target)
                    || target.contains('*') && glob_matches(target, &pattern)
            });
            let pushes_all = self.has("", &["--all", "--branches"]);
            if hits || pushes_all {
                found.deny(
                    "protected-branch",
                    shown(),
                    format!(
                        "`{pattern}` is protected; push another branch and open a pull request"
                    ),
                );
            }
        }
        let hidden = self
            .invocation
            .words
            .iter()
            .any(|word| word.is_unknown() && !word.sources.is_empty());
        let may_be_protected = found.options.has("--protect")
            && refs.iter().any(|text| text.contains(crate::shell::UNKNOWN));
        if may_be_protected {
            found.ask_user(
                "dynamic",
                shown(),
                "which branch this pushes is only known at run time",
            );
        }
        if hidden
            && self.has_unknown()
            && operands
                .first()
                .is_some_and(|first| first.contains(crate::shell::UNKNOWN))
        {
            found.ask_user(
                "dynamic",
                shown(),
                "what this pushes is only known at run time",
            );
        }
    }
}
