//! Walks a script as a shell would, as far as that is possible without running
//! anything, and collects what it starts.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::invocation::{
    Invocation, InvocationPlace, ResolvedRedirect, ResolvedWord, UNKNOWN, program_name,
};
use super::mounts::Mount;
use super::output;
use super::parser::{self, MAX_NESTING};
use super::syntax::{
    Assignment, BlockKind, RedirectKind, Script, ScriptItem, SimpleCommand, SyntaxRedirect,
};
use crate::paths::normalize;

/// Work after which a script is given up: the guards ask. A command of 64 KiB with
/// plain words costs about a quarter of it.
const MAX_WORK: usize = 60_000;

/// Words and redirects of one program. The guards compare words with each other, so
/// that more would cost the square of their number.
const MAX_WORDS: usize = 2048;

/// Programs of one command; those of a longer list are not judged one by one.
const MAX_INVOCATIONS: usize = 1000;

/// Loops in loops whose body is read for one value as well.
const MAX_NESTED_LOOPS: usize = 3;

/// Variables whose value is a command that some program runs.
const COMMAND_VARIABLES: &[&str] = &[
    "BROWSER",
    "EDITOR",
    "FCEDIT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_EDITOR",
    "VISUAL",
];

/// Descriptors that are followed.
const MAX_DESCRIPTORS: usize = 16;

/// The first number that the shell gives to `{name}<`.
const FIRST_CHOSEN_DESCRIPTOR: usize = 10;

/// Local variables of functions that are remembered.
const MAX_LOCALS: usize = 64;

/// Programs that start programs: `sudo env nice …`.
pub(super) const MAX_WRAPPERS: usize = 24;

/// Scripts in scripts: `sh -c "sh -c …"`.
pub(super) const MAX_SCRIPTS: usize = 12;

pub(super) struct Evaluator<'c> {
    pub(super) home: Option<&'c str>,
    pub(super) project: Option<&'c str>,
    pub(super) invocations: Vec<Invocation>,
    /// Something was left out: too deep, too long, too many words.
    pub(super) is_incomplete: bool,
    pub(super) has_errors: bool,
    pub(super) work: usize,
    /// Files that the command itself writes, with their text.
    pub(super) written: HashMap<String, String>,
    /// Programs that the command itself copies or links, by their new path.
    pub(super) copies: Vec<(String, String)>,
    /// Symbolic links that the command itself creates.
    pub(super) links: Vec<Mount>,
    /// Folders of the host in the container whose command is being read.
    pub(super) mounts: Vec<Mount>,
}

#[derive(Clone)]
pub(super) struct Scope {
    pub(super) variables: Rc<HashMap<String, Vec<ResolvedWord>>>,
    functions: Rc<HashMap<String, Rc<ScriptItem>>>,
    aliases: Rc<HashMap<String, String>>,
    pub(super) cwd: Option<String>,
    pub(super) place: InvocationPlace,
    /// Inside a branch or loop: what is assigned there is one of several values.
    is_conditional: bool,
    /// Functions and aliases that are being run.
    active: Vec<String>,
    /// Scripts and functions around this one.
    pub(super) scripts: usize,
    pub(super) nesting: usize,
    pub(super) via: Vec<String>,
    /// Descriptors above 2 that are open for reading.
    descriptors: Vec<(String, ResolvedRedirect)>,
    /// Variables of the functions that are being run.
    locals: Vec<String>,
    /// Loops around this whose body is read twice.
    loops: usize,
}

/// What a command reads.
#[derive(Debug, Clone, Default)]
pub(super) struct StageInput {
    pub(super) text: Option<Rc<str>>,
    pub(super) from: Range<usize>,
}

impl Scope {
    pub(super) fn new(cwd: Option<String>) -> Self {
        Self {
            variables: Rc::default(),
            functions: Rc::default(),
            aliases: Rc::default(),
            cwd,
            place: InvocationPlace::Local,
            is_conditional: false,
            active: Vec::new(),
            scripts: 0,
            nesting: 0,
            via: Vec::new(),
            descriptors: Vec::new(),
            locals: Vec::new(),
            loops: 0,
        }
    }

