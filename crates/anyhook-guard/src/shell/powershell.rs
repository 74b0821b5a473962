//! A word-level reading of PowerShell: commands, pipes, parentheses and aliases.
//! Commands with a POSIX relative get its name, so that the guards know one set.

use super::evaluate::{Evaluator, Scope};
use super::invocation::{Invocation, ResolvedRedirect, ResolvedWord, UNKNOWN, program_name};
use super::syntax::RedirectKind;

/// Open parentheses and braces that are followed.
const MAX_OPEN: usize = 100;

#[derive(Default)]
struct OpenCommand {
    words: Vec<ResolvedWord>,
    redirects: Vec<ResolvedRedirect>,
    redirect: Option<RedirectKind>,
    /// The invocations before it in its pipeline.
    from: std::ops::Range<usize>,
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
            match character {
                '`' => {
                    if let Some((_, next)) = characters.next()
                        && next != '\n'
                    {
                        self.push(next);
                    }
                }
                '\'' | '"' => {
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
                            let length = self.variable(text.get(at + 1..).unwrap_or_default());
                            for _ in 0..length {
                                characters.next();
                            }
                        } else {
                            self.push(inside);
                        }
                    }
                }
                '$' => {
                    let length = self.variable(text.get(at + 1..).unwrap_or_default());
                    for _ in 0..length {
                        characters.next();
                    }
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
                        .is_some_and(|word| word.text.contains('.'));
                    self.end_word();
                    if self.open.len() >= MAX_OPEN {
                        self.evaluator.is_incomplete = true;
                        return;
                    }
                    if is_method {
                        self.methods += 1;
                    } else {
                        self.open.push(OpenCommand::default());
                    }
                }
                ')' if self.methods > 0 => {
                    self.methods -= 1;
                    self.end_word();
                }
                ')' | '}' => {
                    if self.open.len() > 1 {
                        let start = self.evaluator.invocations.len();
                        self.end_command(false);
                        self.open.pop();
                        let end = self.evaluator.invocations.len();
                        if let Some(command) = self.open.last_mut()
                            && character == ')'
                            && end > start
                        {
                            command.from = start.min(command.from.start.max(start))..end;
                            let mut word = ResolvedWord::unknown();
                            word.sources.push(start..end);
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
        let value = match lower.as_str() {
            "home" | "env:userprofile" | "env:home" | "env:homepath" => {
                self.evaluator.home(&self.scope)
            }
            "pwd" => self
                .scope
                .cwd
                .clone()
                .unwrap_or_else(|| UNKNOWN.to_string()),
            "env:temp" | "env:tmp" => format!("/tmp/{UNKNOWN}"),
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
                Some(value) => value.text.clone(),
                None => UNKNOWN.to_string(),
            },
        };
        let word = self.word.get_or_insert_default();
        word.text.push_str(&value);
        if value.contains(UNKNOWN) && lower.starts_with("env:") {
            // The name of an environment variable says whether it is a secret.
            let name = name.get(4..).unwrap_or_default().to_owned();
            let mut printed = Invocation {
                name: "printenv".to_owned(),
                words: vec![ResolvedWord::new("printenv"), ResolvedWord::new(name)],
                ..Invocation::in_scope(&self.scope)
            };
            printed.via.push("$env".to_owned());
            self.evaluator.emit(printed);
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

    fn end_command(&mut self, is_piped: bool) {
        self.end_word();
        let Some(command) = self.open.last_mut() else {
            return;
        };
        let command = std::mem::take(command);
        let start = self.evaluator.invocations.len();
        if !command.words.is_empty() || !command.redirects.is_empty() {
            self.start(command);
        }
        let end = self.evaluator.invocations.len();
        if is_piped && let Some(next) = self.open.last_mut() {
            next.from = start..end;
        }
    }

    fn start(&mut self, command: OpenCommand) {
        let mut words = command.words;
        // `$x = value`, and `[Type]::Method`.
        if words.get(1).is_some_and(|word| word.text == "=") {
            words.drain(..2);
        }
        while words.first().is_some_and(|word| {
            matches!(
                word.text.as_str(),
                "." | "foreach" | "if" | "while" | "return" | "try"
            )
        }) {
            words.remove(0);
        }
        let fetches = words.iter().any(|word| {
            let lower = word.text.to_ascii_lowercase();
            ["downloadstring", "downloadfile", "downloaddata"]
                .iter()
                .any(|mark| lower.contains(mark))
        });
        if fetches && let Some(first) = words.first_mut() {
            "curl".clone_into(&mut first.text);
            first.sources.clear();
        }
        // `(command).Property` prints a part of its result.
        if words.first().is_some_and(ResolvedWord::is_unknown)
            && words.get(1).is_some_and(|word| word.text.starts_with('.'))
        {
            return;
        }
        let Some(first) = words.first() else {
            return;
        };
        let name = program_name(&first.text);
        let mut started = Invocation {
            redirects: command.redirects,
            input_from: command.from,
            ..Invocation::in_scope(&self.scope)
        };
        let (name, words) = translate(&name.to_ascii_lowercase(), &name, words);
        if name == "cd" {
            let target = words
                .get(1)
                .map(|word| word.text.clone())
                .unwrap_or_default();
            self.scope.cwd = crate::paths::normalize(self.scope.cwd.as_deref(), &target);
            return;
        }
        started.name.clone_from(&name);
        if matches!(
            name.as_str(),
            "rm" | "cat" | "tee" | "mv" | "cp" | "eval" | "printenv" | "mkfs" | "shutdown" | "kill"
        ) {
            started.words = words;
            if name == "rm" && started.operands().next().is_none() {
                // Paths come through the pipe.
                let folders = self.evaluator.listed_folders(&started.input_from);
                let fed = folders
                    .first()
                    .map_or_else(ResolvedWord::unknown, |folder| {
                        ResolvedWord::new(format!("{folder}/{UNKNOWN}"))
                    });
                started.words.push(fed);
            }
            return self.evaluator.emit(started);
        }
        let input = super::evaluate::StageInput {
            text: None,
            from: started.input_from.clone(),
        };
        let mut scope = self.scope.clone();
        self.evaluator.start(words, started, &mut scope, &input);
    }
}

/// The POSIX relative of a command, with its words in that order.
fn translate(lower: &str, name: &str, words: Vec<ResolvedWord>) -> (String, Vec<ResolvedWord>) {
    let target = match lower {
        "remove-item" | "rm" | "del" | "erase" | "rd" | "rmdir" | "ri" | "clear-content"
        | "clc" => "rm",
        "get-content" | "gc" | "type" | "cat" | "select-string" | "sls" => "cat",
        "set-content" | "add-content" | "out-file" | "sc" | "ac" | "new-item" | "ni"
        | "tee-object" | "tee" => "tee",
        "move-item" | "mi" | "mv" | "move" | "rename-item" | "rni" | "ren" => "mv",
        "copy-item" | "ci" | "cpi" | "cp" | "copy" => "cp",
        "invoke-webrequest" | "iwr" | "invoke-restmethod" | "irm" | "wget" | "curl"
        | "start-bitstransfer" => "curl",
        "invoke-expression" | "iex" => "eval",
        "get-childitem" | "gci" | "dir" | "ls" => {
            if words
                .iter()
                .any(|word| word.text.to_ascii_lowercase().starts_with("env:"))
            {
                return ("printenv".to_owned(), vec![ResolvedWord::new("printenv")]);
            }
            "ls"
        }
        "format-volume" | "clear-disk" | "initialize-disk" | "remove-partition" => "mkfs",
        "stop-computer" | "restart-computer" => "shutdown",
        "set-location" | "sl" | "cd" | "push-location" | "pushd" => "cd",
        "start-process" | "saps" => {
            let rest: Vec<ResolvedWord> = words
                .into_iter()
                .skip(1)
                .filter(|word| !word.text.starts_with('-') || word.text.len() <= 2)
                .collect();
            let name = rest
                .first()
                .map(|word| program_name(&word.text))
                .unwrap_or_default();
            return (name, rest);
        }
        _ if lower.contains("downloadstring")
            || lower.contains("downloadfile")
            || lower.contains("downloaddata") =>
        {
            "curl"
        }
        _ => return (name.to_owned(), words),
    };
    let mut translated = vec![ResolvedWord::new(target)];
    let mut skips_value = false;
    for word in words.into_iter().skip(1) {
        let option = word.text.to_ascii_lowercase();
        if std::mem::take(&mut skips_value) {
            continue;
        }
        if !option.starts_with('-') {
            translated.push(word);
            continue;
        }
        match option.as_str() {
            // cmdlets accept any unambiguous start of an option.
            _ if target == "rm" && option.len() > 1 && "-recurse".starts_with(&option) => {
                translated.push(ResolvedWord::new("-r"));
            }
            _ if target == "rm" && option.len() > 1 && "-force".starts_with(&option) => {
                translated.push(ResolvedWord::new("-f"));
            }
            "-rf" | "-fr" if target == "rm" => translated.push(ResolvedWord::new("-rf")),
            "-filter" | "-include" | "-exclude" | "-encoding" | "-erroraction" | "-ea"
            | "-itemtype" | "-type" | "-value" | "-pattern" | "-headers" | "-method"
            | "-contenttype" | "-useragent" => skips_value = true,
            _ => {}
        }
    }
    (target.to_owned(), translated)
}
