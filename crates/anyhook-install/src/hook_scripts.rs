//! Checks the files that a manifest's hooks start: missing, not executable, with
//! Windows line endings, without their interpreter, and exit codes that cannot do
//! what their author expects.
//!
//! A script is read only for words that say how it answers; nothing is run.

use std::path::{Path, PathBuf};

use anyhook_model::registry::{self, Semantic};
use anyhook_model::{Hook, HookMode, Scope, Severity, suggest};
use anyhook_run::config::discover::PROJECT_FOLDER;
use anyhook_run::config::started_programs::{StartedProgram, started_programs};
use anyhook_run::run::guard::GuardCommand;
use anyhook_util::fs::read_bytes;
use serde::Serialize;

use crate::machine::{Machine, is_executable_file};

/// A larger script is not read.
const MAX_SCRIPT_BYTES: u64 = 1024 * 1024;

/// What the shell runs itself.
pub(crate) const SHELL_BUILTINS: [&str; 24] = [
    ".", ":", "[", "case", "cd", "command", "echo", "eval", "exec", "exit", "export", "false",
    "for", "if", "printf", "read", "set", "source", "test", "time", "trap", "true", "until",
    "while",
];

/// Interpreters that take a carriage return for a part of a command.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ksh", "zsh", "fish"];

/// Programs that hooks in shell script use and that a system may lack.
const SCRIPT_TOOLS: [&str; 10] = [
    "curl", "git", "jq", "node", "npx", "perl", "python3", "rg", "ruby", "yq",
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScriptProblem {
    /// Stable, for scripts and documentation.
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    pub help: String,
    /// The file to make executable.
    #[serde(skip)]
    pub not_executable: Option<PathBuf>,
}

impl ScriptProblem {
    /// Whether another machine may not have it.
    pub fn is_about_machine(&self) -> bool {
        matches!(self.code, "program-missing" | "interpreter-missing")
    }

    fn new(code: &'static str, severity: Severity, message: String, help: String) -> Self {
        Self {
            code,
            severity,
            message,
            help,
            not_executable: None,
        }
    }

    fn error(code: &'static str, message: String, help: String) -> Self {
        Self::new(code, Severity::Error, message, help)
    }

    fn warning(code: &'static str, message: String, help: String) -> Self {
        Self::new(code, Severity::Warning, message, help)
    }
}

/// Where a manifest is, and so where its commands look for files.
#[derive(Debug, Clone, Copy)]
pub struct ManifestPlace<'a> {
    pub scope: Scope,
    /// The project's root.
    pub root: &'a Path,
    /// The manifest's own folder.
    pub folder: &'a Path,
}

/// The root of the project that a manifest in this folder belongs to.
pub fn project_root(folder: &Path) -> &Path {
    match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent().unwrap_or(folder),
        _ => folder,
    }
}

/// Everything that is wrong with the files of one hook.
pub fn check_hook_scripts(
    machine: &Machine,
    hook: &Hook,
    place: ManifestPlace<'_>,
) -> Vec<ScriptProblem> {
    if GuardCommand::from_handler(&hook.handler).is_some() {
        return Vec::new();
    }
    let check = ScriptCheck { machine, place };
    let programs = started_programs(hook, place.scope, place.root, place.folder);
    let mut problems: Vec<ScriptProblem> = Vec::new();
    let mut scripts = Vec::new();
    for program in &programs {
        problems.extend(check.program_problem(program));
        let script = program.file().and_then(read_script);
        if let Some(text) = &script {
            problems.extend(check.tool_problems(program, text));
        }
        scripts.extend(script);
    }
    problems.extend(exit_code_problem(hook, &scripts));
    problems
}

struct ScriptCheck<'a> {
    machine: &'a Machine,
    place: ManifestPlace<'a>,
}