    pub(super) fn set(&mut self, name: &str, values: Vec<ResolvedWord>) {
        let is_conditional = self.is_conditional;
        let variables = Rc::make_mut(&mut self.variables);
        match variables.get_mut(name) {
            Some(known) if is_conditional && known.len() < 8 => known.extend(values),
            _ => {
                variables.insert(name.to_owned(), values);
            }
        }
    }
}

impl Evaluator<'_> {
    pub(super) fn spend(&mut self, amount: usize) {
        self.work += amount;
        self.is_incomplete |= self.work > MAX_WORK;
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.work > MAX_WORK
    }

    pub(super) fn home(&self, scope: &Scope) -> String {
        match (scope.place, self.home) {
            (InvocationPlace::Local, Some(home)) => home.to_owned(),
            _ => "/home/~".to_owned(),
        }
    }

    /// Parses and walks a text that a shell would run.
    pub(super) fn run_text(&mut self, text: &str, scope: &mut Scope, input: &StageInput) {
        if scope.scripts >= MAX_SCRIPTS || self.is_exhausted() {
            self.is_incomplete = true;
            return;
        }
        self.spend(text.len() / 8 + 1);
        let parsed = parser::parse(text, scope.nesting);
        self.is_incomplete |= parsed.is_too_deep;
        self.has_errors |= parsed.has_errors;
        scope.scripts += 1;
        self.run_steps(&parsed.script, scope, input);
        scope.scripts -= 1;
    }

    /// The same in a process of its own: what it sets is lost.
    pub(super) fn run_child_text(&mut self, text: &str, scope: &Scope, input: &StageInput) {
        let mut child = scope.clone();
        self.run_text(text, &mut child, input);
    }

    pub(super) fn run_steps(&mut self, steps: &Script, scope: &mut Scope, input: &StageInput) {
        for step in steps {
            if self.is_exhausted() {
                return;
            }
            if step.is_alternative {
                self.run_conditional(scope, |evaluator, scope| {
                    evaluator.run_item(&step.item, scope, input);
                });
            } else {
                self.run_item(&step.item, scope, input);
            }
        }
    }

    /// What may or may not run: afterwards both states are possible.
    fn run_conditional(&mut self, scope: &mut Scope, run: impl FnOnce(&mut Self, &mut Scope)) {
        let cwd = scope.cwd.clone();
        let was_conditional = std::mem::replace(&mut scope.is_conditional, true);
        run(self, scope);
        scope.is_conditional = was_conditional;
        if scope.cwd != cwd {
            scope.cwd = None;
        }
    }

    fn run_item(&mut self, item: &ScriptItem, scope: &mut Scope, input: &StageInput) {
        self.spend(1);
        match item {
            ScriptItem::Simple(command) => self.run_simple(command, scope, input),
            ScriptItem::Pipeline(stages) => {
                let mut input = input.clone();
                for stage in stages {
                    let start = self.invocations.len();
                    // Each stage is a process; a loop at the end reads what feeds it.
                    self.spend(scope.variables.len() / 64);
                    let mut child = scope.clone();
                    self.run_item(stage, &mut child, &input);
                    let range = start..self.invocations.len();
                    let text = output::known_output(&self.invocations, range.clone());
                    input = StageInput {
                        text: text.map(Into::into),
                        from: range,
                    };
                }
            }
            ScriptItem::Block {
                steps,
                redirects,
                kind,
            } => {
                let input = self.block_input(redirects, scope, input);
                match kind {
                    BlockKind::Group => self.run_steps(steps, scope, &input),
                    BlockKind::Subshell => {
                        self.spend(scope.variables.len() / 64);
                        let mut child = scope.clone();
                        self.run_steps(steps, &mut child, &input);
                    }
                    BlockKind::Conditional => self.run_conditional(scope, |evaluator, scope| {
                        evaluator.run_steps(steps, scope, &input);
                    }),
                }
            }
            ScriptItem::For {
                variable,
                words,
                steps,
                redirects,
            } => {
                let input = self.block_input(redirects, scope, input);
                let values = match words {
                    Some(words) => self.expand_words(words, scope),
                    None => scope.variables.get("@").cloned().unwrap_or_default(),
                };
                if !variable.is_empty() {
                    let values = if values.is_empty() {
                        vec![ResolvedWord::unknown()]
                    } else {
                        values
                    };
                    self.is_incomplete |= values.len() > 64;
                    // All values at once, and one alone: several words in the place of
                    // one would hide what follows them, as in `git -C "$r" reset`.
                    if values.len() > 1 && scope.loops < MAX_NESTED_LOOPS {
                        let mut child = scope.clone();
                        let first = values.iter().take(1).cloned().collect();
                        Rc::make_mut(&mut child.variables).insert(variable.clone(), first);
                        child.loops += 1;
                        self.run_steps(steps, &mut child, &input);
                    }
                    Rc::make_mut(&mut scope.variables)
                        .insert(variable.clone(), values.into_iter().take(64).collect());
                }
                self.run_conditional(scope, |evaluator, scope| {
                    evaluator.run_steps(steps, scope, &input);
                });
            }
            ScriptItem::Function { name, body } => {
                let body = Rc::new(body.as_ref().clone());
                self.spend(scope.functions.len());
                Rc::make_mut(&mut scope.functions).insert(name.clone(), body);
            }
            ScriptItem::Words(words) => {
                self.expand_words(words, scope);
            }
        }
    }

    /// Redirects of a compound command: files it writes, and what its commands read.
    fn block_input(
        &mut self,
        redirects: &[SyntaxRedirect],
        scope: &mut Scope,
        input: &StageInput,
    ) -> StageInput {
        if redirects.is_empty() {
            return input.clone();
        }
        let (redirects, text) = self.expand_redirects(redirects, scope);
        let has_input = redirects
            .iter()
            .any(|redirect| redirect.kind == RedirectKind::Input);
        let mut from = input.from.clone();
        for redirect in &redirects {
            for source in &redirect.target.sources {
                from = source.clone();
            }
        }
        if !redirects.is_empty() {
            self.emit(Invocation {
                redirects,
                ..Invocation::in_scope(scope)
            });
        }
        match text {
            Some(text) => StageInput {
                text: Some(text.into()),
                from: 0..0,
            },
            None if has_input => StageInput { text: None, from },
            None => input.clone(),
        }
    }

    /// The output of a substitution, if it is known, and what ran.
    pub(super) fn substitute(
        &mut self,
        steps: &Script,
        scope: &Scope,
    ) -> (Option<String>, Range<usize>) {
        let start = self.invocations.len();
        if self.is_exhausted() {
            return (None, start..start);
        }
        self.spend(1 + scope.variables.len() / 64);
        let mut child = scope.clone();
        self.run_steps(steps, &mut child, &StageInput::default());
        let range = start..self.invocations.len();
        let text = output::known_output(&self.invocations, range.clone())
            .or_else(|| self.known_folder(range.clone()));
        (text, range)
    }

    /// Folders that commands print.
    fn known_folder(&self, range: Range<usize>) -> Option<String> {
        let [only] = self.invocations.get(range.clone())? else {
            return None;
        };
        match only.name.as_str() {
            "pwd" => only.cwd.clone(),
            "mktemp" => Some(temporary_name(only, range.start)),
            "git" if only.has_word("--show-toplevel") => self.project.map(str::to_owned),
            "which" | "type" => only.arguments().last().map(|word| word.text.clone()),
            "command" => only.arguments().last().map(|word| word.text.clone()),
            "realpath" | "readlink" => {
                let path = only.operands().last()?;
                (!path.has_unknown()).then(|| normalize(only.cwd.as_deref(), &path.text))?
            }
            "dirname" => {
                let path = only.operands().last()?;
                let (folder, _) = path.text.rsplit_once('/')?;
                Some(if folder.is_empty() {
                    "/".into()
                } else {
                    folder.into()
                })
            }
            _ => None,
        }
    }

    pub(super) fn emit(&mut self, mut invocation: Invocation) {
        self.limit(&mut invocation.words);
        self.limit(&mut invocation.redirects);
        self.follow_mounts(&mut invocation);
        self.note_link(&invocation);
        self.note_copy(&invocation);
        let words = invocation.words.len();
        self.spend(1 + words + words * words / 1024);
        if self.invocations.len() >= MAX_INVOCATIONS {
            self.is_incomplete = true;
            self.work = MAX_WORK + 1;
            return;
        }
        self.note_written(&invocation);
        self.invocations.push(invocation);
    }

    /// Remembers what a command writes into a file, so that running it is no
    /// hiding place.
    fn note_written(&mut self, invocation: &Invocation) {
        let redirects = invocation.redirects.iter().filter(|redirect| {
            matches!(redirect.kind, RedirectKind::Output | RedirectKind::Append)
        });
        let mut targets: Vec<&str> = redirects
            .map(|redirect| redirect.target.text.as_str())
            .collect();
        if invocation.name == "tee" {
            targets.extend(invocation.operands().map(|word| word.text.as_str()));
        }
        if targets.is_empty() || self.written.len() > 64 {
            return;
        }
        let Some(text) = output::printed(invocation) else {
            return;
        };
        self.spend(text.len() / 8);
        for target in targets {
            if let Some(path) = normalize(invocation.cwd.as_deref(), target) {
                let known = self.written.entry(path).or_default();
                known.push_str(&text);
                known.push('\n');
            }
        }
    }

    /// The text of a file that an earlier part of the command wrote.
    pub(super) fn written_text(&self, scope: &Scope, path: &str) -> Option<String> {
        if self.written.is_empty() {
            return None;
        }
        let path = normalize(scope.cwd.as_deref(), path)?;
        self.written.get(&path).cloned()
    }

    /// The redirects to files, and the text of here-documents and here-strings.
    fn expand_redirects(
        &mut self,
        redirects: &[SyntaxRedirect],
        scope: &mut Scope,
    ) -> (Vec<ResolvedRedirect>, Option<String>) {
        let mut expanded = Vec::new();
        let mut text = None;
        for redirect in redirects {
            let target = self.expand_text(&redirect.word, scope);
            if redirect.kind == RedirectKind::Text {
                text = Some(target.text.clone());
                // Keep what the text is made from.
                if target.sources.is_empty()
                    && target.variables.is_empty()
                    && redirect.descriptor.is_empty()
                {
                    continue;
                }
            }
            if redirect.kind == RedirectKind::Duplicate {
                // `<&3` reads what `exec 3< file` has opened.
                let opened = scope
                    .descriptors
                    .iter()
                    .rev()
                    .find(|(descriptor, _)| *descriptor == target.text);
                if let Some((_, opened)) = opened {
                    if opened.kind == RedirectKind::Text {
                        text = Some(opened.target.text.clone());
                    }
                    expanded.push(opened.clone());
                }
                continue;
            }
            let resolved = ResolvedRedirect {
                kind: redirect.kind,
                target,
            };
            let is_input = matches!(
                redirect.kind,
                RedirectKind::Input | RedirectKind::Text | RedirectKind::ReadWrite
            );
            let mut descriptor = redirect.descriptor.clone();
            // `{name}<`: the shell chooses a number and keeps it in the variable.
            if descriptor.starts_with(|first: char| !first.is_ascii_digit()) {
                let number = (FIRST_CHOSEN_DESCRIPTOR + scope.descriptors.len()).to_string();
                scope.set(&descriptor, vec![ResolvedWord::new(&number)]);
                descriptor = number;
            }
            if is_input
                && descriptor.parse().is_ok_and(|number: usize| number > 2)
                && scope.descriptors.len() < MAX_DESCRIPTORS
            {
                scope.descriptors.push((descriptor, resolved.clone()));
            }
            expanded.push(resolved);
        }
        (expanded, text)
    }

    fn assign(&mut self, assignment: &Assignment, scope: &mut Scope) -> Vec<ResolvedWord> {
        let mut values: Vec<ResolvedWord> = Vec::new();
        for word in assignment.values.iter().take(64) {
            values.push(self.expand_text(word, scope));
        }
        if assignment.appends
            && let Some(known) = scope.variables.get(&assignment.name)
            && let ([old], [new]) = (known.as_slice(), values.as_mut_slice())
        {
            new.text.insert_str(0, &old.text);
            new.sources.extend(old.sources.iter().cloned());
            new.variables.extend(old.variables.iter().cloned());
        }
        values
    }

    fn run_simple(&mut self, command: &SimpleCommand, scope: &mut Scope, input: &StageInput) {
        let words = self.expand_words(&command.words, scope);
        let mut variables = Vec::new();
        let sets_variables = command.words.is_empty() || command.is_declaration();
        for assignment in &command.assignments {
            let values = self.assign(assignment, scope);
            if sets_variables {
                self.spend(1);
                scope.set(&assignment.name, values.clone());
            }
            variables.extend(
                values
                    .into_iter()
                    .map(|value| (assignment.name.clone(), value)),
            );
        }
        let (mut redirects, text) = self.expand_redirects(&command.redirects, scope);
        self.limit(&mut redirects);
        let mut input = input.clone();
        if let Some(text) = text {
            input.text = Some(text.into());
        }
        for redirect in &redirects {
            if matches!(redirect.kind, RedirectKind::Input | RedirectKind::Text)
                && let Some(source) = redirect.target.sources.last()
            {
                input.from = source.clone();
                if redirect.kind == RedirectKind::Input {
                    input.text =
                        output::known_output(&self.invocations, source.clone()).map(Into::into);
                }
            }
        }
        for redirect in &redirects {
            if redirect.kind == RedirectKind::Input
                && let Some(text) = self.written_text(scope, &redirect.target.text)
            {
                input.text = Some(text.into());
            }
        }
        let mut started = Invocation::in_scope(scope);
        started.variables = variables;
        started.redirects = redirects;
        // Programs that other programs start by the name of a variable.
        let mut scripts: Vec<String> = started
            .variables
            .iter()
            .filter(|(name, value)| {
                value.text.contains(' ') && COMMAND_VARIABLES.contains(&name.as_str())
            })
            .map(|(_, value)| value.text.trim_start_matches(['|', '-', '!']).to_owned())
            .collect();
        // Prompts are expanded, and so run what is in them.
        scripts.extend(started.variables.iter().filter_map(|(name, value)| {
            let is_prompt = matches!(name.as_str(), "PS0" | "PS1" | "PS2" | "PS4");
            (is_prompt && value.text.contains(['$', '`'])).then(|| format!(": \"{}\"", value.text))
        }));
        // Files that a shell reads first.
        for (name, value) in &started.variables {
            if matches!(name.as_str(), "BASH_ENV" | "ENV") {
                let printed = value
                    .sources
                    .last()
                    .and_then(|source| output::known_output(&self.invocations, source.clone()));
                scripts.extend(printed.or_else(|| self.written_text(scope, &value.text)));
            }
        }
        for script in scripts.iter().take(4) {
            self.run_child_text(script, scope, &StageInput::default());
        }
        if words.is_empty() {
            if !started.redirects.is_empty() || !started.variables.is_empty() {
                self.emit(started);
            }
            return;
        }
        // The words of an unknown command with options split from a variable.
        self.start(words, started, scope, &input);
    }

    /// Leaves out what no guard will look at.
    fn limit<T>(&mut self, items: &mut Vec<T>) {
        if items.len() > MAX_WORDS {
            self.is_incomplete = true;
            items.truncate(MAX_WORDS);
        }
    }

    /// Runs a builtin or function, opens a wrapper, or notes the program.
    pub(super) fn start(
        &mut self,
        mut words: Vec<ResolvedWord>,
        mut started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        if scope.via.len() > MAX_WRAPPERS {
            self.is_incomplete = true;
            return;
        }
        self.limit(&mut words);
        self.spend(words.len() + 1);
        let Some(program) = words.first() else {
            return;
        };
        started.name = if program.has_unknown() {
            String::new()
        } else {
            self.original_program(scope, &program.text)
                .unwrap_or_else(|| program_name(&program.text))
        };
        started.input_text = input.text.as_deref().map(str::to_owned);
        started.input_from = input.from.clone();
        let name = started.name.clone();
        started.words = words;
        if let Some(value) = scope.aliases.get(&name).cloned()
            && !scope.active.contains(&name)
        {
            let rest: Vec<String> = started
                .texts()
                .map(anyhook_util::shell::quote_if_needed)
                .collect();
            scope.active.push(name);
            let text = format!("{value} {}", rest.join(" "));
            self.run_text(&text, scope, input);
            scope.active.pop();
            return;
        }
        if let Some(body) = scope.functions.get(&name).cloned() {
            self.call_function(&name, &body, started, scope, input);
            return;
        }
        self.start_program(started, scope, input);
    }

    /// The program of which a file is a copy that the command itself has made.
    fn original_program(&self, scope: &Scope, program: &str) -> Option<String> {
        if self.copies.is_empty() || !program.contains('/') {
            return None;
        }
        let path = normalize(scope.cwd.as_deref(), program)?;
        let mut copies = self.copies.iter();
        let (_, original) = copies.find(|(copy, _)| *copy == path)?;
        Some(original.clone())
    }

    fn call_function(
        &mut self,
        name: &str,
        body: &ScriptItem,
        mut started: Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        if scope.active.iter().any(|active| active == name) {
            // It starts itself; more than once means a fork bomb.
            let earlier = self
                .invocations
                .iter()
                .filter(|earlier| {
                    earlier.name == name && earlier.via.iter().any(|via| via == "function")
                })
                .count();
            started.via.push("function".to_owned());
            started.is_fork_bomb = earlier > 0;
            self.emit(started);
            return;
        }
        if scope.scripts >= MAX_SCRIPTS {
            self.is_incomplete = true;
            return;
        }
        self.spend(scope.variables.len() / 16 + 4);
        let outer = Rc::clone(&scope.variables);
        let variables = Rc::make_mut(&mut scope.variables);
        for (index, word) in started.arguments().iter().enumerate().take(9) {
            variables.insert((index + 1).to_string(), vec![word.clone()]);
        }
        let all: Vec<_> = started.arguments().iter().take(64).cloned().collect();
        variables.insert("@".to_owned(), all.clone());
        variables.insert("*".to_owned(), all);
        scope.active.push(name.to_owned());
        scope.scripts += 1;
        let locals = scope.locals.len();
        self.run_item(body, scope, input);
        scope.scripts -= 1;
        scope.active.pop();
        // What the function set stays; the parameters and what was `local` come back.
        let locals = scope.locals.split_off(locals.min(scope.locals.len()));
        let variables = Rc::make_mut(&mut scope.variables);
        let parameters = ["@", "*", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        for name in parameters
            .into_iter()
            .chain(locals.iter().map(String::as_str))
        {
            match outer.get(name) {
                Some(values) => variables.insert(name.to_owned(), values.clone()),
                None => variables.remove(name),
            };
        }
    }

    /// Builtins that change the shell's own state. True: nothing else is to be done.
    pub(super) fn run_builtin(
        &mut self,
        started: &Invocation,
        scope: &mut Scope,
        input: &StageInput,
    ) -> bool {
        match started.name.as_str() {
            "cd" | "pushd" | "chdir" | "Set-Location" | "sl" => {
                let target = started.operands().find(|word| word.text != "--");
                scope.cwd = match target {
                    None => Some(self.home(scope)),
                    Some(word) if word.has_unknown() && !word.text.starts_with('/') => None,
                    Some(word) if word.text == "-" => None,
                    Some(word) if word.is_pattern => {
                        let unknown = word.text.replace(['*', '?'], &UNKNOWN.to_string());
                        normalize(scope.cwd.as_deref(), &unknown)
                    }
                    Some(word) => normalize(scope.cwd.as_deref(), &word.text),
                };
                true
            }
            "popd" => {
                scope.cwd = None;
                true
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                let is_local = !scope.active.is_empty()
                    && matches!(started.name.as_str(), "local" | "declare" | "typeset")
                    && !started.has_option("g", &[]);
                for word in started.operands() {
                    if let Some((name, value)) = word.text.split_once('=') {
                        if is_local && scope.locals.len() < MAX_LOCALS {
                            scope.locals.push(name.to_owned());
                        }
                        let value = ResolvedWord {
                            text: value.to_owned(),
                            ..word.clone()
                        };
                        scope.set(name, vec![value]);
                    }
                }
                // `export -p` prints everything; an assignment is noted for the guards.
                self.emit(started.clone());
                true
            }
            "unset" => {
                for name in started.operands() {
                    let value = ResolvedWord::default();
                    scope.set(&name.text, vec![value]);
                }
                true
            }
            "read" | "mapfile" | "readarray" | "getopts" => {
                if !started.redirects.is_empty() {
                    self.emit(started.clone());
                }
                let fed = ResolvedWord {
                    sources: vec![input.from.clone()],
                    ..self.fed_word(input)
                };
                let names: Vec<&str> = started.operands().map(|word| word.text.as_str()).collect();
                let values = line_values(started, input, names.len());
                for (index, name) in names.into_iter().enumerate() {
                    let value = match values.get(index) {
                        Some(text) => ResolvedWord {
                            text: text.clone(),
                            ..fed.clone()
                        },
                        None => fed.clone(),
                    };
                    Rc::make_mut(&mut scope.variables).insert(name.to_owned(), vec![value]);
                }
                true
            }
            "printf" if started.texts().next() == Some("-v") => {
                let mut printed = started.clone();
                let name = printed
                    .words
                    .drain(1..3.min(printed.words.len()))
                    .next_back();
                let value =
                    output::printed(&printed).map_or_else(ResolvedWord::unknown, ResolvedWord::new);
                if let Some(name) = name {
                    scope.set(&name.text, vec![value]);
                }
                true
            }
            "alias" => {
                self.spend(scope.aliases.len());
                for word in started.operands() {
                    if let Some((name, value)) = word.text.split_once('=') {
                        Rc::make_mut(&mut scope.aliases).insert(name.to_owned(), value.to_owned());
                    }
                }
                self.emit(started.clone());
                true
            }
            "set" => {
                let arguments = started.arguments();
                if let Some(at) = arguments.iter().position(|word| word.text == "--") {
                    let values: Vec<_> = arguments.iter().skip(at + 1).take(64).cloned().collect();
                    let variables = Rc::make_mut(&mut scope.variables);
                    for (index, value) in values.iter().enumerate().take(9) {
                        variables.insert((index + 1).to_string(), vec![value.clone()]);
                    }
                    variables.insert("@".to_owned(), values.clone());
                    variables.insert("*".to_owned(), values);
                }
                self.emit(started.clone());
                true
            }
            "eval" => {
                self.emit(started.clone());
                let texts: Vec<&str> = started.texts().skip_while(|text| *text == "--").collect();
                let text = texts.join(" ");
                if text
                    .chars()
                    .any(|character| character != UNKNOWN && character != ' ')
                {
                    self.run_text(&text, scope, input);
                }
                true
            }
            _ => false,
        }
    }

    /// A word of what a command reads: below a folder if a known program lists it.
    pub(super) fn fed_word(&self, input: &StageInput) -> ResolvedWord {
        if let Some(text) = &input.text
            && !text.trim().is_empty()
            && !text.trim().contains(['\n', ' '])
        {
            return ResolvedWord::new(text.trim());
        }
        match self.listed_folders(&input.from).into_iter().next() {
            Some(folder) => ResolvedWord::new(format!("{folder}/{UNKNOWN}")),
            None => ResolvedWord::unknown(),
        }
    }

    /// The folders below which the names lie that a pipeline's commands print.
    pub(super) fn listed_folders(&self, from: &Range<usize>) -> Vec<String> {
        let Some(first) = self.first_producer(from) else {
            return Vec::new();
        };
        let cwd = || first.cwd.clone().into_iter().collect();
        match first.name.as_str() {
            "find" | "fd" | "fdfind" => {
                let roots: Vec<&str> = if first.name == "find" {
                    first
                        .texts()
                        .skip_while(|text| matches!(*text, "-H" | "-L" | "-P"))
                        .take_while(|text| !text.starts_with(['-', '(', '!']))
                        .collect()
                } else {
                    first
                        .operands()
                        .skip(1)
                        .map(|word| word.text.as_str())
                        .collect()
                };
                if roots.is_empty() {
                    return cwd();
                }
                roots
                    .iter()
                    .filter_map(|root| normalize(first.cwd.as_deref(), root))
                    .collect()
            }
            "locate" | "plocate" | "mdfind" => vec!["/".to_owned()],
            "ls" | "dir" => {
                let roots: Vec<String> = first
                    .operands()
                    .filter_map(|word| normalize(first.cwd.as_deref(), &word.text))
                    .map(|path| path.trim_end_matches(['*', '/']).to_owned())
                    .collect();
                // Without a folder in its output, a name is relative to the reader.
                if roots.is_empty() { cwd() } else { roots }
            }
            "git"
                if first.has_word("ls-files")
                    || first.has_word("status")
                    || first.has_word("diff") =>
            {
                cwd()
            }
            "rg" | "grep" | "egrep" | "fgrep" | "ag" => {
                let roots: Vec<String> = first
                    .operands()
                    .skip(1)
                    .filter(|word| !word.is_pattern)
                    .filter_map(|word| normalize(first.cwd.as_deref(), &word.text))
                    .collect();
                if roots.is_empty() { cwd() } else { roots }
            }
            _ => Vec::new(),
        }
    }

    /// The command at the head of a pipeline, through filters.
    fn first_producer(&self, from: &Range<usize>) -> Option<&Invocation> {
        let mut from = from.clone();
        for _ in 0..16 {
            let invocation = self.invocations.get(from.clone())?.last()?;
            let is_filter = matches!(
                invocation.name.as_str(),
                "grep"
                    | "egrep"
                    | "fgrep"
                    | "head"
                    | "tail"
                    | "sort"
                    | "uniq"
                    | "sed"
                    | "awk"
                    | "cut"
                    | "tr"
                    | "xargs"
                    | "tee"
                    | "rg"
                    | "cat"
            );
            if is_filter && !invocation.input_from.is_empty() {
                from = invocation.input_from.clone();
                continue;
            }
            return Some(invocation);
        }
        None
    }

    pub(super) fn nesting_left(scope: &Scope) -> bool {
        scope.nesting < MAX_NESTING
    }
}

