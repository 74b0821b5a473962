//! Words of the tree as words of a command line: braces, tilde, variables and
//! substitutions.

mod braces;
mod rewrites;

use super::evaluate::{Evaluator, Scope};
use super::invocation::{ResolvedWord, UNKNOWN};
use super::syntax::{ScriptWord, VariableOperator, WordPart};
use braces::expand_braces;
use rewrites::rewrite_value;

/// Text that one word may grow to.
const MAX_WORD_BYTES: usize = 64 << 10;

/// Parts of a word; each may make all before it longer.
const MAX_ATOMS: usize = 2048;

/// Process substitutions of one command that read what it writes.
const MAX_READERS: usize = 4;

/// Words that one word may become.
const MAX_EXPANSIONS: usize = 64;

/// A part of a word during expansion.
#[derive(Debug, Clone)]
enum Atom<'w> {
    Character(char),
    Quoted(&'w str),
    Part(&'w WordPart),
}

impl Evaluator<'_> {
    pub(super) fn expand_words(
        &mut self,
        words: &[ScriptWord],
        scope: &mut Scope,
    ) -> Vec<ResolvedWord> {
        let mut expanded = Vec::with_capacity(words.len());
        for word in words {
            expanded.extend(self.expand(word, scope));
        }
        expanded
    }

    /// One word without splitting: of an assignment, a redirect or a text.
    pub(super) fn expand_text(&mut self, word: &ScriptWord, scope: &mut Scope) -> ResolvedWord {
        let atoms: Vec<Atom<'_>> = word.parts.iter().map(whole_part).collect();
        let mut found = self.resolve(&atoms, scope, false);
        match found.len() {
            0 => ResolvedWord::default(),
            1 => found.pop().unwrap_or_default(),
            _ => join(found),
        }
    }

    pub(super) fn expand(&mut self, word: &ScriptWord, scope: &mut Scope) -> Vec<ResolvedWord> {
        let has_braces = word.parts.iter().any(
            |part| matches!(part, WordPart::Text { text, is_quoted: false } if text.contains('{')),
        );
        if !has_braces {
            let atoms: Vec<Atom<'_>> = word.parts.iter().map(whole_part).collect();
            return self.resolve(&atoms, scope, true);
        }
        let mut atoms = Vec::new();
        for part in &word.parts {
            match part {
                WordPart::Text {
                    text,
                    is_quoted: false,
                } => {
                    atoms.extend(text.chars().map(Atom::Character));
                }
                other => atoms.push(whole_part(other)),
            }
        }
        let mut words = Vec::new();
        let Some(alternatives) = expand_braces(atoms) else {
            self.is_incomplete = true;
            return vec![ResolvedWord::unknown()];
        };
        for alternative in alternatives {
            words.extend(self.resolve(&alternative, scope, true));
        }
        words
    }

    /// Resolves atoms to words; a variable with several values gives several words.
    fn resolve(
        &mut self,
        atoms: &[Atom<'_>],
        scope: &mut Scope,
        splits: bool,
    ) -> Vec<ResolvedWord> {
        self.spend(atoms.len() + 1);
        if atoms.len() > MAX_ATOMS {
            self.is_incomplete = true;
            return vec![ResolvedWord::unknown()];
        }
        // Each alternative is a list of words, the last of which still grows.
        let mut alternatives: Vec<Vec<ResolvedWord>> = vec![vec![ResolvedWord::default()]];
        let mut has_content = false;
        let mut at_start = true;
        let mut index = 0;
        while let Some(atom) = atoms.get(index) {
            index += 1;
            match atom {
                Atom::Character(character) => {
                    let rest: String = atoms
                        .get(index..)
                        .unwrap_or_default()
                        .iter()
                        .map_while(|atom| match atom {
                            Atom::Character(next) => Some(*next),
                            _ => None,
                        })
                        .collect();
                    index += rest.chars().count();
                    let text = format!("{character}{rest}");
                    self.push_bare(&text, at_start, scope, &mut alternatives);
                    has_content = true;
                }
                Atom::Quoted(text) => {
                    for words in &mut alternatives {
                        if let Some(last) = words.last_mut() {
                            last.text.push_str(text);
                        }
                    }
                    has_content = true;
                }
                Atom::Part(WordPart::Text { text, is_quoted }) => {
                    if *is_quoted {
                        for words in &mut alternatives {
                            if let Some(last) = words.last_mut() {
                                last.text.push_str(text);
                            }
                        }
                    } else {
                        self.push_bare(text, at_start, scope, &mut alternatives);
                    }
                    has_content = true;
                }
                Atom::Part(part) => {
                    let (values, is_quoted) = self.part_values(part, scope);
                    // `"$@"` without parameters is no word.
                    let is_list = matches!(part, WordPart::Variable { name, .. } if name == "@");
                    has_content |= is_quoted && !is_list || !values.is_empty();
                    let splits = splits && !is_quoted;
                    let separators = field_separators(scope);
                    push_values(&mut alternatives, &values, splits.then_some(&separators));
                    let length = alternatives
                        .iter()
                        .flatten()
                        .map(|word| word.text.len())
                        .sum::<usize>();
                    self.spend(length / 64);
                    if length > MAX_WORD_BYTES {
                        // A value that doubles itself: nothing of it is kept.
                        self.is_incomplete = true;
                        return vec![ResolvedWord::unknown()];
                    }
                    if alternatives.len() > MAX_EXPANSIONS {
                        self.is_incomplete = true;
                        alternatives.truncate(MAX_EXPANSIONS);
                    }
                }
            }
            at_start = false;
        }
        if !has_content {
            return Vec::new();
        }
        alternatives.into_iter().flatten().collect()
    }

    fn push_bare(
        &mut self,
        text: &str,
        at_start: bool,
        scope: &Scope,
        alternatives: &mut [Vec<ResolvedWord>],
    ) {
        let text = self.expand_tilde(text, at_start, scope);
        let is_pattern = text.contains(['*', '?', '[']);
        for words in alternatives {
            if let Some(last) = words.last_mut() {
                last.text.push_str(&text);
                last.is_pattern |= is_pattern;
            }
        }
    }

    fn expand_tilde(&self, text: &str, at_start: bool, scope: &Scope) -> String {
        // `~` at the start, and after `=` as in `--prefix=~/x`.
        let (before, tail) = match text.find("=~") {
            Some(at) if !text.starts_with('~') => text.split_at(at + 1),
            _ if at_start => ("", text),
            _ => return text.to_owned(),
        };
        let Some(rest) = tail.strip_prefix('~') else {
            return text.to_owned();
        };
        let (user, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let home = match user {
            "" => self.home(scope),
            "+" => scope.cwd.clone().unwrap_or_else(|| UNKNOWN.to_string()),
            "-" => UNKNOWN.to_string(),
            "root" => "/root".to_owned(),
            user if user
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.".contains(c)) =>
            {
                format!("/home/{user}")
            }
            _ => return text.to_owned(),
        };
        format!("{before}{home}{path}")
    }

    /// The values that a part may have, and whether it is in quotes.
    fn part_values(&mut self, part: &WordPart, scope: &mut Scope) -> (Vec<ResolvedWord>, bool) {
        match part {
            WordPart::Text { text, is_quoted } => (vec![ResolvedWord::new(text)], *is_quoted),
            WordPart::Arithmetic(parts) => {
                for part in parts {
                    self.part_values(part, scope);
                }
                (vec![ResolvedWord::new("0")], true)
            }
            WordPart::Process { steps, is_reader } => {
                let (_, range) = self.substitute(steps, scope);
                if *is_reader && self.readers.len() < MAX_READERS {
                    self.readers.push(steps.clone());
                }
                let mut word = ResolvedWord::new(format!("/dev/fd/{UNKNOWN}"));
                word.sources.push(range);
                (vec![word], true)
            }
            WordPart::Command { steps, is_quoted } => {
                let (text, range) = self.substitute(steps, scope);
                let mut word = match text {
                    Some(text) => ResolvedWord::new(text.trim_end_matches('\n')),
                    // Names below a folder that a listing prints.
                    None => match self.listed_folders(&range).first() {
                        Some(folder) => {
                            ResolvedWord::new(format!("{}/{UNKNOWN}", folder.trim_end_matches('/')))
                        }
                        None => ResolvedWord::unknown(),
                    },
                };
                word.sources.push(range);
                (vec![word], *is_quoted)
            }
            WordPart::Variable {
                name,
                operator,
                is_quoted,
            } => {
                let known = self.variable(name, scope);
                let unknown_name = known.is_none().then(|| name.clone());
                let mut values = match operator {
                    VariableOperator::Plain => {
                        known.unwrap_or_else(|| vec![ResolvedWord::unknown()])
                    }
                    VariableOperator::Required(word) => {
                        self.expand_text(word, scope);
                        // Never empty, which is what the author took care of.
                        known.unwrap_or_else(|| vec![ResolvedWord::unknown()])
                    }
                    VariableOperator::Default { word, assigns } => {
                        let default = self.expand_text(word, scope);
                        match known {
                            Some(values) if values.iter().any(|value| !value.text.is_empty()) => {
                                values
                            }
                            // The author's own fallback speaks for the value.
                            _ => {
                                if *assigns {
                                    scope.set(name, vec![default.clone()]);
                                }
                                vec![default]
                            }
                        }
                    }
                    VariableOperator::Alternative(word) => {
                        let other = self.expand_text(word, scope);
                        match known {
                            Some(values) if values.iter().all(|value| value.text.is_empty()) => {
                                Vec::new()
                            }
                            _ => vec![other],
                        }
                    }
                    VariableOperator::Length => vec![ResolvedWord::new("0")],
                    VariableOperator::Indirect => {
                        let mut value = ResolvedWord::unknown();
                        for name in known.into_iter().flatten() {
                            if let Some([only]) = self.variable(&name.text, scope).as_deref() {
                                value.text.clone_from(&only.text);
                            }
                            value.variables.push(name.text);
                        }
                        vec![value]
                    }
                    VariableOperator::Other { operator, word } => {
                        let operand = self.expand_text(word, scope);
                        self.rewritten(known, operator, &operand)
                    }
                };
                // `${x:+word}` and `${#x}` do not show the value.
                let shows_value = !matches!(
                    operator,
                    VariableOperator::Alternative(_) | VariableOperator::Length
                );
                if let (Some(name), Some(first), true) =
                    (unknown_name, values.first_mut(), shows_value)
                {
                    first.variables.push(name);
                }
                (values, *is_quoted)
            }
        }
    }

    /// What `${x#y}`, `${x/y/z}` and their relatives give, as far as it is known.
    fn rewritten(
        &mut self,
        known: Option<Vec<ResolvedWord>>,
        operator: &str,
        operand: &ResolvedWord,
    ) -> Vec<ResolvedWord> {
        let mut values = known.unwrap_or_default();
        if values.is_empty() {
            values.push(ResolvedWord::unknown());
        }
        for value in &mut values {
            self.spend(value.text.len() / 16);
            value.text = rewrite_value(&value.text, operator, &operand.text)
                .unwrap_or_else(|| UNKNOWN.to_string());
        }
        values
    }

    fn variable(&self, name: &str, scope: &Scope) -> Option<Vec<ResolvedWord>> {
        let name = scope.referenced(name);
        if let Some(values) = scope.variables.get(name) {
            return Some(values.clone());
        }
        if let Some((list, index)) = name.split_once('[') {
            let values = scope.variables.get(list)?;
            // An index that is not known may name each of them.
            let index = index.trim_end_matches(']').parse::<usize>();
            return match index {
                Ok(index) => Some(values.get(index).cloned().into_iter().collect()),
                Err(_) => Some(values.clone()),
            };
        }
        let text = match name {
            "HOME" => self.home(scope),
            "PWD" => scope.cwd.clone()?,
            "TMPDIR" | "TEMP" | "TMP" => format!("/tmp/{UNKNOWN}"),
            "IFS" => " ".to_owned(),
            "$" | "!" | "#" | "?" | "RANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID" | "PPID" => {
                // A number; `0` reads as part of a name.
                "0".to_owned()
            }
            _ => return None,
        };
        Some(vec![ResolvedWord::new(text)])
    }
}

fn whole_part(part: &WordPart) -> Atom<'_> {
    match part {
        WordPart::Text {
            text,
            is_quoted: true,
        } => Atom::Quoted(text),
        part => Atom::Part(part),
    }
}

/// What separates the words of an unquoted value.
fn field_separators(scope: &Scope) -> String {
    let set = scope.variables.get("IFS").and_then(|values| values.first());
    set.map_or_else(|| " \t\n".to_owned(), |value| value.text.clone())
}

/// Appends the values of a part to every alternative, split into words if it is
/// not quoted.
fn push_values(
    alternatives: &mut Vec<Vec<ResolvedWord>>,
    values: &[ResolvedWord],
    separators: Option<&String>,
) {
    let splits = separators.is_some();
    if values.is_empty() {
        return;
    }
    let mut grown = Vec::with_capacity(alternatives.len() * values.len());
    for words in alternatives.iter() {
        for value in values.iter().take(MAX_EXPANSIONS) {
            let mut words = words.clone();
            let mut pieces: Vec<&str> = match separators {
                Some(separators) => value
                    .text
                    .split(|letter| separators.contains(letter))
                    .collect(),
                None => vec![&value.text],
            };
            if pieces.len() > 1 {
                let starts_blank = pieces.first().is_some_and(|piece| piece.is_empty());
                let is_fresh = words.last().is_some_and(|word| word.text.is_empty());
                pieces.retain(|piece| !piece.is_empty());
                if starts_blank && !is_fresh {
                    words.push(ResolvedWord::default());
                }
            }
            for (index, piece) in pieces.into_iter().enumerate() {
                if index > 0 {
                    words.push(ResolvedWord::default());
                }
                if let Some(last) = words.last_mut() {
                    last.text.push_str(piece);
                    // The values of `for x in *.log` match files even in quotes.
                    last.is_pattern |=
                        (splits || value.is_pattern) && piece.contains(['*', '?', '[']);
                    last.sources.extend(value.sources.iter().cloned());
                    last.variables.extend(value.variables.iter().cloned());
                }
            }
            grown.push(words);
        }
    }
    *alternatives = grown;
}

fn join(words: Vec<ResolvedWord>) -> ResolvedWord {
    let mut joined = ResolvedWord::default();
    for (index, word) in words.into_iter().enumerate() {
        if index > 0 {
            joined.text.push(' ');
        }
        joined.text.push_str(&word.text);
        joined.is_pattern |= word.is_pattern;
        joined.sources.extend(word.sources);
        joined.variables.extend(word.variables);
    }
    joined
}
