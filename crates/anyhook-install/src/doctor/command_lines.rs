//! Checks what a command line names: whether it exists and can be executed.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhook_model::suggest;
use anyhook_util::system::OperatingSystem;
use serde_json::Value;

use super::{DoctorFinding, FileCheck, Fix, ReinstalledProgram};
use crate::command::{self, BridgeCommand, BridgeProgram};
use crate::hook_entries::HookEntry;
use crate::machine::{Machine, is_executable_file};
use crate::scripts;

/// Programs that take a script as their first argument.
const INTERPRETERS: [&str; 14] = [
    "sh",
    "bash",
    "zsh",
    "dash",
    "python",
    "python3",
    "node",
    "bun",
    "deno",
    "ruby",
    "perl",
    "pwsh",
    "powershell",
    "env",
];

/// Commands that the shell itself runs.
const SHELL_BUILTINS: [&str; 18] = [
    "exit", "echo", "true", "false", "cd", "test", "[", "set", "export", "eval", "exec", "source",
    ".", "printf", "read", "command", ":", "if",
];

const PROGRAM_MISSING: &str = "program-missing";

const CANNOT_START: &str = "the hook cannot start; most agents continue as if it had approved";

/// Checks the entry's command lines for this system.
pub(super) fn check_entry(file: &mut FileCheck<'_>, entry: &HookEntry<'_>) {
    let platform = OperatingSystem::CURRENT.command_field();
    let fields = file.target.config().handler.fields.iter();
    let mut lines: Vec<&str> = Vec::new();
    for field in fields.filter(|field| field.to == "command" || field.to == platform) {
        let line = entry.handler.pointer(&field.at).and_then(Value::as_str);
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    for line in lines {
        if let Some(problem) = command_problem(file, line) {
            let is_bridge = BridgeCommand::parse(line).is_some();
            report(file, &entry.to_string(), problem, is_bridge);
        }
    }
}

/// Checks scripts that are hooks by their folder and name.
pub(super) fn check_scripts(file: &mut FileCheck<'_>) {
    let target = file.target;
    let entries = std::fs::read_dir(&target.path).into_iter().flatten();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.is_file() || name.starts_with('.') {
            continue;
        }
        let stem = name.split('.').next().unwrap_or(&name);
        let events = target.adapter.spec.events.iter();
        let mut events = events.map(|event| &*event.native);
        if !events.clone().any(|event| event.eq_ignore_ascii_case(stem)) {
            if let Some(near) = suggest::nearest(stem, &mut events) {
                let what = format!("there is no event `{stem}`; did you mean `{near}`?");
                file.report(
                    DoctorFinding::warning("unknown-event", what)
                        .why("the script never runs")
                        .remedy(format!("rename it to `{near}`")),
                );
            }
            continue;
        }
        let problem = if !name.contains('.') && !is_executable_file(&path) {
            Some(not_executable(&path))
        } else {
            missing_interpreter(file.machine, &path)
        };
        if let Some(problem) = problem {
            let is_bridge = scripts::is_generated_file(&path);
            report(file, &format!("`{name}`"), problem, is_bridge);
        }
    }
}

fn report(file: &mut FileCheck<'_>, place: &str, mut problem: DoctorFinding, is_bridge: bool) {
    problem.what = format!("{place}: {}", problem.what);
    if is_bridge && problem.fix.is_none() {
        let target = Box::new(file.target.clone());
        problem.fix = Some(Fix::Reinstall(target, ReinstalledProgram::Renewed));
    }
    file.report(problem);
}

