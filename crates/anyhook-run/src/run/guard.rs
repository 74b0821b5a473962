//! Built-in guards: `command: anyhook guard NAME [options]` runs inside this
//! process, and `if:` of any hook uses the same conditions.
//!
//! Another tool that reads the manifest starts the program, which reads the event on
//! stdin and answers the same; here only the process is saved. The guards themselves
//! are in `anyhook-guard`; this module reads their files and gives them their context.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhook_guard::{
    CheckedRules, CommandReadings, Guard, GuardContext, GuardError, GuardFinding, GuardInput,
    Predicate, Truth, check_rules, definition, parse_guard_with,
};
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{Handler, Hook, HookEvent, Scope};
use anyhook_util::fs::read_text;
use anyhook_util::paths::canonicalize;
use anyhook_util::shell::{self, Syntax, Word};
use serde::Serialize;

use crate::config::discover::Dirs;
use crate::config::manifest::{self, HandlerCommand, SelectedHook};
use crate::config::rules_cache::RulesCache;
use crate::config::trust::CheckedFiles;
use crate::run::exec::command::{CommandContext, normalize_path};
use crate::run::spend::read_spend;

/// A larger rules file is an error.
pub(crate) const MAX_RULES_BYTES: u64 = 1024 * 1024;

/// Whether the guard that is judging belongs to a hook whose failure blocks. For a
/// panic, which ends the whole process.
static BLOCKS_IF_IT_PANICS: AtomicBool = AtomicBool::new(false);

pub(crate) fn blocks_if_it_panics() -> bool {
    BLOCKS_IF_IT_PANICS.load(Ordering::Relaxed)
}

/// Says whether a failure of the guard that judges next blocks.
#[doc(hidden)]
pub fn set_blocks_if_it_panics(blocks: bool) {
    BLOCKS_IF_IT_PANICS.store(blocks, Ordering::Relaxed);
}

/// The value of an option that names a file.
const FILE_VALUE: &str = "FILE";

/// The guard that must know the agents' own files.
const GUARD_OF_HOOK_FILES: &str = "self";

/// A command that is a call of a built-in guard and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// What follows `anyhook guard`.
    pub words: Vec<String>,
}

impl GuardCommand {
    /// The guard that a handler runs on this system.
    pub fn from_handler(handler: &Handler) -> Option<Self> {
        Self::from_command(manifest::command(handler)?)
    }

    /// Whether a handler runs one. Asked several times for every hook of a call.
    pub(crate) fn is_run_by(handler: &Handler) -> bool {
        manifest::command(handler).is_some_and(Self::is_one)
    }

    fn is_one(command: HandlerCommand<'_>) -> bool {
        match command {
            HandlerCommand::Line(line) if is_simple(line) => {
                guard_words(line.split_ascii_whitespace()).is_some()
            }
            _ => Self::from_command(command).is_some(),
        }
    }

    pub fn from_command(command: HandlerCommand<'_>) -> Option<Self> {
        match command {
            HandlerCommand::Line(line) => Self::from_line(line),
            HandlerCommand::Program(program, args) => {
                let words = std::iter::once(program).chain(args.iter().map(String::as_str));
                let words: Vec<&str> = words.collect();
                // A variable is expanded for a program that is started.
                let is_literal = !words.iter().any(|word| word.contains("${"));
                is_literal.then(|| Self::from_words(words.into_iter()))?
            }
        }
    }

    /// Whether a command is a guard of whichever program `anyhook` runs. One that names
    /// the program's file depends on that file.
    pub(crate) fn is_by_name(command: HandlerCommand<'_>) -> bool {
        let (HandlerCommand::Line(text) | HandlerCommand::Program(text, _)) = command;
        let program = text.split_whitespace().next().unwrap_or_default();
        !program.contains(['/', '\\']) && Self::is_one(command)
    }

    /// Only words that mean the same with and without a shell: for any other line
    /// a shell starts the program.
    pub fn from_line(command: &str) -> Option<Self> {
        if is_simple(command) {
            return Self::from_words(command.split_ascii_whitespace());
        }
        Self::from_shell_line(command)
    }

    fn from_shell_line(command: &str) -> Option<Self> {
        let command = &*with_slashes_in_program(command);
        let line = shell::split(command, Syntax::SCRIPT);
        let is_literal = |word: &Word| command.get(word.start..word.end).is_some_and(is_literal);
        if line.has_operators || line.is_cut || command.contains('\n') {
            return None;
        }
        if !line.words.iter().all(is_literal) {
            return None;
        }
        Self::from_words(line.words.iter().map(|word| word.text.as_str()))
    }