impl ScriptCheck<'_> {
    fn program_problem(&self, program: &StartedProgram) -> Option<ScriptProblem> {
        if program.candidates.is_empty() {
            return self.unknown_program(program);
        }
        let Some(file) = program.file() else {
            let looks_like_file = program.name.contains(['/', '.']);
            let is_certain = program.interpreter.is_none() || !program.follows_option;
            return (looks_like_file && is_certain).then(|| self.missing(program));
        };
        let shown = self.shown(file);
        let script = read_script(file);
        let interpreter = script.as_deref().and_then(shebang);
        let carriage_returns_matter = match &program.interpreter {
            Some(interpreter) => SHELLS.contains(&interpreter.as_str()),
            None => interpreter.is_some(),
        };
        if let Some(text) = script.as_deref().filter(|_| carriage_returns_matter)
            && text.contains("\r\n")
        {
            let message = format!(
                "`{shown}` has Windows line endings (CRLF), so it cannot run: the carriage return becomes a part of every line"
            );
            let help = format!(
                "convert it with `sed -i 's/\\r$//' {shown}`, and keep git from changing it: `{} text eol=lf` in .gitattributes",
                file_name(file)
            );
            return Some(ScriptProblem::error("script-crlf", message, help));
        }
        if program.interpreter.is_some() {
            return None;
        }
        if !is_executable_file(file) {
            let message = format!("`{shown}` is not executable, so the hook cannot start");
            let help = format!("run `chmod +x {shown}`");
            return Some(ScriptProblem {
                not_executable: Some(file.to_owned()),
                ..ScriptProblem::error("script-not-executable", message, help)
            });
        }
        let interpreter = interpreter.filter(|_| cfg!(unix))?;
        let exists = if interpreter.contains('/') {
            Path::new(interpreter).exists()
        } else {
            !self.machine.programs_on_path(interpreter).is_empty()
        };
        let message = format!("`{shown}` runs with `{interpreter}`, which is not on this machine");
        let help = format!("install `{interpreter}`, or correct the first line of the script");
        (!exists).then(|| ScriptProblem::warning("interpreter-missing", message, help))
    }

    /// A program without a path that is nowhere on PATH.
    fn unknown_program(&self, program: &StartedProgram) -> Option<ScriptProblem> {
        let name = &program.name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
        let is_known = !program.is_first
            || !name.chars().all(is_plain)
            || SHELL_BUILTINS.contains(&name.as_str())
            || !self.machine.programs_on_path(name).is_empty();
        if is_known {
            return None;
        }
        let folders = [self.place.root, self.place.folder];
        let sibling = folders.iter().find(|folder| folder.join(name).is_file());
        if sibling.is_some() {
            let message = format!(
                "`{name}` is not on PATH, so the hook cannot start; a name without a slash is looked for on PATH only"
            );
            let help = format!("write `./{name}` for the file in the project");
            return Some(ScriptProblem::error("script-missing", message, help));
        }
        let message = format!("`{name}` is not on PATH, so the hook cannot start on this machine");
        let help = format!("install `{name}`, or write its full path");
        Some(ScriptProblem::warning("program-missing", message, help))
    }

    /// Well-known programs that a shell script uses and that are not installed: such a
    /// script goes on without them, and usually allows.
    fn tool_problems(&self, program: &StartedProgram, text: &str) -> Vec<ScriptProblem> {
        let interpreter = program.interpreter.as_deref().or_else(|| shebang(text));
        let shell = interpreter.and_then(|name| name.rsplit('/').next());
        if !shell.is_some_and(|shell| SHELLS.contains(&shell)) {
            return Vec::new();
        }
        let code: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .collect();
        let is_used = |tool: &str| {
            let mut lines = code.iter();
            lines.any(|line| has_command(line, tool))
        };
        let is_missing = |tool: &str| self.machine.programs_on_path(tool).is_empty();
        let missing = SCRIPT_TOOLS
            .iter()
            .filter(|tool| is_used(tool) && is_missing(tool));
        let shown = program
            .file()
            .map(|file| self.shown(file))
            .unwrap_or_default();
        missing
            .map(|tool| {
                let message = format!("`{shown}` uses `{tool}`, which is not on this machine");
                let help = format!("install `{tool}`; without it the script may allow everything");
                ScriptProblem::warning("program-missing", message, help)
            })
            .collect()
    }

    fn missing(&self, program: &StartedProgram) -> ScriptProblem {
        let name = &program.name;
        let looked: Vec<String> = program
            .candidates
            .iter()
            .map(|path| self.quoted(path))
            .collect();
        let help = match self.similar_file(program) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "create the script or correct its path".to_owned(),
        };
        let looked = looked.join(" and ");
        let message =
            format!("`{name}` does not exist, so the hook cannot start; looked for {looked}");
        ScriptProblem::error("script-missing", message, help)
    }

    /// A file with nearly the same name, where the missing one is looked for, or the
    /// same name where it is not.
    fn similar_file(&self, program: &StartedProgram) -> Option<String> {
        let wanted = file_name(program.candidates.first()?);
        let shown_folder = program
            .name
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        let with_folder = |name: &str| match shown_folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        for candidate in &program.candidates {
            let names = file_names(candidate.parent()?);
            if let Some(near) = suggest::nearest(&wanted, names.iter().map(String::as_str)) {
                return Some(with_folder(near));
            }
        }
        let folders = [self.place.root, self.place.folder];
        let here = folders.iter().find(|folder| folder.join(&wanted).is_file());
        here.map(|_| format!("./{wanted}"))
    }

    fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(self.place.root).unwrap_or(path);
        path.display().to_string()
    }

    fn quoted(&self, path: &Path) -> String {
        format!("`{}`", self.shown(path))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = files
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The text of a script; `None` for a program in machine code.
fn read_script(path: &Path) -> Option<String> {
    let bytes = read_bytes(path, MAX_SCRIPT_BYTES).ok()?;
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// The interpreter that a script's first line names.
fn shebang(script: &str) -> Option<&str> {
    let line = script.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace();
    let name = words.next()?;
    if name.ends_with("/env") {
        return words.find(|word| !word.starts_with('-') && !word.contains('='));
    }
    Some(name)
}

/// Whether a line of a shell script seems to run a program: its name where a command
/// begins.
fn has_command(line: &str, program: &str) -> bool {
    line.match_indices(program).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default().trim_end();
        let after = line.get(at + program.len()..).unwrap_or_default();
        let is_after_keyword = || {
            let word = before
                .rsplit(char::is_whitespace)
                .next()
                .unwrap_or_default();
            ["if", "then", "do", "else", "elif", "while", "until", "exec"].contains(&word)
        };
        let begins = before.is_empty()
            || before.ends_with(['|', ';', '&', '(', '`', '!'])
            || is_after_keyword();
        begins && after.starts_with([' ', '\t', ')', ';', '|'])
    })
}

