//! "Did you mean": the nearest of a few known names.

/// Names longer than this are not compared: nobody mistypes those.
const LONGEST: usize = 64;

/// The candidate nearest to `name`, if it is near enough to be a slip.
///
/// Case, `-` and `_`, and camelCase are not counted as differences.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name)?;
    let allowed = match wanted.len() {
        0..=2 => 0,
        3..=5 => 1,
        6..=10 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = distance(&wanted, &fold(candidate)?);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> Option<Vec<char>> {
    if name.len() > LONGEST {
        return None;
    }
    Some(
        name.chars()
            .filter(|letter| !matches!(letter, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect(),
    )
}

/// Edits between two words, where swapping two neighbours is one edit.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous: Option<char> = None;
    for (row, &letter) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        let mut other_before: Option<char> = None;
        for (column, &other) in right.iter().enumerate() {
            let at =
                |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = at(&last, column) + usize::from(letter != other);
            best = best.min(at(&last, column + 1) + 1);
            best = best.min(at(&current, column) + 1);
            if previous == Some(other) && other_before == Some(letter) && column > 0 {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            other_before = Some(other);
        }
        before = std::mem::replace(&mut last, current);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const EVENTS: [&str; 3] = ["before_tool_execute", "session_start", "agent_stop"];

    #[test]
    fn slips_find_their_name() {
        for (slip, meant) in [
            ("before_tool_exceute", "before_tool_execute"),
            ("beforeToolExecute", "before_tool_execute"),
            ("session-start", "session_start"),
            ("SESSION_START", "session_start"),
            ("agent_stpo", "agent_stop"),
        ] {
            assert_eq!(nearest(slip, EVENTS), Some(meant), "{slip}");
        }
    }

    #[test]
    fn other_words_find_nothing() {
        for word in ["", "x", "compile", "agent", "start"] {
            assert_eq!(nearest(word, EVENTS), None, "{word}");
        }
    }

    #[test]
    fn the_nearest_wins() {
        assert_eq!(nearest("fined", ["fine", "find", "fined_"]), Some("fined_"));
    }
}
