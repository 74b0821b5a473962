//! "Did you mean": the nearest of a few known names.

/// Longer names are not compared: they are not typing errors.
const MAX_NAME_BYTES: usize = 64;

/// The candidate nearest to `name`, if it is near enough to be a typing error.
///
/// Case, `-` and `_`, and camelCase are not counted as differences.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name)?;
    let max_distance = match wanted.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=10 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = strsim::osa_distance(&wanted, &fold(candidate)?);
            (distance <= max_distance).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> Option<String> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    Some(
        name.chars()
            .filter(|letter| !matches!(letter, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect(),
    )
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
