//! Command lines: POSIX quoting, and splitting into words without running a shell.

/// How [`split`] reads a line.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// A backslash quotes the next character, as in POSIX and not on Windows.
    pub escapes: bool,
    /// Words end at `;|&()<>` as well.
    pub operators: bool,
    /// What separates words.
    pub is_blank: fn(char) -> bool,
}

impl Syntax {
    /// Words and operators of a script.
    pub const SCRIPT: Self = Self {
        escapes: true,
        operators: true,
        is_blank: char::is_whitespace,
    };
}

const OPERATORS: &str = ";|&()<>";

/// A line as words.
#[derive(Debug, Default)]
pub struct CommandLine {
    pub words: Vec<Word>,
    /// An operator occurs outside quotes.
    pub has_operators: bool,
    /// A quote is not closed, or a backslash ends the line.
    pub is_cut: bool,
}

#[derive(Debug)]
pub struct Word {
    pub start: usize,
    pub end: usize,
    /// Without its quotes.
    pub text: String,
    /// The first word of one of the line's commands.
    pub is_program: bool,
    /// Output is redirected to it.
    pub is_target: bool,
    /// The shell expands a part of it: `$` or a backquote.
    pub expands: bool,
    /// The shell looks for files that match it.
    pub is_pattern: bool,
}

/// Splits as a shell would, as far as quotes and separators go. Expansions
/// stay as they are written.
pub fn split(command: &str, syntax: Syntax) -> CommandLine {
    let mut line = CommandLine::default();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut is_program = true;
    let mut is_target = false;
    let mut before = ' ';
    for (at, c) in command.char_indices() {
        let after = std::mem::replace(&mut before, c);
        let is_bare = quote.is_none() && !escaped;
        let is_operator = is_bare && OPERATORS.contains(c);
        line.has_operators |= is_operator;
        if (is_bare && (syntax.is_blank)(c)) || (is_operator && syntax.operators) {
            if let Some(mut ended) = word.take() {
                ended.end = at;
                line.words.push(ended);
                is_target = false;
            }
            is_target |= c == '>';
            is_program |= ";|&(\n".contains(c) && !is_target;
            continue;
        }
        // What follows `$(…)` directly is the rest of its result.
        let is_rest = after == ')' && syntax.operators;
        let current = word.get_or_insert_with(|| Word {
            start: at,
            end: at,
            text: if is_rest {
                "$()".to_owned()
            } else {
                String::new()
            },
            is_program: std::mem::take(&mut is_program),
            is_target,
            expands: is_rest,
            is_pattern: false,
        });
        if std::mem::take(&mut escaped) {
            if quote.is_some() && !"\"\\$`".contains(c) {
                current.text.push('\\');
            }
            current.text.push(c);
            continue;
        }
        current.expands |= quote != Some('\'') && "$`".contains(c);
        current.is_pattern |= quote.is_none() && "*?[".contains(c);
        match (quote, c) {
            (None | Some('"'), '\\') if syntax.escapes => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => current.text.push(c),
        }
    }
    if let Some(mut ended) = word {
        ended.end = command.len();
        line.words.push(ended);
    }
    line.is_cut = quote.is_some() || escaped;
    line
}

/// In single quotes for a POSIX shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As it is when no shell would change it, else in single quotes.
pub fn quote_if_needed(word: &str) -> String {
    if is_plain(word) {
        word.to_owned()
    } else {
        quote(word)
    }
}

const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "dash", "ksh"];

/// The script that an argument vector runs: that of `shell -c script`, else the
/// words as one line.
pub fn join_script(argv: &[String]) -> String {
    wrapped_script(argv).unwrap_or_else(|| join(argv))
}

/// A line that a POSIX shell splits into these words again.
pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    let words = words.iter().map(|word| quote_if_needed(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

/// The script of `shell -c script`.
pub fn wrapped_script(argv: &[String]) -> Option<String> {
    let [shell, flag, script] = argv else {
        return None;
    };
    let name = shell.rsplit('/').next()?;
    (SHELLS.contains(&name) && matches!(flag.as_str(), "-c" | "-lc")).then(|| script.clone())
}

/// Whether every shell takes this as one word that means itself.
pub fn is_plain(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:@%=,".contains(c);
    !word.is_empty() && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str, syntax: Syntax) -> Vec<String> {
        let words = split(line, syntax).words.into_iter();
        words.map(|word| word.text).collect()
    }

    #[test]
    fn quotes_and_separators() {
        let plain = Syntax {
            operators: false,
            ..Syntax::SCRIPT
        };
        let windows = Syntax {
            escapes: false,
            ..plain
        };
        for (line, syntax, expected) in [
            (
                r#"a 'b c' "d e"f g\ h"#,
                plain,
                vec!["a", "b c", "d ef", "g h"],
            ),
            (r#""a\"b" "c\d" 'e\'"#, plain, vec!["a\"b", r"c\d", r"e\"]),
            ("a;b|c", plain, vec!["a;b|c"]),
            ("a;b|c >d", Syntax::SCRIPT, vec!["a", "b", "c", "d"]),
            (r"C:\x\y z", windows, vec![r"C:\x\y", "z"]),
            ("'' x", plain, vec!["", "x"]),
            ("", plain, vec![]),
        ] {
            assert_eq!(words(line, syntax), expected, "{line}");
        }
    }

    #[test]
    fn cut_lines_and_operators_are_noticed() {
        for (line, has_operators, is_cut) in [
            ("a 'b", false, true),
            ("a \"b", false, true),
            ("a \\", false, true),
            ("a ';' \\;", false, false),
            ("a;b", true, false),
            ("a $(b)", true, false),
        ] {
            let read = split(line, Syntax::SCRIPT);
            assert_eq!(read.has_operators, has_operators, "{line}");
            assert_eq!(read.is_cut, is_cut, "{line}");
        }
    }

    #[test]
    fn words_know_their_place() {
        let line = split("A=1 cat \"$x\" '$y' *.rs > out; ls", Syntax::SCRIPT);
        let marks: Vec<_> = line
            .words
            .iter()
            .map(|word| (word.text.as_str(), word.is_program, word.is_target))
            .collect();
        assert_eq!(
            marks,
            [
                ("A=1", true, false),
                ("cat", false, false),
                ("$x", false, false),
                ("$y", false, false),
                ("*.rs", false, false),
                ("out", false, true),
                ("ls", true, false),
            ]
        );
        let expanding: Vec<_> = line.words.iter().map(|word| word.expands).collect();
        assert_eq!(expanding, [false, false, true, false, false, false, false]);
        assert!(line.words[4].is_pattern);
        assert_eq!(line.words[2].start..line.words[2].end, 8..12);
    }

    #[test]
    fn quoted_words_come_back() {
        for text in ["", "plain-1.2", "it's", "a b", "$(x) `y` \"z\"", "ü"] {
            assert_eq!(words(&quote(text), Syntax::SCRIPT), [text]);
            assert_eq!(words(&quote_if_needed(text), Syntax::SCRIPT), [text]);
        }
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote_if_needed("/usr/bin/x"), "/usr/bin/x");
        assert_eq!(quote_if_needed(""), "''");
    }
}
