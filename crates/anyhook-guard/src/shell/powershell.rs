//! A word-level reading of PowerShell: commands, pipes, parentheses and aliases.
//! Commands with a POSIX relative get its name, so that the guards know one set.

use super::evaluate::{Evaluator, MAX_SCRIPTS, Scope};
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

    fn end_command(&mut self, is_piped: bool) {
        self.end_word();
        let Some(command) = self.open.last_mut() else {
            return;
        };
        let each = command.each.clone();
        let command = std::mem::replace(
            command,
            OpenCommand {
                each,
                ..OpenCommand::default()
            },
        );
        let start = self.evaluator.invocations.len();
        if !command.words.is_empty() || !command.redirects.is_empty() {
            self.start(command);
        }
        let end = self.evaluator.invocations.len();
        if is_piped && let Some(next) = self.open.last_mut() {
            next.from = start..end;
        }
    }

    fn start(&mut self, mut command: OpenCommand) {
        if command.words.get(1).is_some_and(|word| word.text == "=") {
            return self.assign(command);
        }
        // A variable alone is printed.
        if let ([_], Some(name)) = (command.words.as_slice(), &command.variable)
            && let Some(name) = name.strip_prefix("env:")
        {
            let words = ["printenv".to_owned(), name.to_ascii_uppercase()];
            return self.evaluator.emit(Invocation {
                name: "printenv".to_owned(),
                words: words.map(ResolvedWord::new).into(),
                ..Invocation::in_scope(&self.scope)
            });
        }
        while command.words.first().is_some_and(|word| {
            matches!(
                word.text.as_str(),
                "." | "foreach" | "if" | "while" | "return" | "try"
            )
        }) {
            command.words.remove(0);
        }
        let mut words = command.words;
        let runs_text = words.first().is_some_and(|word| {
            matches!(
                word.text.to_ascii_lowercase().as_str(),
                "iex" | "invoke-expression"
            )
        });
        let fetches = words.iter().any(|word| {
            let lower = word.text.to_ascii_lowercase();
            ["downloadstring", "downloadfile", "downloaddata"]
                .iter()
                .any(|mark| lower.contains(mark))
        });
        if fetches {
            // `iex (…).DownloadString(…)` runs what the rest of the words fetches.
            let saves = words
                .iter()
                .any(|word| word.text.to_ascii_lowercase().contains("downloadfile"));
            let mut fetched: Vec<ResolvedWord> = std::iter::once(ResolvedWord::new("curl"))
                .chain(words.drain(1..))
                .collect();
            if saves {
                let last = fetched.len() - 1;
                fetched.insert(last, ResolvedWord::new("-o"));
            }
            let start = self.evaluator.invocations.len();
            self.evaluator.emit(Invocation {
                name: "curl".to_owned(),
                words: fetched,
                redirects: command.redirects.clone(),
                ..Invocation::in_scope(&self.scope)
            });
            if !runs_text {
                return;
            }
            let mut result = ResolvedWord::unknown();
            result.sources.push(start..self.evaluator.invocations.len());
            words.push(result);
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
        if name == "eval" {
            let text: Vec<&str> = words
                .iter()
                .skip(1)
                .map(|word| word.text.as_str())
                .collect();
            let text = text.join(" ");
            started.words = words;
            self.evaluator.emit(started);
            if !text.is_empty() && text.chars().any(|letter| letter != UNKNOWN) {
                self.run_inner(&text);
            }
            return;
        }
        if matches!(
            name.as_str(),
            "rm" | "cat" | "tee" | "mv" | "cp" | "printenv" | "mkfs" | "shutdown" | "kill"
        ) {
            started.words = words;
            // `ForEach-Object { Remove-Item $_.FullName }`: each of what was listed.
            let is_each = name == "rm"
                && started
                    .operands()
                    .next()
                    .is_some_and(|word| word.text.starts_with(UNKNOWN) && word.sources.is_empty());
            if is_each && !command.each.is_empty() {
                started.input_from = command.each;
                started.words.retain(|word| !word.text.starts_with(UNKNOWN));
            }
            if name == "rm" && started.operands().next().is_none() {
                let (fed, is_tree) = self.piped_paths(&started.input_from);
                if is_tree {
                    started.words.push(ResolvedWord::new("-r"));
                }
                started.words.push(fed);
            }
            return self.evaluator.emit(started);
        }
        let input = super::evaluate::StageInput {
            text: self.piped_text(&started.input_from).map(Into::into),
            from: started.input_from.clone(),
        };
        let mut scope = self.scope.clone();
        self.evaluator.start(words, started, &mut scope, &input);
    }

    /// `$name = value`: a text is kept, a command is run.
    fn assign(&mut self, mut command: OpenCommand) {
        let name = command.variable.take().unwrap_or_default();
        command.words.drain(..2);
        let is_value = command.assigns_text
            || matches!(command.words.as_slice(), [only] if only.has_unknown())
            || command
                .words
                .first()
                .is_some_and(|first| !first.sources.is_empty());
        let value = if is_value {
            let text: Vec<&str> = command
                .words
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            ResolvedWord {
                text: text.join(" "),
                sources: command
                    .words
                    .iter()
                    .flat_map(|word| word.sources.iter().cloned())
                    .collect(),
                ..ResolvedWord::default()
            }
        } else {
            let start = self.evaluator.invocations.len();
            command.assigns_text = false;
            if !command.words.is_empty() {
                self.start(command);
            }
            let mut value = ResolvedWord::unknown();
            value.sources.push(start..self.evaluator.invocations.len());
            value
        };
        if let Some(variable) = name.strip_prefix("env:") {
            let text = format!("{}={}", variable.to_ascii_uppercase(), value.text);
            self.evaluator.emit(Invocation {
                name: "export".to_owned(),
                words: vec![ResolvedWord::new("export"), ResolvedWord::new(text)],
                ..Invocation::in_scope(&self.scope)
            });
        }
        if !name.is_empty() {
            self.scope.set(&name, vec![value]);
        }
    }

    /// A text that is piped into a program, if it is known.
    fn piped_text(&self, from: &std::ops::Range<usize>) -> Option<String> {
        let known = super::output::known_output(&self.evaluator.invocations, from.clone());
        let known = known.filter(|text| !text.is_empty());
        known.or_else(|| {
            // `'a text' | program`: the text is read like the name of a program.
            let [only] = self.evaluator.invocations.get(from.clone())? else {
                return None;
            };
            let [text] = only.words.as_slice() else {
                return None;
            };
            (text.text.contains(' ') && !text.has_unknown()).then(|| text.text.clone())
        })
    }

    /// What a listing feeds into a command: a word, and whether whole trees.
    fn piped_paths(&self, from: &std::ops::Range<usize>) -> (ResolvedWord, bool) {
        let stages = self
            .evaluator
            .invocations
            .get(from.clone())
            .unwrap_or_default();
        let is_tree = stages
            .iter()
            .any(|stage| stage.name == "ls" && stage.has_word("-r"));
        let Some(folder) = self.evaluator.listed_folders(from).into_iter().next() else {
            return (ResolvedWord::unknown(), is_tree);
        };
        let is_filtered = stages
            .iter()
            .any(|stage| stage.name != "ls" || stage.has_word("--filtered"));
        let folder = folder.trim_end_matches('/');
        let mut fed = ResolvedWord::new(if is_filtered {
            format!("{folder}/{UNKNOWN}")
        } else {
            format!("{folder}/*")
        });
        fed.is_pattern = !is_filtered;
        (fed, is_tree)
    }
}

