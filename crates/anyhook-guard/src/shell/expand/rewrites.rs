//! Operators that change the value of a variable: `${x#y}`, `${x%y}`, `${x/y/z}`,
//! `${x:1}`, `${x,,}`.

use crate::shell::invocation::UNKNOWN;

/// Longer values are not changed.
const MAX_VALUE_BYTES: usize = 1024;

/// The value after an operator; `None` if that is not known.
pub(super) fn rewrite_value(value: &str, operator: &str, operand: &str) -> Option<String> {
    if value.contains(UNKNOWN) || operand.contains(UNKNOWN) || value.len() > MAX_VALUE_BYTES {
        return None;
    }
    if operator == ":" {
        return part(value, operand);
    }
    if !operator.is_empty() {
        return None;
    }
    let mut letters = operand.chars();
    let kind = letters.next()?;
    let rest = letters.as_str();
    let doubled = rest.strip_prefix(kind);
    let pattern = doubled.unwrap_or(rest);
    match kind {
        '#' => {
            let mut cuts: Vec<usize> = boundaries(value).collect();
            if doubled.is_some() {
                cuts.reverse();
            }
            let cut = cuts.into_iter().find(|at| {
                value
                    .get(..*at)
                    .is_some_and(|start| matches(pattern, start))
            });
            value.get(cut.unwrap_or(0)..).map(str::to_owned)
        }
        '%' => {
            let mut cuts: Vec<usize> = boundaries(value).collect();
            if doubled.is_none() {
                cuts.reverse();
            }
            let cut = cuts
                .into_iter()
                .find(|at| value.get(*at..).is_some_and(|end| matches(pattern, end)));
            value.get(..cut.unwrap_or(value.len())).map(str::to_owned)
        }
        '/' => replaced(value, pattern, doubled.is_some()),
        ',' => Some(value.to_lowercase()),
        '^' if doubled.is_some() => Some(value.to_uppercase()),
        '@' => match rest {
            "L" => Some(value.to_lowercase()),
            "U" => Some(value.to_uppercase()),
            "Q" | "E" | "P" => Some(value.to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn boundaries(value: &str) -> impl Iterator<Item = usize> {
    let inner = value.char_indices().map(|(at, _)| at);
    inner.chain(std::iter::once(value.len()))
}

/// `${x:offset}` and `${x:offset:length}`.
fn part(value: &str, operand: &str) -> Option<String> {
    let (offset, length) = match operand.split_once(':') {
        Some((offset, length)) => (offset, Some(length)),
        None => (operand, None),
    };
    let count = value.chars().count();
    let place = |text: &str, from: usize| -> Option<usize> {
        let number: i64 = match text.trim() {
            "" => 0,
            text => text.parse().ok()?,
        };
        let at = usize::try_from(number.unsigned_abs()).ok()?;
        Some(if number < 0 {
            count.saturating_sub(at)
        } else {
            from.saturating_add(at)
        })
    };
    let start = place(offset, 0)?;
    let end = match length {
        Some(length) => place(length, start)?,
        None => count,
    };
    let length = end.saturating_sub(start);
    Some(value.chars().skip(start).take(length).collect())
}

/// `${x/pattern/text}`, and `${x//pattern/text}` everywhere.
fn replaced(value: &str, operand: &str, everywhere: bool) -> Option<String> {
    let (pattern, text) = operand.split_once('/').unwrap_or((operand, ""));
    if pattern.is_empty() {
        return Some(value.to_owned());
    }
    if let Some(pattern) = pattern.strip_prefix('#') {
        let rest = value.strip_prefix(pattern)?;
        return Some(format!("{text}{rest}"));
    }
    if let Some(pattern) = pattern.strip_prefix('%') {
        let rest = value.strip_suffix(pattern)?;
        return Some(format!("{rest}{text}"));
    }
    if pattern.contains(['*', '?', '[', '\\']) {
        return None;
    }
    let most = if everywhere { usize::MAX } else { 1 };
    Some(value.replacen(pattern, text, most))
}

/// Whether a pattern with `*` and `?` stands for the whole text.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().take(64).collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut place) = (0, 0);
    // Where the last `*` stands, and up to where it has eaten the text.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(letter) if *letter == '?' || text.get(place) == Some(letter) => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((back, eaten)) = star else {
                    return false;
                };
                star = Some((back, eaten + 1));
                at = back + 1;
                place = eaten + 1;
            }
        }
    }
    pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|letter| *letter == '*')
}