fn command_problem(file: &FileCheck<'_>, line: &str) -> Option<DoctorFinding> {
    if let Some(bridge) = command::bridge_invocation(line)
        && bridge.program == BridgeProgram::Searched
    {
        let path = Some(&file.target.path);
        let mut findings = file.findings.iter();
        let is_known = findings.any(|one| one.id == PROGRAM_MISSING && one.file.as_ref() == path);
        let is_missing = !is_known && file.machine.searched_program().is_none();
        return is_missing.then(not_kept);
    }
    let words = command::words(line, !cfg!(windows));
    let first = words.first()?;
    // Only the shell can evaluate assignments and substitutions.
    if first.contains('=') || line.contains(['`', '\n']) || line.contains("$(") {
        return None;
    }
    let is_missing = |name: &str| file.machine.programs_on_path(name).is_empty();
    if !first.contains('/') {
        let name = first.rsplit('\\').next().unwrap_or(first);
        if SHELL_BUILTINS.contains(&name) {
            return None;
        }
        if INTERPRETERS.contains(&name) {
            if is_missing(name) {
                return Some(not_on_path(name));
            }
            let script = words.iter().skip(1).find(|word| !word.starts_with('-'))?;
            let is_path = script.contains('/') || script.contains('.');
            let takes_code = words
                .iter()
                .any(|word| ["-c", "-e", "-m"].contains(&word.as_str()));
            let path = resolve_path(file, script)?;
            return (is_path && !takes_code && !path.exists()).then(|| missing(&path));
        }
        let is_simple = first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c));
        return (is_simple && is_missing(first)).then(|| not_on_path(first));
    }
    let path = resolve_path(file, first)?;
    if !path.exists() {
        // Some agents start the user's hooks in the folder of their file.
        let sibling = file.target.path.parent().map(|folder| folder.join(first));
        return (!sibling.is_some_and(|path| path.exists())).then(|| missing(&path));
    }
    if path.is_file() && !is_executable_file(&path) {
        return Some(not_executable(&path));
    }
    missing_interpreter(file.machine, &path)
}

/// A word as a path; `None` if only the agent knows what it stands for.
fn resolve_path(file: &FileCheck<'_>, word: &str) -> Option<PathBuf> {
    let root = &file.machine.root;
    let home = file.machine.home.as_ref()?.to_string_lossy();
    let variables = file.target.adapter.spec.env.iter();
    let project_variables = variables
        .filter(|(_, value)| *value == "{project}")
        .map(|(name, _)| (&**name, root.to_string_lossy()));
    let mut text = word.to_owned();
    for (name, value) in std::iter::once(("HOME", home.clone())).chain(project_variables) {
        text = text
            .replace(&format!("${{{name}}}"), &value)
            .replace(&format!("${name}"), &value);
    }
    if let Some(rest) = text.strip_prefix("~/") {
        text = format!("{home}/{rest}");
    }
    (!text.contains(['$', '*', '%'])).then(|| root.join(text))
}

fn missing(path: &Path) -> DoctorFinding {
    let what = format!("`{}` does not exist", path.display());
    DoctorFinding::error("script-missing", what)
        .why(CANNOT_START)
        .remedy("create the script or correct its path")
}

fn not_on_path(name: &str) -> DoctorFinding {
    DoctorFinding::error("interpreter-missing", format!("`{name}` is not on PATH"))
        .why(CANNOT_START)
        .remedy(format!("install `{name}`, or use its full path"))
}

/// An entry of a shared file on a machine where it finds nothing to start.
fn not_kept() -> DoctorFinding {
    let what = "`anyhook` is neither in `~/.local/share/anyhook/bin` nor on PATH";
    DoctorFinding::error(PROGRAM_MISSING, what)
        .why("the entry does nothing here, and the agent takes that for approval")
        .remedy("run `anyhook install`")
}

fn not_executable(path: &Path) -> DoctorFinding {
    let what = format!("`{}` is not executable", path.display());
    DoctorFinding::error("script-not-executable", what)
        .why(CANNOT_START)
        .remedy(format!("run `chmod +x {}`", path.display()))
        .fixed_by(Fix::MakeExecutable(path.to_owned()))
}

/// A script whose first line names an interpreter that does not exist.
fn missing_interpreter(machine: &Machine, path: &Path) -> Option<DoctorFinding> {
    let mut head = Vec::new();
    let script = std::fs::File::open(path).ok()?;
    script.take(256).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head);
    let line = text.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace();
    let mut name = words.next()?;
    if name.ends_with("/env") {
        name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    let exists = if name.contains('/') {
        Path::new(name).exists()
    } else {
        !machine.programs_on_path(name).is_empty()
    };
    if exists {
        return None;
    }
    let remedy = if line.ends_with('\r') {
        "convert the script to Unix line endings".to_owned()
    } else {
        format!("install `{name}`, or change the first line of the script")
    };
    let what = format!(
        "`{}` needs `{name}`, which is not installed",
        path.display()
    );
    let finding = DoctorFinding::error("interpreter-missing", what);
    Some(finding.why(CANNOT_START).remedy(remedy))
}
