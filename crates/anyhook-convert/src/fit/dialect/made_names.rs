//! What a program does with a value that it reads, beside comparing it: it makes names of
//! files and functions of it (`rules/$tool.txt`, `check_Bash`), or tests a part of it.
//! Where the value is another one, such a program finds nothing and allows.

use super::program_text::{is_word_letter, word_places};
use super::whole_reads::assigned_name;

/// What leads to a value from the object that has it: `p['`, `payload.get("`, `.`.
const ACCESS: &str = ".[('\"`?";

/// What a line has that decides.
const TESTS: [&str; 20] = [
    "case ",
    "[ ",
    "if ",
    "if(",
    "==",
    "!=",
    "=~",
    "test(",
    "test ",
    "match",
    "startswith",
    "startsWith",
    "endswith",
    "endsWith",
    "includes",
    "indexOf",
    "switch",
    "select(",
    "grep",
    " in ",
];

/// Whether a line with the value of a key decides something.
pub(super) fn tests_value_of(text: &str, key: &str) -> bool {
    let names = names_of(text, key);
    text.lines().any(|line| {
        let mut names = names.iter();
        names.any(|name| word_places(line, name).next().is_some())
            && TESTS.iter().any(|test| line.contains(test))
    })
}

/// The key, and the variables that get its value.
fn names_of<'a>(text: &'a str, key: &'a str) -> Vec<&'a str> {
    let mut names = vec![key];
    for (left, _) in word_places(text, key) {
        let line_start = left.rfind('\n').map_or(0, |end| end + 1);
        let before = left.get(line_start..).unwrap_or_default();
        if let Some(name) = assigned_name(before)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// Whether a name of a file or function is made of the value of a key.
pub(super) fn makes_names_of(text: &str, key: &str) -> bool {
    names_of(text, key).into_iter().any(|name| {
        word_places(text, name)
            .any(|(left, right)| is_in_a_name(left, right) || is_added_to_a_name(left, name == key))
    })
}

/// `rules/$tool`, `check_${tool}`, `f"check_{tool}"`, `${tool}.txt`.
fn is_in_a_name(left: &str, right: &str) -> bool {
    let start = left.trim_end_matches(['$', '{']);
    let is_filled_in = start.len() < left.len();
    let after = right.strip_prefix('}').unwrap_or(right);
    let goes_on = after
        .strip_prefix(['.', '/', '_', '-'])
        .is_some_and(|rest| rest.starts_with(is_word_letter));
    is_filled_in && (start.ends_with(is_name_letter) || goes_on)
}

/// `'check_' + tool`, `"check_" + p['tool_name']`.
fn is_added_to_a_name(left: &str, is_key: bool) -> bool {
    let mut start = left;
    if is_key {
        start = start.trim_end_matches(|letter| is_word_letter(letter) || ACCESS.contains(letter));
    }
    let added = start.trim_end().strip_suffix('+').map(str::trim_end);
    let text = added.and_then(|text| text.strip_suffix(['"', '\'', '`']));
    text.is_some_and(|text| text.ends_with(is_name_letter))
}

fn is_name_letter(letter: char) -> bool {
    is_word_letter(letter) || "/-.".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_made_of_a_value_is_seen() {
        for (text, is_made) in [
            ("t=$(jq -r .tool_name)\ngrep -f rules/$t.txt", true),
            ("t=$(jq -r .tool_name)\ncheck_$t", true),
            ("t=$(jq -r .tool_name)\n. \"${t}.sh\"", true),
            ("t = p['tool_name']\nglobals()[f'check_{t}']()", true),
            ("globals()['check_' + p['tool_name'].lower()]()", true),
            ("const f = 'check_' + p.tool_name", true),
            ("t=$(jq -r .tool_name)\necho \"no $t.\" >&2", false),
            ("t=$(jq -r .tool_name)\necho \"[$t] no\" >>log", false),
            ("t = p['tool_name']\nprint(f'no {t}')", false),
            ("print('no ' + p['tool_name'])", false),
            ("[ \"$(jq -r .tool_name)\" = Bash ]", false),
        ] {
            assert_eq!(makes_names_of(text, "tool_name"), is_made, "{text}");
        }
    }

    #[test]
    fn a_value_that_is_tested_is_seen() {
        for (text, is_tested) in [
            (
                "t=$(jq -r .tool_name)\ncase $t in Ba*) exit 2 ;; esac",
                true,
            ),
            ("t=$(jq -r .tool_name)\n[[ $t == Ba* ]] && exit 2", true),
            ("if p['tool_name'][:2] == 'Ba':", true),
            ("jq -e 'select(.tool_name | test(\"^Ba\"))'", true),
            ("t=$(jq -r .tool_name)\necho \"no $t\" >&2\nexit 2", false),
            ("t = p['tool_name']\nprint(f'no {t}')", false),
        ] {
            assert_eq!(tests_value_of(text, "tool_name"), is_tested, "{text}");
        }
    }
}
