//! What a command line starts: programs with their words, as far as they are known.

use std::ops::Range;

use serde::Serialize;

use super::syntax::RedirectKind;

/// Stands in a word's text for what is only known at run time.
pub const UNKNOWN: char = '\0';

/// A word after expansion.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ResolvedWord {
    /// With [`UNKNOWN`] in place of each part that is not known.
    pub text: String,
    /// An unquoted `*`, `?` or `[` occurs in it.
    pub is_pattern: bool,
    /// Invocations whose output is a part of it.
    #[serde(skip)]
    pub sources: Vec<Range<usize>>,
    /// Variables whose unknown value is a part of it.
    #[serde(skip)]
    pub variables: Vec<String>,
}

impl ResolvedWord {
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub(crate) fn unknown() -> Self {
        Self::new(UNKNOWN.to_string())
    }

    pub(crate) fn has_unknown(&self) -> bool {
        self.text.contains(UNKNOWN)
    }

    /// Nothing of it is known.
    pub fn is_unknown(&self) -> bool {
        !self.text.is_empty() && self.text.chars().all(|character| character == UNKNOWN)
    }

    /// For people.
    pub fn shown(&self) -> String {
        self.text.replace(UNKNOWN, "…")
    }
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationPlace {
    #[default]
    Local,
    /// Another machine, by ssh.
    Remote,
    Container,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResolvedRedirect {
    pub kind: RedirectKind,
    pub target: ResolvedWord,
}

/// One program that would be started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Invocation {
    /// The program's name without folder and extension; empty if it is not known
    /// or there is only a redirect.
    pub name: String,
    /// The program first.
    pub words: Vec<ResolvedWord>,
    /// Variables that are set for this program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, ResolvedWord)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<ResolvedRedirect>,
    /// Text on its standard input, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_text: Option<String>,
    /// The invocations before it in a pipeline.
    #[serde(skip)]
    pub input_from: Range<usize>,
    /// Its folder; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Programs through which it is started, such as `sudo`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    pub place: InvocationPlace,
    /// The code that an interpreter gets as an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A function that starts itself twice.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_fork_bomb: bool,
}

impl Invocation {
    /// Words after the program.
    pub fn arguments(&self) -> &[ResolvedWord] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Texts of the words after the program.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.arguments().iter().map(|word| word.text.as_str())
    }

    /// The words that are no options, up to `--` and everything after it.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &ResolvedWord> {
        let mut all = false;
        self.arguments().iter().filter(move |word| {
            if all {
                return true;
            }
            all = word.text == "--";
            !word.text.starts_with('-') || word.text == "-"
        })
    }

    /// One of the short options (letters) or long options, the latter also cut
    /// short as far as `getopt_long` accepts it.
    pub(crate) fn has_option(&self, letters: &str, long: &[&str]) -> bool {
        self.texts()
            .take_while(|text| *text != "--")
            .any(|text| is_option(text, letters, long))
    }

    /// `program --help`: at one of the ends, where it is no value of another option.
    pub(crate) fn shows_help(&self) -> bool {
        let is_help = |text: &str| matches!(text, "--help" | "--version");
        let mut texts = self.texts().take_while(|text| *text != "--");
        let first = texts.next();
        let last = texts.last().or(first);
        first.is_some_and(is_help) || last.is_some_and(is_help)
    }

    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.texts().any(|text| text == word)
    }

    /// For people: the command line as it would run.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        for part in &self.via {
            shown.push_str(part);
            shown.push(' ');
        }
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                shown.push(' ');
            }
            let text = word.shown();
            if text.is_empty() || text.contains([' ', '\n', '\t', '\'', '"', ';', '|', '&']) {
                shown.push_str(&anyhook_util::shell::quote(&text));
            } else {
                shown.push_str(&text);
            }
        }
        for redirect in &self.redirects {
            let sign = match redirect.kind {
                RedirectKind::Input => "<",
                RedirectKind::Output => ">",
                RedirectKind::Append => ">>",
                RedirectKind::ReadWrite => "<>",
                RedirectKind::Duplicate | RedirectKind::Text => continue,
            };
            shown.extend([" ", sign, " "]);
            shown.push_str(&redirect.target.shown());
        }
        cut(&shown, MAX_SHOWN_CHARACTERS)
    }
}

const MAX_SHOWN_CHARACTERS: usize = 160;

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Whether a word is one of the options.
pub(crate) fn is_option(text: &str, letters: &str, long: &[&str]) -> bool {
    if let Some(name) = text.strip_prefix("--") {
        let name = name.split('=').next().unwrap_or_default();
        return !name.is_empty()
            && long.iter().any(|option| {
                let option = option.trim_start_matches('-');
                option == name || (name.len() >= 2 && option.starts_with(name))
            });
    }
    text.strip_prefix('-').is_some_and(|cluster| {
        !cluster.is_empty()
            && (cluster.chars().any(|letter| letters.contains(letter))
                && cluster
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == UNKNOWN))
            || long.contains(&text)
    })
}

/// A program's name without folder and extension, in lower case if it is a
/// Windows program.
pub(crate) fn program_name(text: &str) -> String {
    let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let lower = name.to_ascii_lowercase();
    for extension in [".exe", ".cmd", ".bat", ".com"] {
        if let Some(stem) = lower.strip_suffix(extension) {
            return stem.to_owned();
        }
    }
    // Some file systems do not distinguish them: `RM` is `rm`, but `R` is a language.
    let is_shouted = name.len() > 1
        && name.bytes().all(|byte| !byte.is_ascii_lowercase())
        && name.bytes().any(|byte| byte.is_ascii_uppercase());
    if is_shouted && !matches!(name, "GET" | "POST" | "HEAD") {
        return lower;
    }
    name.to_owned()
}
