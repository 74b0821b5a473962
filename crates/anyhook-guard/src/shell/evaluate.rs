//! Walks a script as a shell would, as far as that is possible without running
//! anything, and collects what it starts.

mod builtins;
mod commands;
mod folders;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::invocation::{Invocation, InvocationPlace, ResolvedRedirect, ResolvedWord};
use super::mounts::Mount;
use super::parser::MAX_NESTING;
use super::syntax::{BlockKind, RedirectKind, Script, ScriptItem, SyntaxRedirect};
use super::{output, parser};

/// Work after which a script is given up: the guards ask. A command of 64 KiB with
/// plain words costs about a quarter of it.
const MAX_WORK: usize = 60_000;

/// Loops in loops whose body is read for one value as well.
const MAX_NESTED_LOOPS: usize = 3;

/// Values of a loop for which its body is read alone.
const MAX_LOOP_VALUES: usize = 6;

/// Marks the name of a variable that is a list.
const LIST_MARK: &str = "[]";

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
    /// Process substitutions that read what the command being read writes.
    pub(super) readers: Vec<Script>,
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
    pub(super) descriptors: Vec<(String, ResolvedRedirect)>,
    /// Variables of the functions that are being run.
    locals: Vec<String>,
    /// Names that stand for other variables: `declare -n`.
    references: Vec<(String, String)>,
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
            references: Vec::new(),
            loops: 0,
        }
    }

    /// The variable that a name stands for.
    pub(super) fn referenced<'n>(&'n self, name: &'n str) -> &'n str {
        let mut references = self.references.iter().rev();
        references
            .find(|(reference, _)| reference == name)
            .map_or(name, |(_, variable)| variable)
    }

    /// Whether a name is that of the parameters, which are no alternatives.
    fn is_list(&self, name: &str) -> bool {
        matches!(name, "@" | "*") || self.variables.contains_key(&format!("{name}{LIST_MARK}"))
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
                    // All values at once, and the first ones alone: several words in the
                    // place of one would hide what follows them, as in `git -C "$r" reset`.
                    if values.len() > 1 && scope.loops < MAX_NESTED_LOOPS {
                        let most = if scope.loops == 0 { MAX_LOOP_VALUES } else { 2 };
                        for value in values.iter().take(most) {
                            let mut child = scope.clone();
                            let variables = Rc::make_mut(&mut child.variables);
                            variables.insert(variable.clone(), vec![value.clone()]);
                            child.loops += 1;
                            self.run_steps(steps, &mut child, &input);
                        }
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

    pub(super) fn nesting_left(scope: &Scope) -> bool {
        scope.nesting < MAX_NESTING
    }
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
