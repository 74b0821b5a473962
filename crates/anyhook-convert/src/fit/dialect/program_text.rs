//! What the text of a program shows.

use super::whole_reads::reads_whole;

/// The text without its comments: they show nothing.
pub(super) fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && (!line.starts_with('#') || line.starts_with("#!"))
    });
    let lines = lines.map(|line| {
        let mut ends = line
            .match_indices(" #")
            .map(|(at, _)| line.get(..at).unwrap_or(line));
        let is_outside = |start: &&str| {
            ['"', '\'']
                .iter()
                .all(|quote| start.matches(*quote).count() % 2 == 0)
        };
        ends.find(is_outside).unwrap_or(line)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What the text of a program shows; without a text everything is possible.
#[derive(Clone, Copy)]
pub(super) struct ProgramText<'a>(pub(super) Option<&'a str>);

impl ProgramText<'_> {
    /// What the program does, or may do if its text is not known.
    pub(super) fn does(self, known: &'static str, unknown: &'static str) -> &'static str {
        if self.0.is_some() { known } else { unknown }
    }

    pub(super) fn contains(self, text: &str) -> bool {
        self.0.is_none_or(|own| own.contains(text))
    }

    pub(super) fn mentions(self, word: &str) -> bool {
        self.0.is_none_or(|text| has_word(text, word))
    }

    /// Whether a key is read. One that is also an everyday word must follow what
    /// leads to a key.
    pub(super) fn reads(self, key: &str) -> bool {
        let is_everyday_word = key.chars().all(|letter| letter.is_ascii_lowercase());
        self.0.is_none_or(|text| {
            if is_everyday_word {
                let marks = ['.', '"', '\'', '`', '[', '(', '{', ',', '='];
                let ends = ["\"", "'", "\\\"", ":"];
                word_places(text, key).any(|(left, right)| {
                    left.trim_end().ends_with(marks)
                        || left.ends_with([':', '*'])
                        || (!left.ends_with(' ') && ends.iter().any(|end| right.starts_with(end)))
                        || is_searched_for(left)
                })
            } else {
                has_word(text, key)
            }
        })
    }

    /// Whether the object that has the last of these keys is read as a whole, or by
    /// keys that the text does not show.
    pub(super) fn reads_object_of(self, keys: &[String]) -> bool {
        let [.., object, _] = keys else { return false };
        self.0.is_none_or(|text| reads_whole(text, object))
    }

    /// Whether a name is compared with something, and not just a word of the shell.
    pub(super) fn compares(self, name: &str) -> bool {
        let forms = ["\"@\"", "'@'", "= @", "=@", "@)", "|@", "@|", "\"@|", "^@"];
        let forms = forms.map(|form| form.replace('@', name));
        self.0.is_none_or(|text| {
            has_word(text, name) && forms.iter().any(|form| text.contains(form.as_str()))
        })
    }

    /// Whether a word begins a text of several values, such as `Bash:ls`.
    pub(super) fn joins(self, word: &str) -> bool {
        self.0.is_some_and(|text| {
            word_places(text, word).any(|(left, right)| {
                right.starts_with(':') && !left.ends_with(['/', '-', '.', ':'])
            })
        })
    }

    /// Whether a word is a value of its own, and not one of a sentence.
    pub(super) fn quotes(self, word: &str) -> bool {
        self.0.is_none_or(|text| {
            word_places(text, word).any(|(left, right)| {
                left.ends_with(['"', '\'', '`', '=']) && !right.starts_with(' ')
            })
        })
    }

    /// Whether a key of an object gets a value, which is not `other` as a word.
    pub(super) fn sets(self, key: &str, other: bool) -> bool {
        self.0.is_none_or(|text| {
            word_places(text, key).any(|(_, right)| {
                let after = right.trim_start_matches(['\\', '"', '\'', ']', ' ']);
                let value = after.strip_prefix([':', '=']);
                let value = value.map(|value| value.trim_start_matches([':', '=', '>', ' ']));
                value.is_some_and(|value| {
                    !value
                        .to_ascii_lowercase()
                        .starts_with(if other { "true" } else { "false" })
                })
            })
        })
    }

    /// Whether the text is known and compares something with this name.
    pub(super) fn knows(self, name: &str) -> bool {
        self.0.is_some() && self.compares(name)
    }

    /// Whether the program uses an environment variable and has no value of its own
    /// for it.
    pub(super) fn uses_variable(self, name: &str) -> bool {
        let Self(Some(text)) = self else { return false };
        let is_plain_word = name.chars().any(|letter| letter.is_ascii_lowercase());
        let is_set = text.contains(&format!("{name}=")) || text.contains(&format!("{name} ="));
        let with_default = format!("${{{name}:-");
        let text = text.replace(&with_default, "");
        let expands = text.contains(&format!("${{{name}")) || has_word_after(&text, "$", name);
        !is_set && (expands || (!is_plain_word && has_word(&text, name)))
    }

    /// Whether it may end with 2: with that number, or with one that its text does not
    /// show.
    pub(super) fn may_exit_with_2(self) -> bool {
        self.0.is_none_or(|text| {
            let mut returns = word_places(text, "return");
            let mut exits = EXIT_WORDS.iter().flat_map(|name| word_places(text, name));
            let is_variable = |after: &str| after.trim_start_matches([' ', '"']).starts_with('$');
            returns.any(|(_, after)| exit_code(after) == Some(2) || is_variable(after))
                || exits.any(|(_, after)| {
                    let is_end = after.trim_start_matches([' ', '(', ')']).is_empty()
                        || after.starts_with(['\n', ';', '}']);
                    !is_end && exit_code(after).is_none_or(|code| code == 2)
                })
        })
    }

    /// Whether it prints JSON at all.
    pub(super) fn prints_json(self) -> bool {
        let marks = ["{\"", "{\\\"", "{ \"", "{'", "json", "JSON", "jq"];
        marks.iter().any(|mark| self.contains(mark))
    }
}

