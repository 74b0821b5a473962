//! Commands as Codex writes them, and the script inside.
//!
//! Codex shows an argument vector joined to one line, mostly
//! `/bin/bash -lc 'the script'`. A guard is about the script, so the wrapper is
//! taken off; where it cannot be recognised for certain the command stays whole.

use std::fmt::Write as _;

const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "dash", "ksh"];

/// The script of `shell -c script`, else the command as it is.
pub(crate) fn script(command: &str) -> String {
    words(command)
        .and_then(|argv| wrapped(&argv))
        .unwrap_or_else(|| command.to_owned())
}

/// The same for an argument vector; one that is no wrapped script is joined.
pub(crate) fn script_of(argv: &[String]) -> String {
    wrapped(argv).unwrap_or_else(|| {
        let mut line = String::new();
        for word in argv {
            let gap = if line.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(line, "{gap}{}", quoted(word));
        }
        line
    })
}

fn wrapped(argv: &[String]) -> Option<String> {
    let [shell, flag, script] = argv else {
        return None;
    };
    let name = shell.rsplit('/').next()?;
    (SHELLS.contains(&name) && matches!(flag.as_str(), "-c" | "-lc")).then(|| script.clone())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Splits by the quoting rules of a POSIX shell. `None` when anything would need
/// a shell to interpret it.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => match chars.next()? {
                            kept @ ('"' | '\\' | '$' | '`') => word.push(kept),
                            other => word.extend(['\\', other]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' => return None,
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::{script, script_of};

    #[test]
    fn takes_the_wrapper_off_only_when_there_is_one() {
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
            assert_eq!(script(line), inner, "{line}");
        }
    }

    #[test]
    fn joins_an_argument_vector_so_that_it_can_be_read_back() {
        let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(script_of(&argv(&["bash", "-lc", "ls | wc"])), "ls | wc");
        assert_eq!(
            script_of(&argv(&["git", "commit", "-m", "it's"])),
            r"git commit -m 'it'\''s'"
        );
        assert_eq!(script_of(&argv(&["printf", ""])), "printf ''");
    }
}