/// What a block of this command is run for: the members of a listing.
fn each_of(command: &OpenCommand) -> std::ops::Range<usize> {
    let is_loop = command.words.first().is_some_and(|word| {
        matches!(
            word.text.to_ascii_lowercase().as_str(),
            "%" | "foreach-object" | "foreach"
        )
    });
    if is_loop && !command.from.is_empty() {
        command.from.clone()
    } else {
        command.each.clone()
    }
}

/// The POSIX relative of a static method that uses files, and its operands.
fn file_method(lower: &str) -> Option<(&'static str, usize)> {
    let (class, method) = lower.split_once("]::")?;
    if !class.contains("file") && !class.contains("directory") {
        return None;
    }
    Some(match method {
        "readalltext" | "readalllines" | "readallbytes" | "openread" | "opentext" => ("cat", 1),
        "writealltext" | "writealllines" | "writeallbytes" | "appendalltext" | "create"
        | "openwrite" => ("tee", 1),
        "delete" => ("rm", 1),
        "move" => ("mv", 2),
        "copy" => ("cp", 2),
        _ => return None,
    })
}

const START_PROCESS_OPTIONS: &[&str] = &[
    "-args",
    "-argumentlist",
    "-filepath",
    "-nonewwindow",
    "-passthru",
    "-wait",
];

