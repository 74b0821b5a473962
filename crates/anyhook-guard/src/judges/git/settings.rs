//! Settings of `git` that define aliases, switch hooks off or remove objects.

use super::GitCall;
use crate::judges::Objections;
use crate::shell::{Invocation, is_option};

/// Aliases that `GIT_CONFIG_KEY_0` and `GIT_CONFIG_VALUE_0` define.
pub(super) fn environment_aliases(invocation: &Invocation) -> Vec<(String, String)> {
    let value = |name: &str| {
        let mut variables = invocation.variables.iter();
        variables
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.text.clone())
    };
    let keys = invocation.variables.iter().filter_map(|(name, key)| {
        let number = name.strip_prefix("GIT_CONFIG_KEY_")?;
        let alias = key.text.strip_prefix("alias.")?;
        Some((
            alias.to_owned(),
            value(&format!("GIT_CONFIG_VALUE_{number}"))?,
        ))
    });
    keys.collect()
}

/// Variables that switch the hooks of a project off.
pub(super) fn is_hook_switch(name: &str) -> bool {
    matches!(
        name,
        "HUSKY"
            | "HUSKY_SKIP_HOOKS"
            | "PRE_COMMIT_ALLOW_NO_CONFIG"
            | "SKIP"
            | "LEFTHOOK"
            | "LEFTHOOK_EXCLUDE"
            | "GIT_HOOKS_SKIP"
            | "OVERCOMMIT_DISABLE"
            | "OVERCOMMIT_SKIP"
            | "SKIP_SIMPLE_GIT_HOOKS"
            | "SKIP_HOOKS"
            | "SKIP_GIT_HOOKS"
            | "NO_VERIFY"
    )
}

/// `git -c gc.pruneExpire=now gc`.
pub(super) fn sets_prune_at_once(invocation: &Invocation) -> bool {
    invocation.texts().any(|text| {
        let text = text.to_ascii_lowercase();
        text.split_once('=').is_some_and(|(key, value)| {
            matches!(
                key,
                "gc.pruneexpire" | "gc.reflogexpire" | "gc.reflogexpireunreachable"
            ) && matches!(value, "now" | "all" | "0")
        })
    })
}

impl GitCall<'_> {
    /// `--no-verify`, not as the value of another option.
    pub(super) fn skips_hooks(&self, short: bool) -> bool {
        let mut skips_next = false;
        for text in self.before_dashes() {
            if std::mem::take(&mut skips_next) {
                continue;
            }
            if is_option(text, "", &["--no-verify"]) && text.len() > 8 {
                return true;
            }
            if let Some(cluster) = text
                .strip_prefix('-')
                .filter(|cluster| !cluster.starts_with('-'))
            {
                for (index, letter) in cluster.char_indices() {
                    if short && letter == 'n' {
                        return true;
                    }
                    if "mFCctuSA".contains(letter) {
                        skips_next = index + 1 == cluster.len() && !"uS".contains(letter);
                        break;
                    }
                }
            } else if matches!(
                text,
                "--message"
                    | "--file"
                    | "--author"
                    | "--date"
                    | "--reuse-message"
                    | "--trailer"
                    | "--fixup"
            ) {
                skips_next = true;
            }
        }
        false
    }

    pub(super) fn judge_config(
        &self,
        operands: &[&str],
        aliases: &mut Vec<(String, String)>,
        found: &mut Objections<'_>,
    ) {
        let mut words = operands
            .iter()
            .copied()
            .filter(|text| !matches!(*text, "set" | "unset"));
        // `--file F` takes a value, which is no key.
        let key = words
            .find(|text| text.contains('.') && !text.contains('/'))
            .unwrap_or_default()
            .to_ascii_lowercase();
        let value = words.next();
        if self.has("", &["--get", "--get-all", "--list", "--get-regexp"])
            || operands.first() == Some(&"get")
        {
            return;
        }
        if let Some(alias) = key.strip_prefix("alias.")
            && let Some(value) = value
        {
            aliases.push((alias.to_owned(), value.to_owned()));
        }
        if key == "clean.requireforce" && value == Some("false") {
            aliases.push((key.clone(), String::new()));
        }
        if key == "core.hookspath" && value.is_some_and(|value| value.starts_with(['/', '~'])) {
            found.ask_user(
                "no-verify",
                self.invocation.shown(),
                "this replaces the project's git hooks by those of another folder",
            );
        }
        if key == "core.hookspath"
            && (self.has("", &["--unset", "--unset-all"])
                || operands.first() == Some(&"unset")
                || value.is_some_and(|value| value.is_empty() || value.starts_with("/dev/")))
        {
            found.deny(
                "no-verify",
                self.invocation.shown(),
                "this switches the project's git hooks off",
            );
        }
    }
}
