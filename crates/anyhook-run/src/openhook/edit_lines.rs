//! The lines that an edit wrote, found in the file after the edit.

/// One replacement in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub replace_all: bool,
}

/// First and last line, counted from 1.
pub(crate) type LineRange = (u64, u64);

/// All lines of a content; `None` if it has none.
pub(crate) fn all_lines(content: &str) -> Option<LineRange> {
    let lines = content.lines().count() as u64;
    (lines > 0).then_some((1, lines))
}

/// From the first to the last line that the edits wrote; `None` if they only
/// removed lines, or if one cannot be located for certain: a wrong range is
/// worse than none.
pub(crate) fn written_lines(content: &str, edits: &[Edit<'_>]) -> Option<LineRange> {
    let unix;
    let content = if content.contains('\r') {
        unix = content.replace("\r\n", "\n");
        &unix
    } else {
        content
    };
    let mut range: Option<LineRange> = None;
    for edit in edits {
        let Some((lead, count)) = changed_lines(edit) else {
            continue;
        };
        let (first, last) = occurrences(content, edit)?;
        let (start, end) = (first + lead, last + lead + count - 1);
        range = Some(range.map_or((start, end), |(from, to)| (from.min(start), to.max(end))));
    }
    range
}

/// The number of unchanged lines at the start of `new`, and of changed lines
/// after them. A patch contains context lines that the edit did not write.
fn changed_lines(edit: &Edit<'_>) -> Option<(u64, u64)> {
    let new = edit.new.replace("\r\n", "\n");
    let old = edit.old.replace("\r\n", "\n");
    let new: Vec<&str> = new.split('\n').collect();
    let old: Vec<&str> = old.split('\n').collect();
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let lead = new.iter().zip(&old).take_while(same).count();
    let rest = new.len().min(old.len()).saturating_sub(lead);
    let trail = new
        .iter()
        .rev()
        .zip(old.iter().rev())
        .take(rest)
        .take_while(same)
        .count();
    let mut count = new.len().saturating_sub(lead + trail);
    let ends_open = trail == 0 && new.last().is_some_and(|line| line.is_empty());
    if ends_open {
        count = count.saturating_sub(1);
    }
    (count > 0 && !edit.new.is_empty()).then_some((lead as u64, count as u64))
}

/// The lines at which the new text begins: its only occurrence, or its first and
/// last if every occurrence was replaced.
fn occurrences(content: &str, edit: &Edit<'_>) -> Option<LineRange> {
    let new = edit.new.replace("\r\n", "\n");
    let mut found = content.match_indices(&new).map(|(at, _)| at);
    let first = found.next()?;
    let last = found.last();
    if last.is_some() && !edit.replace_all {
        return None;
    }
    let line = |at: usize| {
        let before = content.get(..at).unwrap_or_default();
        1 + before.matches('\n').count() as u64
    };
    Some((line(first), line(last.unwrap_or(first))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit {
            old,
            new,
            replace_all: false,
        }
    }

    #[test]
    fn lines_are_found_where_the_new_text_is() {
        for (content, edits, expected) in [
            ("a\nb\nc\n", vec![edit("x", "b")], Some((2, 2))),
            ("a\r\nb\r\nc\r\n", vec![edit("x", "b\nc")], Some((2, 3))),
            // Context of a patch is not written.
            (
                "a\nb\nNEW\nc\n",
                vec![edit("b\nc", "b\nNEW\nc")],
                Some((3, 3)),
            ),
            // From the first to the last of several.
            (
                "1\n2\n3\n4\n",
                vec![edit("x", "2"), edit("y", "4")],
                Some((2, 4)),
            ),
            // Removals write nothing.
            ("a\nc\n", vec![edit("b\n", "")], None),
            ("a\nc\n", vec![edit("a\nb\nc", "a\nc")], None),
            // Ambiguous, or missing.
            ("b\nb\n", vec![edit("x", "b")], None),
            ("a\n", vec![edit("x", "b")], None),
            // An inserted line with its end.
            ("a\nb\nc\n", vec![edit("", "b\n")], Some((2, 2))),
            ("a\nb\nc", vec![edit("a", "a\nb")], Some((2, 2))),
            ("ü\nb é c\n", vec![edit("e", "é")], Some((2, 2))),
        ] {
            assert_eq!(
                written_lines(content, &edits),
                expected,
                "{content:?} {edits:?}"
            );
        }
    }

    #[test]
    fn replace_all_spans_every_occurrence() {
        let all = Edit {
            replace_all: true,
            ..edit("x", "b")
        };
        assert_eq!(written_lines("b\na\nb\n", &[all]), Some((1, 3)));
    }

    #[test]
    fn whole_files() {
        assert_eq!(all_lines("a\nb"), Some((1, 2)));
        assert_eq!(all_lines("a\n"), Some((1, 1)));
        assert_eq!(all_lines(""), None);
    }
}