    fn from_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let words = guard_words(words)?.map(str::to_owned).collect();
        Some(Self { words })
    }

    /// Reads the options and the rules files.
    pub fn parse(&self, context: CommandContext<'_>) -> Result<Guard, GuardError> {
        self.parse_with(context, &CheckedFiles::default(), &check_rules)
    }

    /// Of a file that was compared with its approval, only that content is used.
    fn parse_with(
        &self,
        context: CommandContext<'_>,
        files: &CheckedFiles,
        check: &dyn Fn(&str) -> CheckedRules,
    ) -> Result<Guard, GuardError> {
        let load = |name: &str| {
            let path = rules_path(name, context);
            if let Some(content) = files.content(&path) {
                let text = str::from_utf8(content);
                return text
                    .map(str::to_owned)
                    .map_err(|_| format!("`{}` is not UTF-8 text", path.display()));
            }
            let text = read_text(&path, MAX_RULES_BYTES)
                .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
            if files.has_content(&path, &text) {
                Ok(text)
            } else {
                let path = path.display();
                Err(format!("`{path}` was changed while it was read"))
            }
        };
        parse_guard_with(&self.words, &load, check)
    }

    /// The rules files that it names, whether or not they exist.
    pub(crate) fn files(&self, context: CommandContext<'_>) -> Vec<PathBuf> {
        let options = self.words.first().and_then(|name| definition(name));
        let options = options.map(|guard| guard.options).unwrap_or_default();
        let is_file = |name: &str| {
            let option = options.iter().find(|option| option.name == name);
            option.is_some_and(|option| option.value == Some(FILE_VALUE))
        };
        let mut files = Vec::new();
        let mut words = self.words.iter().skip(1);
        while let Some(word) = words.next() {
            let named = match word.split_once('=') {
                Some((option, value)) if is_file(option) => Some(value),
                None if is_file(word) => words.next().map(String::as_str),
                _ => None,
            };
            files.extend(named.map(|name| rules_path(name, context)));
        }
        files
    }
}

/// What follows `anyhook guard`.
fn guard_words<'a, I: Iterator<Item = &'a str>>(mut words: I) -> Option<I> {
    let is_guard = is_this_program(words.next()?) && words.next()? == "guard";
    is_guard.then_some(words)
}

/// Whether a line is only of plain words, as nearly all are.
fn is_simple(line: &str) -> bool {
    line.bytes().all(|byte| byte == b' ' || is_plain(byte))
}

/// Whether a character means itself in every place of every shell's word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte)
}

/// Whether a word has no part that a shell would change but its quotes.
fn is_literal(raw: &str) -> bool {
    let rest = raw.trim_start_matches(|c: char| c.is_ascii() && is_plain(c as u8));
    let quoted = |quote: char| {
        let inner = rest.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner).filter(|inner| !inner.contains(quote))
    };
    rest.is_empty()
        || quoted('\'').is_some()
        || quoted('"').is_some_and(|inner| !inner.contains(['$', '`', '\\', '!']))
}

/// On Windows a backslash in the path of the program divides folders.
fn with_slashes_in_program(command: &str) -> Cow<'_, str> {
    match command.split_once(' ') {
        Some((program, rest)) if cfg!(windows) && program.contains('\\') => {
            Cow::Owned(format!("{} {rest}", program.replace('\\', "/")))
        }
        _ => Cow::Borrowed(command),
    }
}

/// Whether a program's name is `anyhook`, or the path of the program that runs.
fn is_this_program(word: &str) -> bool {
    if word == "anyhook" {
        return true;
    }
    let path = Path::new(word);
    let named = path.file_stem().is_some_and(|name| name == "anyhook");
    let has_folder = path.parent() != Some(Path::new(""));
    let is_same_file = || {
        let own = std::env::current_exe().and_then(|own| canonicalize(&own));
        own.is_ok_and(|own| canonicalize(path).is_ok_and(|path| path == own))
    };
    match (named, has_folder) {
        (true, false) => true,
        (_, true) if path.is_absolute() => is_same_file(),
        _ => false,
    }
}

/// Where a rules file is, as for every other file that a command names.
fn rules_path(name: &str, context: CommandContext<'_>) -> PathBuf {
    let path = Path::new(name);
    if path.is_absolute() {
        return path.to_owned();
    }
    let found = context.script(name);
    found.unwrap_or_else(|| match context.scope {
        Scope::Project => normalize_path(&context.cwd.join(path)),
        Scope::Managed | Scope::User => normalize_path(&context.folder.join(path)),
    })
}