/// A name for what `mktemp` creates: the same for every use of its output.
fn temporary_name(started: &Invocation, index: usize) -> String {
    let template = started
        .arguments()
        .iter()
        .rfind(|word| word.text.contains('/'))
        .map(|word| word.text.trim_start_matches("--tmpdir="));
    match template {
        Some(template) if !template.contains("XX") => format!("{template}/tmp.{index}"),
        Some(template) => template.replace('X', "x"),
        None => format!("/tmp/tmp.{index}"),
    }
}

/// What `read` puts into its variables, if it reads one known line.
fn line_values(started: &Invocation, input: &StageInput, names: usize) -> Vec<String> {
    let line = input.text.as_deref().map(str::trim).unwrap_or_default();
    if line.is_empty() || line.contains('\n') || started.name != "read" {
        return Vec::new();
    }
    let separators = started
        .variables
        .iter()
        .find(|(name, _)| name == "IFS")
        .map_or(" \t", |(_, value)| value.text.as_str());
    if names < 2 || separators.is_empty() {
        return vec![line.to_owned()];
    }
    line.splitn(names, |letter: char| separators.contains(letter))
        .map(str::to_owned)
        .collect()
}

impl Invocation {
    /// One without words, in the place that a scope describes.
    pub(super) fn in_scope(scope: &Scope) -> Self {
        Self {
            cwd: scope.cwd.clone(),
            via: scope.via.clone(),
            place: scope.place,
            ..Self::default()
        }
    }
}
