//! Simple commands: their assignments, redirects and what they start.

use std::rc::Rc;

use super::{
    Evaluator, LIST_MARK, MAX_LOOP_VALUES, MAX_NESTED_LOOPS, MAX_SCRIPTS, MAX_WORK, MAX_WRAPPERS,
    Scope, StageInput,
};
use crate::paths::normalize;
use crate::shell::invocation::{Invocation, ResolvedRedirect, ResolvedWord, program_name};
use crate::shell::output;
use crate::shell::syntax::{
    Assignment, RedirectKind, Script, ScriptItem, ScriptWord, SimpleCommand, SyntaxRedirect,
};

/// Words and redirects of one program. The guards compare words with each other, so
/// that more would cost the square of their number.
const MAX_WORDS: usize = 2048;

/// Programs of one command; those of a longer list are not judged one by one.
const MAX_INVOCATIONS: usize = 1000;

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

/// Elements of a list that are followed.
const MAX_ELEMENTS: usize = 64;

/// Descriptors that are followed.
const MAX_DESCRIPTORS: usize = 16;

/// The first number that the shell gives to `{name}<`.
const FIRST_CHOSEN_DESCRIPTOR: usize = 10;

impl Evaluator<'_> {
    pub(in crate::shell) fn emit(&mut self, mut invocation: Invocation) {
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
    pub(in crate::shell) fn written_text(&self, scope: &Scope, path: &str) -> Option<String> {
        if self.written.is_empty() {
            return None;
        }
        let path = normalize(scope.cwd.as_deref(), path)?;
        self.written.get(&path).cloned()
    }

    /// The redirects to files, and the text of here-documents and here-strings.
    pub(super) fn expand_redirects(
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
            if assignment.is_array {
                values.extend(self.expand(word, scope));
            } else {
                values.push(self.expand_text(word, scope));
            }
        }
        values.truncate(MAX_ELEMENTS);
        if assignment.is_array {
            return self.assign_array(assignment, values, scope);
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

    /// The elements of a list; those with a name, as in `([name]=value)`, are set.
    fn assign_array(
        &mut self,
        assignment: &Assignment,
        mut values: Vec<ResolvedWord>,
        scope: &mut Scope,
    ) -> Vec<ResolvedWord> {
        for value in &mut values {
            let Some((key, text)) = value
                .text
                .strip_prefix('[')
                .and_then(|text| text.split_once("]="))
            else {
                continue;
            };
            let name = format!("{}[{key}]", assignment.name);
            value.text = text.to_owned();
            self.spend(1);
            scope.set(&name, vec![value.clone()]);
        }
        let mark = format!("{}{LIST_MARK}", assignment.name);
        Rc::make_mut(&mut scope.variables).insert(mark, Vec::new());
        if assignment.appends
            && let Some(known) = scope.variables.get(&assignment.name)
        {
            let room = MAX_ELEMENTS.saturating_sub(known.len());
            values.truncate(room);
            values.splice(0..0, known.iter().cloned());
        }
        values
    }

    /// `$x …` where `x` may be one of several programs: each of them.
    fn run_each_program(&mut self, command: &SimpleCommand, scope: &Scope, input: &StageInput) {
        let Some(name) = command.words.first().and_then(ScriptWord::lone_variable) else {
            return;
        };
        let Some(values) = scope.variables.get(name) else {
            return;
        };
        if values.len() < 2 || scope.loops >= MAX_NESTED_LOOPS || scope.is_list(name) {
            return;
        }
        for value in values.iter().take(MAX_LOOP_VALUES) {
            let mut child = scope.clone();
            child.loops += 1;
            Rc::make_mut(&mut child.variables).insert(name.to_owned(), vec![value.clone()]);
            self.run_simple(command, &mut child, input);
        }
    }

    pub(super) fn run_simple(
        &mut self,
        command: &SimpleCommand,
        scope: &mut Scope,
        input: &StageInput,
    ) {
        self.run_each_program(command, scope, input);
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
            .filter(|(name, _)| COMMAND_VARIABLES.contains(&name.as_str()))
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
        let readers = std::mem::take(&mut self.readers);
        let first = self.invocations.len();
        self.start(words, started, scope, &input);
        self.run_readers(&readers, first, scope);
    }

    /// What `>(…)` reads: the output of the command, wherever it goes.
    fn run_readers(&mut self, readers: &[Script], first: usize, scope: &Scope) {
        let Some(writer) = self.invocations.get(first).filter(|_| !readers.is_empty()) else {
            return;
        };
        let Some(text) = output::printed(writer) else {
            return;
        };
        let input = StageInput {
            text: Some(text.into()),
            from: first..first + 1,
        };
        for reader in readers {
            self.run_steps(reader, &mut scope.clone(), &input);
        }
    }

    /// Leaves out what no guard will look at.
    fn limit<T>(&mut self, items: &mut Vec<T>) {
        if items.len() > MAX_WORDS {
            self.is_incomplete = true;
            items.truncate(MAX_WORDS);
        }
    }

    /// Runs a builtin or function, opens a wrapper, or notes the program.
    pub(in crate::shell) fn start(
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
}