/// What a guard of this hook objects to. An error is a failure of the hook.
pub(crate) fn judge(
    command: &GuardCommand,
    selected: &SelectedHook<'_>,
    event: &HookEvent,
    dirs: &Dirs,
    readings: &CommandReadings,
    files: &CheckedFiles,
) -> Result<Option<GuardFinding>, String> {
    let dialect = selected.hook.handler.dialect.as_deref();
    if let Some(other) = dialect.filter(|name| *name != NeutralDialect::Canonical.as_str()) {
        return Err(format!(
            "a built-in guard reads canonical events; remove `dialect: {other}`"
        ));
    }
    let cwd = manifest::working_dir(&selected.hook.handler, &selected.root);
    let place = CommandContext {
        scope: selected.scope,
        root: &selected.root,
        folder: selected.folder(),
        cwd: &cwd,
    };
    // What the user can write does not count for the administrator's guards.
    let has_cache = selected.scope != Scope::Managed && dirs.is_state_trusted();
    let state = has_cache.then_some(dirs.state.as_path());
    let guard = command.parse_with(place, files, &|text| known_rules(state, text));
    let guard = guard.map_err(|error| error_text(&error))?;
    let mut context = guard_context(dirs, &selected.root);
    if guard.name() == GUARD_OF_HOOK_FILES {
        context.agent_files = agent_files();
    }
    judge_knowing_spend(&guard, event, context, dirs, readings)
}

/// What a guard objects to. A budget that cannot be checked is an error: it may be spent.
pub fn judge_knowing_spend(
    guard: &Guard,
    event: &HookEvent,
    mut context: GuardContext,
    dirs: &Dirs,
    readings: &CommandReadings,
) -> Result<Option<GuardFinding>, String> {
    let reading = guard.budget().map(|limits| read_spend(limits, event, dirs));
    let (known, doubt) = reading.map_or((None, None), |reading| (reading.known, reading.doubt));
    context.spend = known;
    let finding = guard.judge_input(&GuardInput::with_readings(event, &context, readings));
    match doubt {
        Some(why) if finding.is_none() => Err(format!("the budget cannot be checked: {why}")),
        _ => Ok(finding),
    }
}

/// Checks rules, unless the result is in the cache of this state folder.
fn known_rules(state: Option<&Path>, text: &str) -> CheckedRules {
    let cache = state.map(|state| RulesCache::new(state, text));
    if let Some(rules) = cache.as_ref().and_then(RulesCache::load) {
        return (Some(rules), Vec::new());
    }
    let checked = check_rules(text);
    if let (Some(cache), Some(rules)) = (cache, &checked.0) {
        cache.save(rules);
    }
    checked
}

/// What is wrong with a guard, and how to put it right.
pub fn error_text(error: &GuardError) -> String {
    match error {
        GuardError::Usage {
            message,
            help: Some(help),
        } => format!("{message}; {help}"),
        _ => error.to_string(),
    }
}