/// Whether a word after this is what a program such as grep looks for.
fn is_searched_for(left: &str) -> bool {
    let line = left.lines().next_back().unwrap_or_default();
    let mut words = line.split_whitespace().rev();
    let program = words.find(|word| !word.starts_with('-'));
    line.ends_with(' ') && program.is_some_and(|program| program.ends_with("grep"))
}

pub(super) fn is_word_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    word_places(text, word).next().is_some()
}

/// The text before and after each place where it has the word.
pub(super) fn word_places<'a>(
    text: &'a str,
    word: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.match_indices(word).filter_map(|(start, found)| {
        let left = text.get(..start)?;
        let right = text.get(start + found.len()..)?;
        let is_part = left.ends_with(is_word_letter) || right.starts_with(is_word_letter);
        (!is_part).then_some((left, right))
    })
}

/// Whether the text has the word, directly after `before`.
fn has_word_after(text: &str, before: &str, word: &str) -> bool {
    let wanted = format!("{before}{word}");
    text.match_indices(&wanted).any(|(start, found)| {
        let right = text.get(start + found.len()..);
        right.is_some_and(|right| !right.starts_with(is_word_letter))
    })
}

/// The keys that a program reads directly below `object`: `object.key`,
/// `object["key"]`, `object.get("key")` and the like.
pub(super) fn keys_read_below<'a>(text: &'a str, object: &'a str) -> Vec<&'a str> {
    let mut keys = Vec::new();
    for (_, right) in word_places(text, object) {
        let mut right = right;
        // A method such as `get` may come before the key.
        for _ in 0..2 {
            let is_glue = |letter: char| " \"'\\)]?.[({},|/".contains(letter);
            let after = right.trim_start_matches(is_glue);
            let glue = right.get(..right.len() - after.len()).unwrap_or_default();
            let leads = glue.ends_with('.')
                || ["[\"", "['", "(\"", "('", "[\\\"", "(\\\""]
                    .iter()
                    .any(|mark| glue.ends_with(mark));
            let end = after.find(|letter: char| !is_word_letter(letter));
            let (key, rest) = after.split_at(end.unwrap_or(after.len()));
            if !leads || key.is_empty() || glue.contains('\n') {
                break;
            }
            if key == "get" && rest.starts_with('(') {
                right = rest;
                continue;
            }
            if !rest.starts_with('(') && !keys.contains(&key) {
                keys.push(key);
            }
            break;
        }
    }
    keys
}

