//! What `tr` and `sed` make of a known text.

use crate::shell::invocation::{Invocation, UNKNOWN};

/// `tr SET1 SET2` and `tr -d SET1`; `None` for sets that are not read.
pub(super) fn translate(invocation: &Invocation, text: &str) -> Option<String> {
    if text.contains(UNKNOWN) || invocation.has_option("cCt", &[]) {
        return None;
    }
    let deletes = invocation.has_option("d", &["--delete"]);
    let mut sets = invocation.operands().filter(|word| word.text != "--");
    let from = letters(&sets.next()?.text)?;
    if deletes {
        return Some(
            text.chars()
                .filter(|letter| !from.contains(letter))
                .collect(),
        );
    }
    let Some(to) = sets.next() else {
        // `tr -s SET`.
        return Some(text.to_owned());
    };
    let to = letters(&to.text)?;
    let last = to.last()?;
    let translated = |letter: char| match from.iter().rposition(|known| *known == letter) {
        Some(at) => *to.get(at).unwrap_or(last),
        None => letter,
    };
    Some(text.chars().map(translated).collect())
}

/// The letters of a set: `a-z`, escapes and classes of letters.
fn letters(set: &str) -> Option<Vec<char>> {
    let set = set
        .replace("[:lower:]", "a-z")
        .replace("[:upper:]", "A-Z")
        .replace("[:digit:]", "0-9");
    if set.contains("[:") || set.contains(UNKNOWN) || set.len() > 512 {
        return None;
    }
    let mut found: Vec<char> = Vec::new();
    let mut characters = set.chars().peekable();
    while let Some(letter) = characters.next() {
        let letter = match letter {
            '\\' => match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                other => other,
            },
            other => other,
        };
        if letter == '-'
            && let Some(start) = found.last().copied()
            && let Some(end) = characters.peek().copied()
            && start.is_ascii()
            && end.is_ascii()
            && start <= end
        {
            characters.next();
            found.extend((start..=end).skip(1));
            continue;
        }
        found.push(letter);
    }
    Some(found)
}

/// One `s/text/other/` with plain texts, or `y/abc/xyz/`.
pub(super) fn substitute(invocation: &Invocation, text: &str) -> Option<String> {
    if text.contains(UNKNOWN) || invocation.has_option("fin", &["--in-place", "--quiet"]) {
        return None;
    }
    let mut operands = invocation.operands();
    let script = operands.next()?.text.clone();
    if operands.next().is_some() {
        return None;
    }
    let mut changed = text.to_owned();
    for command in script.split(';').map(str::trim) {
        let mut rest = command.chars();
        let kind = rest.next()?;
        let separator = rest.next().filter(char::is_ascii_punctuation)?;
        let parts: Vec<&str> = rest.as_str().split(separator).collect();
        let [pattern, replacement, flags] = parts.as_slice() else {
            return None;
        };
        if kind == 'y' {
            let from: Vec<char> = pattern.chars().collect();
            let to: Vec<char> = replacement.chars().collect();
            changed = changed
                .chars()
                .map(|letter| {
                    let at = from.iter().position(|known| *known == letter);
                    at.and_then(|at| to.get(at)).copied().unwrap_or(letter)
                })
                .collect();
            continue;
        }
        if kind != 's' || replacement.contains(['&', '\\']) {
            return None;
        }
        let lines = changed.lines().map(|line| match *pattern {
            "^" => format!("{replacement}{line}"),
            "$" => format!("{line}{replacement}"),
            _ => {
                let most = if flags.contains('g') { usize::MAX } else { 1 };
                let start = pattern.strip_prefix('^');
                match start {
                    Some(start) => match line.strip_prefix(start) {
                        Some(rest) => format!("{replacement}{rest}"),
                        None => line.to_owned(),
                    },
                    None => line.replacen(pattern, replacement, most),
                }
            }
        });
        let is_plain = pattern.len() == 1 && "^$".contains(pattern)
            || !pattern
                .trim_start_matches('^')
                .contains(['.', '*', '[', '\\', '$', '+', '?', '(', '|']);
        if !is_plain || pattern.is_empty() {
            return None;
        }
        changed = lines.collect::<Vec<_>>().join("\n") + "\n";
        if changed.len() > super::MAX_TEXT_BYTES {
            return None;
        }
    }
    Some(changed)
}
