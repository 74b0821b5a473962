//! The lists of `corpus/matrix`: commands, and ways to write them.

use std::fs;
use std::path::Path;

/// A command that a guard promises to catch.
pub(crate) struct Promise {
    /// The guard's name and its options.
    pub(crate) guard: Vec<String>,
    /// It is about files of this machine or this folder.
    pub(crate) is_local: bool,
    /// It can be put wherever a program and its words can.
    pub(crate) is_simple: bool,
    pub(crate) command: String,
}

/// A way to write a command, with places for its parts.
pub(crate) struct Template {
    /// The heading below which it is written.
    pub(crate) section: String,
    pub(crate) text: String,
}

impl Template {
    /// The command written in this way; `None` if it does not fit.
    pub(crate) fn fill(&self, promise: &Promise) -> Option<String> {
        let fits = self.section.split_whitespace().all(|need| match need {
            "simple" => promise.is_simple,
            "plain" => promise.is_simple && promise.command.chars().all(is_plain),
            "joined" => promise.is_simple && !promise.command.contains('\''),
            "elsewhere" => !promise.is_local && (promise.is_simple || !self.needs_words()),
            _ => true,
        });
        let needs_literals = self.text.contains("{argv}") || self.text.contains("{jp}");
        let has_literals = || {
            raw_words(&promise.command)
                .iter()
                .all(|word| literal(word).is_some())
        };
        let lists = self.text.contains("{,}") && !promise.command.contains(' ');
        if lists || !fits || (needs_literals && !has_literals()) {
            return None;
        }
        let mut command = promise.command.clone();
        for layer in self.text.split(" <- ").collect::<Vec<_>>().iter().rev() {
            command = fill_layer(layer, &command);
        }
        Some(command)
    }

    fn needs_words(&self) -> bool {
        self.text.contains("{}") && !self.text.contains("\n{}")
    }
}

pub(crate) fn promises() -> Vec<Promise> {
    let mut guard = Vec::new();
    let mut is_local = false;
    let mut found = Vec::new();
    for line in lines("promises.txt") {
        if let Some(heading) = line.strip_prefix('@') {
            let mut words: Vec<String> = heading.split_whitespace().map(str::to_owned).collect();
            is_local = words.get(1).is_some_and(|word| word == "here");
            if is_local {
                words.remove(1);
            }
            guard = words;
            continue;
        }
        let script = line.strip_prefix("| ");
        found.push(Promise {
            guard: guard.clone(),
            is_local,
            is_simple: script.is_none(),
            command: script.unwrap_or(&line).to_owned(),
        });
    }
    found
}

pub(crate) fn templates(file: &str) -> Vec<Template> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in lines(file) {
        if let Some(heading) = line.strip_prefix('@') {
            heading.clone_into(&mut section);
            continue;
        }
        found.push(Template {
            section: section.clone(),
            text: line,
        });
    }
    found
}

/// The lines of a list without those that only explain it. `# {}` is a template.
fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus/matrix")
        .join(file);
    let text = fs::read_to_string(path).expect("a list");
    text.lines()
        .filter(|line| !line.is_empty() && (!line.starts_with('#') || line.starts_with("# {}")))
        .map(|line| line.replace('⏎', "\n"))
        .collect()
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_./=:@ ".contains(letter)
}

fn fill_layer(layer: &str, command: &str) -> String {
    let mut filled = String::new();
    let mut rest = layer;
    while let Some(letter) = rest.chars().next() {
        let place = PLACES.iter().find(|(mark, _)| rest.starts_with(mark));
        if let Some((mark, part)) = place {
            filled.push_str(&part(command));
            rest = rest.strip_prefix(mark).unwrap_or_default();
        } else {
            filled.push(letter);
            let mut letters = rest.chars();
            letters.next();
            rest = letters.as_str();
        }
    }
    filled
}

type Part = fn(&str) -> String;

const PLACES: &[(&str, Part)] = &[
    ("{}", str::to_owned),
    ("{'}", in_single_quotes),
    ("{\"}", in_double_quotes),
    ("{p}", |command| first_and_rest(command).0),
    ("{a}", |command| first_and_rest(command).1),
    ("{jp}", |command| json(&first_and_rest(command).0)),
    ("{,}", |command| raw_words(command).join(",")),
    ("{json}", json),
    ("{argv}", |command| {
        let words: Vec<String> = raw_words(command)
            .iter()
            .map(|word| json(&literal(word).unwrap_or_else(|| word.clone())))
            .collect();
        words.join(", ")
    }),
    ("{base64}", base64),
    ("{hex}", |command| {
        encoded(command, |byte| format!("{byte:02x}"))
    }),
    ("{\\x}", |command| {
        encoded(command, |byte| format!("\\x{byte:02x}"))
    }),
    ("{\\0}", |command| {
        encoded(command, |byte| format!("\\{byte:03o}"))
    }),
    ("{rev}", |command| command.chars().rev().collect()),
    ("{w'}", |command| each_word(command, in_single_quotes)),
    ("{w\"}", |command| each_word(command, in_double_quotes)),
    ("{w$}", |command| {
        each_word(command, |word| {
            format!("$'{}'", encoded(word, |byte| format!("\\x{byte:02x}")))
        })
    }),
    ("{w\\}", |command| {
        each_word(command, |word| {
            word.chars().flat_map(|letter| ['\\', letter]).collect()
        })
    }),
    ("{w+}", |command| {
        each_word(command, |word| {
            let mut letters = word.chars();
            let first: String = letters.by_ref().take(1).collect();
            format!("{first}\"\"{}", in_single_quotes(letters.as_str()))
        })
    }),
];

fn in_single_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn in_double_quotes(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if "\"\\$`".contains(letter) {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn encoded(text: &str, code: impl Fn(u8) -> String) -> String {
    text.bytes().map(code).collect()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for bytes in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0usize, |bits, at| {
            (bits << 8) | bytes.get(at).map_or(0, |byte| usize::from(*byte))
        });
        for at in 0..4 {
            encoded.push(if at <= bytes.len() {
                char::from(LETTERS[(bits >> (18 - 6 * at)) & 63])
            } else {
                '='
            });
        }
    }
    encoded
}

/// The words as they are written, with their quotes.
fn raw_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in command.chars() {
        match quote {
            None if letter == ' ' => {
                words.push(String::new());
                continue;
            }
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            Some(open) if open == letter => quote = None,
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    words
}

/// The text of a word in which a shell fills in nothing.
fn literal(word: &str) -> Option<String> {
    let has_quotes = word.contains('\'');
    let text = word.replace('\'', "");
    let is_safe = has_quotes
        || text
            .chars()
            .all(|letter| is_plain(letter) || "+,@".contains(letter));
    is_safe.then_some(text)
}

fn each_word(command: &str, quoted: impl Fn(&str) -> String) -> String {
    let words: Vec<String> = raw_words(command)
        .iter()
        .map(|word| literal(word).map_or_else(|| word.clone(), |text| quoted(&text)))
        .collect();
    words.join(" ")
}

fn first_and_rest(command: &str) -> (String, String) {
    let words = raw_words(command);
    let rest = words.get(1..).unwrap_or_default().join(" ");
    (words.into_iter().next().unwrap_or_default(), rest)
}