/// What one guard of a manifest says about a call.
#[derive(Debug, Clone, Serialize)]
pub struct GuardReport {
    /// The name of the hook, or `#3` by position.
    pub hook: String,
    pub manifest: String,
    /// The guard with its options.
    pub guard: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<GuardFinding>,
    /// The hook has `mode: observe`: the finding has no effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_observed: bool,
    /// Why the guard does not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What the guard of a hook says about a call; `None` if the hook runs none, or is
/// not for the call.
pub fn report(
    selected: &SelectedHook<'_>,
    event: &HookEvent,
    dirs: &Dirs,
    readings: &CommandReadings,
) -> Option<GuardReport> {
    let hook = &selected.hook;
    let command = GuardCommand::from_handler(&hook.handler)?;
    let condition = condition_holds(hook, &selected.root, event, dirs, readings);
    if condition == Ok(false) {
        return None;
    }
    let files = CheckedFiles::default();
    let judged = condition.and_then(|_| judge(&command, selected, event, dirs, readings, &files));
    let (finding, problem) = match judged {
        Ok(finding) => (finding, None),
        Err(why) => (None, Some(why)),
    };
    Some(GuardReport {
        hook: selected.label.clone(),
        manifest: selected.manifest.to_string_lossy().into_owned(),
        guard: command.words.join(" "),
        finding,
        only_observed: hook.only_observes(),
        problem,
    })
}

/// Whether the `if` of a hook holds, or may hold: a command that cannot be read must not
/// keep a guard from running. An error is a failure of the hook.
pub(crate) fn condition_holds(
    hook: &Hook,
    root: &Path,
    event: &HookEvent,
    dirs: &Dirs,
    readings: &CommandReadings,
) -> Result<bool, String> {
    let Some(condition) = &hook.condition else {
        return Ok(true);
    };
    let predicate =
        Predicate::parse(condition).map_err(|error| format!("its `if` cannot be used: {error}"))?;
    let context = guard_context(dirs, root);
    let input = GuardInput::with_readings(event, &context, readings);
    Ok(predicate.evaluate(&input) != Truth::No)
}

/// What guards know about this machine and the project at `root`. Nothing of it
/// comes from variables that a project could set.
pub fn guard_context(dirs: &Dirs, root: &Path) -> GuardContext {
    GuardContext {
        project: Some(root.to_owned()),
        home: dirs.home.clone(),
        own_folders: [&dirs.config, &dirs.state, &dirs.managed]
            .map(Clone::clone)
            .to_vec(),
        is_windows: cfg!(windows),
        ..GuardContext::default()
    }
}

/// The files in which agents keep their hooks, in a project, in the home folder
/// and for the whole machine.
pub fn agent_files() -> Vec<String> {
    // A plugin's file has a common name and counts only inside the plugin.
    let has_place = |path: &&str| path.starts_with(['.', '~', '/']);
    anyhook_agents::config_paths()
        .filter(has_place)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_calls_of_a_guard_are_recognised() {
        let words = |line: &str| GuardCommand::from_line(line).map(|guard| guard.words.join("|"));
        for (line, expected) in [
            ("anyhook guard git", "git"),
            (
                "  anyhook   guard git --decision ask ",
                "git|--decision|ask",
            ),
            ("anyhook.exe guard git", "git"),
            (
                "anyhook guard network --allow '*.example.org'",
                "network|--allow|*.example.org",
            ),
            ("anyhook guard paths --forbid=\"a b\"", "paths|--forbid=a b"),
            ("anyhook guard", ""),
        ] {
            assert_eq!(words(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "anyhook",
            "anyhook run",
            "anyhook guard git; true",
            "anyhook guard git || true",
            "anyhook guard git | cat",
            "anyhook guard git > x",
            "anyhook guard git\ntrue",
            "anyhook guard $NAME",
            "anyhook guard \"$NAME\"",
            "anyhook guard `x`",
            "anyhook guard network --allow *.example.org",
            "anyhook guard paths --forbid ~/x",
            "anyhook guard paths --forbid {a,b}",
            "anyhook guard paths --forbid 'a'b",
            "anyhook guard paths --forbid 'a",
            "anyhook guard git # no",
            "A=1 anyhook guard git",
            "sudo anyhook guard git",
            "./anyhook guard git",
            "bin/anyhook guard git",
            "/nowhere/anyhook guard git",
            "anyhook-dev guard git",
        ] {
            assert_eq!(words(line), None, "{line}");
        }
        let args = ["guard", "network", "--allow-host", "*.x"].map(str::to_owned);
        let program = |args| GuardCommand::from_command(HandlerCommand::Program("anyhook", args));
        assert_eq!(program(&args).unwrap().words.len(), 3);
        let args = ["guard", "rules", "--file", "${HOME}/x"].map(str::to_owned);
        assert_eq!(program(&args), None);
        let own = std::env::current_exe().unwrap();
        let line = format!("{} guard git", own.display());
        assert_eq!(words(&line).as_deref(), Some("git"), "{line}");
    }

    #[test]
    fn a_simple_line_means_the_same_without_a_shell() {
        let words = [
            "anyhook",
            "guard",
            "git",
            "--path=a/b",
            "x:y@z,1%+",
            "-",
            "A=1",
        ];
        for count in 0..=words.len() {
            for separator in [" ", "   "] {
                let line = words.get(..count).unwrap().join(separator);
                for line in [line.clone(), format!(" {line}  ")] {
                    let simple = GuardCommand::from_line(&line);
                    assert_eq!(simple, GuardCommand::from_shell_line(&line), "`{line}`");
                    assert_eq!(simple.is_some(), count >= 2, "`{line}`");
                }
            }
        }
    }

    #[test]
    fn only_the_name_alone_depends_on_no_file() {
        let is_by_name = |line| GuardCommand::is_by_name(HandlerCommand::Line(line));
        assert!(is_by_name("anyhook guard git"));
        assert!(is_by_name(" anyhook guard paths --forbid 'a b'"));
        let own = std::env::current_exe().unwrap();
        for line in [
            "anyhook guard git; ./more.sh",
            "./anyhook guard git",
            "anyhook run",
            &format!("{} guard git", own.display()),
            &format!("'{}' guard git", own.display()),
        ] {
            assert!(!is_by_name(line), "{line}");
        }
        let args = ["guard".to_owned(), "git".to_owned()];
        assert!(GuardCommand::is_by_name(HandlerCommand::Program(
            "anyhook", &args
        )));
        let own = own.to_string_lossy();
        assert!(!GuardCommand::is_by_name(HandlerCommand::Program(
            &own, &args
        )));
    }
}