/// The POSIX relative of a command, with its words in that order.
fn translate(lower: &str, name: &str, words: Vec<ResolvedWord>) -> (String, Vec<ResolvedWord>) {
    let target = match lower {
        "remove-item" | "rm" | "del" | "erase" | "rd" | "rmdir" | "ri" => "rm",
        "clear-content" | "clc" => "tee",
        "get-content" | "gc" | "type" | "cat" | "select-string" | "sls" => "cat",
        "set-content" | "add-content" | "out-file" | "sc" | "ac" | "new-item" | "ni"
        | "tee-object" | "tee" => "tee",
        "move-item" | "mi" | "mv" | "move" | "rename-item" | "rni" | "ren" => "mv",
        "copy-item" | "ci" | "cpi" | "cp" | "copy" => "cp",
        "invoke-webrequest" | "iwr" | "invoke-restmethod" | "irm" | "wget" | "curl"
        | "start-bitstransfer" => "curl",
        "invoke-expression" | "iex" | "[scriptblock]::create" => "eval",
        "get-childitem" | "gci" | "dir" | "ls" => {
            if words
                .iter()
                .any(|word| word.text.to_ascii_lowercase().starts_with("env:"))
            {
                return ("printenv".to_owned(), vec![ResolvedWord::new("printenv")]);
            }
            "ls"
        }
        "get-item" | "gi" | "get-itemproperty" | "gp" => {
            let name_given = name;
            let name = words.iter().skip(1).find_map(|word| {
                let (drive, name) = word.text.split_once(':')?;
                drive.eq_ignore_ascii_case("env").then(|| name.to_owned())
            });
            let Some(name) = name else {
                return (name_given.to_owned(), words);
            };
            let variable = name.trim_start_matches(['\\', '/']).to_ascii_uppercase();
            let mut printed = vec![ResolvedWord::new("printenv")];
            if !variable.contains('*') {
                printed.push(ResolvedWord::new(variable));
            }
            return ("printenv".to_owned(), printed);
        }
        "compress-archive" => "tar",
        "format-volume" | "clear-disk" | "initialize-disk" | "remove-partition" => "mkfs",
        "stop-computer" | "restart-computer" => "shutdown",
        "set-location" | "sl" | "cd" | "push-location" | "pushd" => "cd",
        _ if lower.contains("getenvironmentvariable") => {
            let mut printed = words;
            printed.truncate(if lower.contains("getenvironmentvariables") {
                1
            } else {
                2
            });
            if let Some(first) = printed.first_mut() {
                *first = ResolvedWord::new("printenv");
            }
            return ("printenv".to_owned(), printed);
        }
        _ if lower.contains("]::") && file_method(lower).is_some() => {
            let (program, operands) = file_method(lower).unwrap_or(("cat", 1));
            let mut translated = vec![ResolvedWord::new(program)];
            if program == "rm" && lower.contains("directory") {
                translated.push(ResolvedWord::new("-r"));
            }
            translated.extend(words.into_iter().skip(1).take(operands));
            return (program.to_owned(), translated);
        }
        "start-process" | "saps" => {
            let rest: Vec<ResolvedWord> = words
                .into_iter()
                .skip(1)
                .filter(|word| {
                    let option = word.text.to_ascii_lowercase();
                    !START_PROCESS_OPTIONS.contains(&option.as_str())
                })
                .flat_map(|word| {
                    // One text with all arguments.
                    let parts: Vec<ResolvedWord> = word
                        .text
                        .split_whitespace()
                        .map(|part| ResolvedWord {
                            text: part.to_owned(),
                            ..word.clone()
                        })
                        .collect();
                    parts
                })
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
    let mut operands = 0;
    for word in words.into_iter().skip(1) {
        let option = word.text.to_ascii_lowercase();
        if std::mem::take(&mut skips_value) {
            continue;
        }
        if !option.starts_with('-') {
            operands += 1;
            // `Start-BitsTransfer source destination`.
            if operands == 2 && lower == "start-bitstransfer" {
                translated.push(ResolvedWord::new("-o"));
            }
            translated.push(word);
            continue;
        }
        match option.as_str() {
            _ if target == "curl"
                && option.len() > 1
                && ("-outfile".starts_with(&option) || "-destination" == option) =>
            {
                translated.push(ResolvedWord::new("-o"));
                operands = 2;
            }
            // A file that is sent.
            "-infile" if target == "curl" => translated.push(ResolvedWord::new("-T")),
            "-filter" | "-include" | "-exclude" if target == "ls" => {
                translated.push(ResolvedWord::new("--filtered"));
                skips_value = true;
            }
            _ if target == "ls" && option.len() > 1 && "-recurse".starts_with(&option) => {
                translated.push(ResolvedWord::new("-r"));
            }
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
