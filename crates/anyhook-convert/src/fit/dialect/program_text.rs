//! What the text of a program shows.

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

    /// Whether a name is compared with something, and not just a word of the shell.
    pub(super) fn compares(self, name: &str) -> bool {
        let forms = ["\"@\"", "'@'", "= @", "=@", "@)", "|@", "@|", "\"@|", "^@"];
        let forms = forms.map(|form| form.replace('@', name));
        self.0.is_none_or(|text| {
            has_word(text, name) && forms.iter().any(|form| text.contains(form.as_str()))
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

    /// Whether it may end with a code of its own choice.
    pub(super) fn may_exit_with_a_code(self) -> bool {
        ["exit", "return", "Exit"]
            .iter()
            .any(|word| self.contains(word))
    }

    /// Whether it prints JSON at all.
    pub(super) fn prints_json(self) -> bool {
        let marks = ["{\"", "{\\\"", "{ \"", "{'", "json", "JSON", "jq"];
        marks.iter().any(|mark| self.contains(mark))
    }
}

pub(super) fn is_word_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    has_word_after(text, "", word)
}

/// Whether the text has the word, directly after `before`.
fn has_word_after(text: &str, before: &str, word: &str) -> bool {
    let wanted = format!("{before}{word}");
    text.match_indices(&wanted).any(|(start, found)| {
        let left = text.get(..start).and_then(|left| left.chars().next_back());
        let right = text.get(start + found.len()..);
        let right = right.and_then(|right| right.chars().next());
        (!before.is_empty() || !left.is_some_and(is_word_letter))
            && !right.is_some_and(is_word_letter)
    })
}

pub(super) fn exits_only_with_0_or_2(text: &str) -> bool {
    !text.contains("set -e")
        && text.match_indices("exit ").all(|(start, found)| {
            let rest = text.get(start + found.len()..).unwrap_or_default();
            rest.starts_with('0') || rest.starts_with('2')
        })
}
