//! Commands as Codex writes them, and the script inside.
//!
//! Codex shows an argument vector joined to one line, mostly
//! `/bin/bash -lc 'the script'`. Guards check the script, so the wrapper is removed;
//! if it cannot be recognized for certain, the command stays whole.

use anyhook_util::shell::{self, Syntax};

/// The script of `shell -c script`, else the command as it is.
pub(crate) fn line_script(command: &str) -> String {
    split_words(command)
        .and_then(|argv| shell::wrapped_script(&argv))
        .unwrap_or_else(|| command.to_owned())
}

/// Splits by the quoting rules of a POSIX shell. `None` if anything needs a
/// shell to interpret it.
fn split_words(line: &str) -> Option<Vec<String>> {
    let syntax = Syntax {
        operators: false,
        is_blank: |c| matches!(c, ' ' | '\t' | '\n'),
        ..Syntax::SCRIPT
    };
    let line = shell::split(line, syntax);
    let needs_shell =
        line.is_cut || line.has_operators || line.words.iter().any(|word| word.expands);
    (!needs_shell).then(|| line.words.into_iter().map(|word| word.text).collect())
}

#[cfg(test)]
mod tests {
    use anyhook_util::shell::join_script;

    use super::line_script;

    #[test]
    fn only_a_real_wrapper_is_removed() {
        for (line, inner) in [
            ("/bin/bash -lc 'touch a && rm b'", "touch a && rm b"),
            ("/bin/zsh -c \"echo \\\"hi\\\"\"", "echo \"hi\""),
            (r"bash -lc 'echo '\''x'\'''", "echo 'x'"),
            ("rm -rf /tmp/test", "rm -rf /tmp/test"),
            ("bash -lc 'a'; rm b", "bash -lc 'a'; rm b"),
            ("bash -lc 'a' b", "bash -lc 'a' b"),
            ("bash -lc \"$(x)\"", "bash -lc \"$(x)\""),
            ("bash -lc 'open", "bash -lc 'open"),
            ("", ""),
        ] {
            assert_eq!(line_script(line), inner, "{line}");
        }
    }

    #[test]
    fn an_argument_vector_is_joined_so_that_it_can_be_split_again() {
        let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(join_script(&argv(&["bash", "-lc", "ls | wc"])), "ls | wc");
        assert_eq!(
            join_script(&argv(&["git", "commit", "-m", "it's"])),
            r"git commit -m 'it'\''s'"
        );
        assert_eq!(join_script(&argv(&["printf", ""])), "printf ''");
    }
}
