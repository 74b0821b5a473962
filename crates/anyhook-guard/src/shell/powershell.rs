//! A word-level reading of PowerShell: commands, pipes, parentheses and aliases.
//! Commands with a POSIX relative get its name, so that the guards know one set.

mod commands;
mod translation;

use super::evaluate::{Evaluator, MAX_SCRIPTS, Scope};
use super::invocation::{ResolvedRedirect, ResolvedWord, UNKNOWN};
use super::syntax::RedirectKind;
use translation::each_of;

/// Open parentheses and braces that are followed.
const MAX_OPEN: usize = 100;

#[derive(Default)]
struct OpenCommand {
    words: Vec<ResolvedWord>,
    redirects: Vec<ResolvedRedirect>,
    redirect: Option<RedirectKind>,
    /// The invocations before it in its pipeline.
    from: std::ops::Range<usize>,
    /// The listing whose members a block is run for.
    each: std::ops::Range<usize>,
    /// The variable that it begins with.
    variable: Option<String>,
    /// What follows `$variable =` begins with a quote.
    assigns_text: bool,
}

pub(super) fn run(evaluator: &mut Evaluator<'_>, text: &str, scope: &Scope) {
    let mut reader = Reader {
        evaluator,
        scope: scope.clone(),
        open: vec![OpenCommand::default()],
        word: None,
        methods: 0,
    };
    reader.walk(text);
}

struct Reader<'e, 'c> {
    evaluator: &'e mut Evaluator<'c>,
    scope: Scope,
    open: Vec<OpenCommand>,
    word: Option<ResolvedWord>,
    /// Parentheses of method calls that are open.
    methods: usize,
}