pub(super) fn exits_only_with_0_or_2(text: &str) -> bool {
    !text.contains("set -e")
        && text.match_indices("exit ").all(|(start, found)| {
            let rest = text.get(start + found.len()..).unwrap_or_default();
            rest.starts_with('0') || rest.starts_with('2')
        })
}

/// Words with which programs end.
const EXIT_WORDS: [&str; 6] = ["exit", "_exit", "Exit", "exitCode", "SystemExit", "quit"];

/// The number that follows such a word.
fn exit_code(after: &str) -> Option<i32> {
    let code = after.trim_start_matches(['(', ' ', '=', '"', '\'']);
    let end = code.find(|letter: char| !letter.is_ascii_digit());
    code.get(..end.unwrap_or(code.len()))?.parse().ok()
}

/// The first exit after each place of a word: its code, where it is a number, and the
/// text from the word's line up to it.
pub(super) fn exits_after<'a>(text: &'a str, word: &str) -> Vec<(i32, &'a str)> {
    let places = word_places(text, word).filter_map(|(left, right)| {
        let line = left.rfind('\n').map_or(0, |end| end + 1);
        let exits = EXIT_WORDS
            .iter()
            .filter_map(|name| word_places(right, name).next());
        let (before, after) = exits.min_by_key(|(before, _)| before.len())?;
        let end = text.len() - right.len() + before.len();
        Some((exit_code(after)?, text.get(line..end)?))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_below_an_object_are_found_in_every_language() {
        for (text, keys) in [
            ("jq -r .tool_input.mode", &["mode"] as &[_]),
            ("jq -r '.tool_input | .mode'", &["mode"]),
            ("jq -r '(.tool_input // {}).mode'", &["mode"]),
            ("jq -r '.tool_input[\"mode\"]'", &["mode"]),
            ("p['tool_input']['mode']", &["mode"]),
            ("p[\"tool_input\"].get(\"mode\", 1)", &["mode"]),
            ("p.get('tool_input', {}).get('mode')", &["mode"]),
            ("payload.tool_input?.mode === 1", &["mode"]),
            ("p.tool_input.a || p.tool_input.b", &["a", "b"]),
            ("p.tool_input.hasOwnProperty(k)", &[]),
            ("p['tool_input'], p['session_id']", &[]),
            ("jq .tool_input | grep x", &[]),
            ("my_tool_input.mode", &[]),
        ] {
            assert_eq!(keys_read_below(text, "tool_input"), keys, "{text}");
        }
    }

    #[test]
    fn an_everyday_word_is_a_key_only_where_keys_are() {
        for (text, is_read) in [
            ("jq .tool_input.timeout", true),
            ("p['timeout']", true),
            ("const { command, timeout } = p.tool_input", true),
            ("key=timeout", true),
            ("timeout 5 ./guard.sh", false),
            ("exec timeout 5 ./guard.sh", false),
            ("# stops after a timeout", false),
            ("${payload##*timeout\\\":}", true),
            ("grep -q timeout", true),
            ("p[:tool_input][:timeout]", true),
            ("echo \"it has a timeout\"", false),
            ("echo $timeout", false),
        ] {
            assert_eq!(ProgramText(Some(text)).reads("timeout"), is_read, "{text}");
        }
    }
}
