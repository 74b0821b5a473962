//! Builtins that change what follows them: `cd`, `export`, `read` and others.

use std::rc::Rc;

use super::{Evaluator, Scope, StageInput};
use crate::paths::normalize;
use crate::shell::invocation::{Invocation, ResolvedWord, UNKNOWN};
use crate::shell::output;

/// Local variables of functions that are remembered.
const MAX_LOCALS: usize = 64;

impl Evaluator<'_> {
    /// Builtins that change the shell's own state. True: nothing else is to be done.
    pub(in crate::shell) fn run_builtin(
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
                let is_reference = started.name != "export" && started.has_option("n", &[]);
                for word in started.operands() {
                    if let Some((name, value)) = word.text.split_once('=') {
                        if is_reference && scope.references.len() < MAX_LOCALS {
                            scope.references.push((name.to_owned(), value.to_owned()));
                            continue;
                        }
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
                let is_list = started.name != "read" || started.has_option("a", &[]);
                if is_list && let Some(elements) = elements(started, input, &fed) {
                    let name = names.last().copied().unwrap_or("MAPFILE");
                    Rc::make_mut(&mut scope.variables).insert(name.to_owned(), elements);
                    return true;
                }
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
            "shift" => {
                let count = started.texts().next().map_or(Ok(1), str::parse);
                shift(scope, count.unwrap_or(1));
                true
            }
            // `hash -p path name` gives a program another name.
            "hash" if started.has_option("p", &[]) => {
                let mut operands = started.operands();
                if let (Some(path), Some(name)) = (operands.next(), operands.next()) {
                    let aliases = Rc::make_mut(&mut scope.aliases);
                    aliases.insert(name.text.clone(), path.text.clone());
                }
                self.emit(started.clone());
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
    pub(in crate::shell) fn fed_word(&self, input: &StageInput) -> ResolvedWord {
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
}

/// A name for what `mktemp` creates: the same for every use of its output.
pub(super) fn temporary_name(started: &Invocation, index: usize) -> String {
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

/// What `read -a` and `mapfile` put into a list, if they read a known text.
fn elements(
    started: &Invocation,
    input: &StageInput,
    fed: &ResolvedWord,
) -> Option<Vec<ResolvedWord>> {
    let text = input.text.as_deref()?;
    let set = started.variables.iter().find(|(name, _)| name == "IFS");
    let separators = set.map_or(" \t", |(_, value)| value.text.as_str());
    let pieces: Vec<&str> = if started.name == "read" {
        let line = text.lines().next().unwrap_or_default();
        line.split(|letter: char| separators.contains(letter))
            .filter(|piece| !piece.is_empty())
            .collect()
    } else {
        text.lines().collect()
    };
    let word = |piece: &&str| ResolvedWord {
        text: (*piece).to_owned(),
        ..fed.clone()
    };
    Some(pieces.iter().take(MAX_LOCALS).map(word).collect())
}

/// Moves the positional parameters to the left.
fn shift(scope: &mut Scope, count: usize) {
    let variables = Rc::make_mut(&mut scope.variables);
    let Some(all) = variables.get("@") else {
        return;
    };
    let rest: Vec<_> = all.iter().skip(count).cloned().collect();
    for index in 1..=9 {
        match rest.get(index - 1) {
            Some(value) => variables.insert(index.to_string(), vec![value.clone()]),
            None => variables.remove(&index.to_string()),
        };
    }
    variables.insert("@".to_owned(), rest.clone());
    variables.insert("*".to_owned(), rest);
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