impl Reader<'_, '_> {
    fn walk(&mut self, text: &str) {
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            self.evaluator.spend(1);
            if self.evaluator.is_exhausted() {
                return;
            }
            match character {
                '`' => {
                    if let Some((_, next)) = characters.next()
                        && next != '\n'
                    {
                        self.push(next);
                    }
                }
                '\'' | '"' => {
                    if self.word.is_none()
                        && let Some(command) = self.open.last_mut()
                        && command.words.get(1).is_some_and(|word| word.text == "=")
                    {
                        command.assigns_text = true;
                    }
                    self.word.get_or_insert_default();
                    while let Some((at, inside)) = characters.next() {
                        if inside == character {
                            if characters
                                .peek()
                                .is_some_and(|(_, next)| *next == character)
                            {
                                characters.next();
                                self.push(character);
                                continue;
                            }
                            break;
                        }
                        if inside == '`' && character == '"' {
                            if let Some((_, next)) = characters.next() {
                                self.push(next);
                            }
                        } else if inside == '$' && character == '"' {
                            let rest = text.get(at + 1..).unwrap_or_default();
                            let length = if rest.starts_with('(') {
                                self.substitute(rest)
                            } else {
                                self.variable(rest)
                            };
                            for _ in 0..length {
                                characters.next();
                            }
                        } else {
                            self.push(inside);
                        }
                    }
                }
                '$' => {
                    let is_first = self.word.is_none();
                    let rest = text.get(at + 1..).unwrap_or_default();
                    let length = self.variable(rest);
                    if is_first
                        && length > 0
                        && let Some(command) = self.open.last_mut()
                        && command.words.is_empty()
                    {
                        let name: String = rest.chars().take(length).collect();
                        command.variable = Some(name.trim_matches(['{', '}']).to_ascii_lowercase());
                    }
                    for _ in 0..length {
                        characters.next();
                    }
                }
                // `$x='text'` without blanks.
                '=' if self.assigns() => {
                    self.end_word();
                    self.push('=');
                    self.end_word();
                }
                '#' if self.word.is_none() => {
                    while characters.peek().is_some_and(|(_, next)| *next != '\n') {
                        characters.next();
                    }
                }
                ' ' | '\t' | '\r' | ',' => self.end_word(),
                ';' | '\n' => self.end_command(false),
                '&' if characters.peek().is_some_and(|(_, next)| *next == '&') => {
                    characters.next();
                    self.end_command(false);
                }
                '&' => self.end_word(),
                '|' => {
                    let is_or = characters.peek().is_some_and(|(_, next)| *next == '|');
                    if is_or {
                        characters.next();
                    }
                    self.end_command(!is_or);
                }
                '>' => {
                    // `2>` and `*>` number a stream.
                    if self.word.as_ref().is_some_and(|word| word.text.len() == 1) {
                        self.word = None;
                    }
                    self.end_word();
                    let appends = characters.next_if(|(_, next)| *next == '>').is_some();
                    if characters.next_if(|(_, next)| *next == '&').is_some() {
                        characters.next();
                        continue;
                    }
                    if let Some(command) = self.open.last_mut() {
                        command.redirect = Some(if appends {
                            RedirectKind::Append
                        } else {
                            RedirectKind::Output
                        });
                    }
                }
                '(' | '{' => {
                    // `.Method(` keeps its name as the command.
                    let is_method = self
                        .word
                        .as_ref()
                        .is_some_and(|word| word.text.contains('.') || word.text.contains("]::"));
                    self.end_word();
                    if self.open.len() >= MAX_OPEN {
                        self.evaluator.is_incomplete = true;
                        return;
                    }
                    if is_method {
                        self.methods += 1;
                    } else {
                        let each = self.open.last().map(each_of).unwrap_or_default();
                        self.open.push(OpenCommand {
                            each,
                            ..OpenCommand::default()
                        });
                    }
                }
                ')' if self.methods > 0 => {
                    self.methods -= 1;
                    self.end_word();
                }
                ')' | '}' => {
                    if self.open.len() > 1 {
                        let start = self.evaluator.invocations.len();
                        self.end_word();
                        let mut word = ResolvedWord::unknown();
                        let inner = self.open.last().map(|command| command.words.as_slice());
                        for part in inner.unwrap_or_default() {
                            word.sources.extend(part.sources.iter().cloned());
                        }
                        self.end_command(false);
                        self.open.pop();
                        let end = self.evaluator.invocations.len();
                        if end > start {
                            word.sources.push(start..end);
                        }
                        if let Some(command) = self.open.last_mut()
                            && character == ')'
                            && !word.sources.is_empty()
                        {
                            if end > start {
                                command.from = start.min(command.from.start.max(start))..end;
                            }
                            command.words.push(word);
                        }
                    } else {
                        self.end_word();
                    }
                }
                _ => self.push(character),
            }
        }
        while !self.open.is_empty() {
            self.end_command(false);
            self.open.pop();
        }
    }

    fn push(&mut self, character: char) {
        let word = self.word.get_or_insert_default();
        word.text.push(character);
        word.is_pattern |= matches!(character, '*' | '?');
    }

    /// Whether an `=` here follows the variable at the start of a command.
    fn assigns(&self) -> bool {
        self.open.last().is_some_and(|command| {
            command.variable.is_some() && command.words.is_empty() && self.word.is_some()
        })
    }

    /// `$(…)` in a text: runs it, and returns how many characters it has.
    fn substitute(&mut self, rest: &str) -> usize {
        let mut depth = 0usize;
        let mut length = 0;
        let mut end = rest.len();
        for (at, character) in rest.char_indices() {
            length += 1;
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = at;
                break;
            }
        }
        let inside = rest.get(1..end).unwrap_or_default();
        let range = self.run_inner(inside);
        let word = self.word.get_or_insert_default();
        word.text.push(UNKNOWN);
        word.sources.push(range);
        length
    }

    /// Reads a text that this one runs, and returns what it started.
    fn run_inner(&mut self, text: &str) -> std::ops::Range<usize> {
        let start = self.evaluator.invocations.len();
        if self.scope.scripts >= MAX_SCRIPTS {
            self.evaluator.is_incomplete = true;
            return start..start;
        }
        let mut child = self.scope.clone();
        child.scripts += 1;
        run(self.evaluator, text, &child);
        start..self.evaluator.invocations.len()
    }

    /// After `$`: pushes the value and returns how many characters the name has.
    fn variable(&mut self, rest: &str) -> usize {
        let braced = rest.starts_with('{');
        let name: String = rest
            .chars()
            .skip(usize::from(braced))
            .take_while(|letter| letter.is_alphanumeric() || "_:".contains(*letter))
            .collect();
        if name.is_empty() {
            // `$(…)`: the parenthesis follows.
            return 0;
        }
        let lower = name.to_ascii_lowercase();
        let mut sources = Vec::new();
        let value = match lower.as_str() {
            "home" | "env:userprofile" | "env:home" | "env:homepath" => {
                self.evaluator.home(&self.scope)
            }
            "pwd" => self
                .scope
                .cwd
                .clone()
                .unwrap_or_else(|| UNKNOWN.to_string()),
            "env:temp" | "env:tmp" => "/tmp/user".to_owned(),
            "env:systemroot" | "env:windir" => "C:/Windows".to_owned(),
            "env:systemdrive" => "C:".to_owned(),
            "env:programfiles" => "C:/Program Files".to_owned(),
            "null" | "true" | "false" => format!("${lower}"),
            _ => match self
                .scope
                .variables
                .get(&lower)
                .and_then(|values| values.first())
            {
                Some(value) => {
                    sources.extend(value.sources.iter().cloned());
                    value.text.clone()
                }
                None => UNKNOWN.to_string(),
            },
        };
        let word = self.word.get_or_insert_default();
        word.text.push_str(&value);
        word.sources.extend(sources);
        if value.contains(UNKNOWN)
            && let Some(name) = lower.strip_prefix("env:")
        {
            // The name of an environment variable says whether it is a secret.
            word.variables.push(name.to_ascii_uppercase());
        }
        name.chars().count() + if braced { 2 } else { 0 }
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.word.take() else {
            return;
        };
        if word.text == "~" || word.text.starts_with("~/") || word.text.starts_with("~\\") {
            word.text = self.evaluator.home(&self.scope) + word.text.get(1..).unwrap_or_default();
        }
        // One kind of separator in a path that has both.
        if word.text.starts_with('/') {
            word.text = word.text.replace('\\', "/");
        }
        let Some(command) = self.open.last_mut() else {
            return;
        };
        match command.redirect.take() {
            Some(kind) => command
                .redirects
                .push(ResolvedRedirect { kind, target: word }),
            None => command.words.push(word),
        }
    }
}