/// A script that answers in a way that does not count for its hook.
fn exit_code_problem(hook: &Hook, scripts: &[String]) -> Option<ScriptProblem> {
    let event = registry::event(&hook.event)?;
    if event.blocking == Semantic::Observe || hook.mode == Some(HookMode::Observe) {
        return None;
    }
    let exits = |code: char| scripts.iter().any(|script| exits_with(script, code));
    if !hook.blocking && exits('2') {
        let message = "the script has `exit 2`, which denies nothing: the hook is not blocking";
        let help = "add `blocking: true` to the hook".to_owned();
        return Some(ScriptProblem::warning(
            "exit-2-ignored",
            message.to_owned(),
            help,
        ));
    }
    let answers = |script: &String| {
        let words = ["deny", "block", "decision", "continue"];
        words.iter().any(|word| script.contains(word))
    };
    let never_denies = hook.blocking && exits('1') && !exits('2') && !scripts.iter().any(answers);
    never_denies.then(|| {
        let message = "the script has `exit 1` and no `exit 2`: only exit code 2 denies, 1 is a failure and the call is allowed";
        let help = "write `exit 2` to deny; `on_failure: block` denies on failures as well";
        ScriptProblem::warning("exit-1-allows", message.to_owned(), help.to_owned())
    })
}

/// Whether a script has `exit 2`, `sys.exit(2)`, `process.exit(2)` or the like outside
/// a comment.
fn exits_with(script: &str, code: char) -> bool {
    let is_comment = |line: &&str| !line.trim_start().starts_with(['#', '/']);
    script.lines().filter(is_comment).any(|line| {
        let lower = line.to_ascii_lowercase();
        lower.match_indices("exit").any(|(at, word)| {
            let after = lower.get(at + word.len()..).unwrap_or_default();
            let mut rest = after.trim_start_matches([' ', '(', ':']).chars();
            let is_call = after.starts_with([' ', '(', ':']);
            is_call
                && rest.next() == Some(code)
                && rest.next().is_none_or(|c| !c.is_ascii_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_found_in_every_language() {
        for script in [
            "exit 2",
            "  exit 2; fi",
            "sys.exit(2)",
            "process.exit(2);",
            "os.Exit(2)",
            "std::process::exit(2)",
        ] {
            assert!(exits_with(script, '2'), "{script}");
        }
        for script in [
            "exit 20",
            "# exit 2",
            "exit 0",
            "exit $2",
            "exited 2 times",
            "// exit(2)",
        ] {
            assert!(!exits_with(script, '2'), "{script}");
        }
    }

    #[test]
    fn the_interpreter_is_behind_env() {
        assert_eq!(
            shebang("#!/usr/bin/env -S A=1 python3 -u\n"),
            Some("python3")
        );
        assert_eq!(shebang("#! /bin/sh -e\n"), Some("/bin/sh"));
        assert_eq!(shebang("echo"), None);
    }
}
