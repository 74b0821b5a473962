//! The command line of a bridge entry: written for the agent's shell, and
//! recognized again.
//!
//! It is one simple command, a program with plain arguments: some agents append
//! a here-document to it, some split it at blanks without a shell.

use std::path::{Path, PathBuf};

use anyhook_agents::spec::Scope;
use anyhook_util::shell::{self, Syntax};

use crate::machine::Machine;
use crate::target::scope_name;

/// The shell whose quoting rules the command line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    Posix,
    Cmd,
    PowerShell,
}

/// How an entry names the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramNaming {
    /// By its path on this machine.
    Absolute,
    /// `anyhook`, found on PATH: for files that other people share.
    Name,
}

const PROGRAM_NAME: &str = "anyhook";

/// The program as an entry names it.
///
/// The entry on PATH is preferred to the file behind it: package managers move
/// the file with each version.
pub fn program_to_write(machine: &Machine, naming: ProgramNaming, running: &Path) -> String {
    if naming == ProgramNaming::Name {
        return PROGRAM_NAME.to_owned();
    }
    let running = &without_deleted_mark(running);
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let mine = real(running);
    let listed = machine
        .programs_on_path(PROGRAM_NAME)
        .into_iter()
        .find(|path| mine.is_some() && real(path) == mine);
    listed
        .unwrap_or_else(|| running.to_owned())
        .to_string_lossy()
        .into_owned()
}

/// Linux marks the path of a program that was replaced while it ran as deleted.
fn without_deleted_mark(running: &Path) -> PathBuf {
    let text = running.to_string_lossy();
    text.strip_suffix(" (deleted)")
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .unwrap_or_else(|| running.to_owned())
}

/// The value of `--scope`, which an entry needs only if it names the program in
/// the way of the other scope: two entries with the same command line could not
/// be told apart, and a call that both deliver would be handled twice.
pub(crate) fn scope_argument(scope: Scope, program: &str) -> Option<&'static str> {
    let is_name = program == PROGRAM_NAME;
    let is_user = scope == Scope::User;
    (is_user == is_name).then(|| scope_name(scope))
}

/// The whole command line.
pub(crate) fn command_line(
    program: &str,
    agent: &str,
    scope: Option<&str>,
    event: Option<&str>,
    quoting: Quoting,
) -> String {
    let mut line = format!(
        "{} run --agent {}",
        quoted(program, quoting),
        quoted(agent, quoting)
    );
    if quoting == Quoting::PowerShell && line.starts_with('\'') {
        line.insert_str(0, "& ");
    }
    if let Some(scope) = scope {
        line = format!("{line} --scope {}", quoted(scope, quoting));
    }
    if let Some(event) = event {
        line = format!("{line} --event {}", quoted(event, quoting));
    }
    line
}

fn quoted(word: &str, quoting: Quoting) -> String {
    // A backslash is a plain character on Windows.
    let is_plain = shell::is_plain(&word.replace('\\', "/"));
    match quoting {
        Quoting::Posix => shell::quote_if_needed(word),
        Quoting::Cmd | Quoting::PowerShell if is_plain => word.to_owned(),
        Quoting::Cmd => format!("\"{word}\""),
        Quoting::PowerShell => format!("'{}'", word.replace('\'', "''")),
    }
}

/// A command line that calls the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeCommand {
    pub program: String,
    pub agent: String,
    pub event: Option<String>,
    pub scope: Option<String>,
}

impl BridgeCommand {
    /// Whether the bridge can tell the two entries of an agent apart.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        (&self.program, &self.agent, &self.scope) != (&other.program, &other.agent, &other.scope)
    }

    /// `None` if the command line does not call the bridge.
    pub fn parse(command: &str) -> Option<Self> {
        [true, false]
            .into_iter()
            .find_map(|escapes| from_words(&split_words(command, escapes, true)))
    }
}

/// Whether a command line does nothing but call the bridge. A longer one is the
/// user's own, even if it calls the bridge as well.
pub(crate) fn is_only_bridge(command: &str) -> bool {
    bridge_arguments(command).is_some()
}

/// The words of a command line that does nothing but call the bridge.
pub(crate) fn bridge_arguments(command: &str) -> Option<Vec<String>> {
    // A line for PowerShell with a quoted program starts with `& `.
    let command = command.strip_prefix("& ").unwrap_or(command).trim();
    [true, false].into_iter().find_map(|escapes| {
        let syntax = Syntax {
            escapes,
            operators: false,
            is_blank: |c| c == ' ' || c == '\t',
        };
        let line = shell::split(command, syntax);
        let mut words = line.words.iter();
        let program = words.next().is_some_and(|word| is_anyhook(&word.text));
        let is_plain = |word: &shell::Word| !word.expands && !word.is_pattern;
        let is_only_bridge = program
            && words.next().is_some_and(|word| word.text == "run")
            && line.words.iter().all(is_plain)
            && words.all(|word| !word.text.starts_with('#'))
            && !line.has_operators
            && !line.is_cut
            && !command.contains(['\n', '\r']);
        let words = line.words.into_iter().map(|word| word.text);
        is_only_bridge.then(|| words.collect())
    })
}

fn from_words(words: &[String]) -> Option<BridgeCommand> {
    let start = words
        .windows(2)
        .position(|pair| matches!(pair, [program, run] if is_anyhook(program) && run == "run"))?;
    let program = words.get(start)?.clone();
    let mut rest = words.get(start + 2..)?.iter();
    let (mut agent, mut event, mut scope) = (None, None, None);
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        match name {
            "--agent" => agent = value.or_else(|| rest.next().cloned()),
            "--event" => event = value.or_else(|| rest.next().cloned()),
            "--scope" => scope = value.or_else(|| rest.next().cloned()),
            _ => {}
        }
    }
    Some(BridgeCommand {
        program,
        agent: agent?,
        event,
        scope,
    })
}

fn is_anyhook(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == PROGRAM_NAME || name.eq_ignore_ascii_case("anyhook.exe")
}

/// The words of a line as a shell splits it. `escapes`: a backslash quotes the
/// next character, as in POSIX and not on Windows.
pub fn words(line: &str, escapes: bool) -> Vec<String> {
    split_words(line, escapes, false)
}

fn split_words(line: &str, escapes: bool, operators: bool) -> Vec<String> {
    let syntax = Syntax {
        escapes,
        operators,
        is_blank: char::is_whitespace,
    };
    let words = shell::split(line, syntax).words.into_iter();
    words.map(|word| word.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_recognized() {
        for program in [
            "anyhook",
            "/usr/bin/anyhook",
            "/home/o'neil x/bin/anyhook",
            "C:\\Program Files\\anyhook.exe",
            "/weird $(x) `y` \"z\"/anyhook",
        ] {
            for quoting in [Quoting::Posix, Quoting::Cmd, Quoting::PowerShell] {
                if quoting != Quoting::Posix && program.contains('"') {
                    continue;
                }
                if quoting == Quoting::PowerShell && program.contains('\'') {
                    continue;
                }
                let line =
                    command_line(program, "codex", Some("user"), Some("PreToolUse"), quoting);
                let ours = BridgeCommand::parse(&line).unwrap_or_else(|| panic!("{line}"));
                assert_eq!(ours.agent, "codex", "{line}");
                assert_eq!(ours.event.as_deref(), Some("PreToolUse"), "{line}");
                assert_eq!(ours.program, program, "{line}");
                assert!(is_only_bridge(&line), "{line}");
            }
        }
    }

    #[test]
    fn other_commands_are_not_recognized() {
        for line in [
            "",
            "echo hi",
            "anyhook validate",
            "anyhook run",
            "my-anyhook run --agent codex",
            "anyhook-like run --agent codex",
            "./anyhook/guard.sh run --agent codex",
        ] {
            assert_eq!(BridgeCommand::parse(line), None, "{line}");
        }
        assert!(BridgeCommand::parse("A=1 anyhook run --later x --agent=codex").is_some());
        assert!(BridgeCommand::parse("anyhook run --agent codex;x").is_some());
        assert!(is_only_bridge("/x/anyhook run --later x --agent=codex"));
        for line in [
            "A=1 anyhook run --agent codex",
            "env anyhook run --agent codex",
            "./mine.sh && anyhook run --agent codex",
            "anyhook run --agent codex; ./mine.sh",
            "anyhook run --agent codex | tee x",
            "anyhook run --agent codex > x",
            "anyhook run --agent codex $X",
            "anyhook run --agent `x`",
            "anyhook run --agent codex\n./mine.sh",
            "./log.sh --tool anyhook run --agent codex",
            "anyhook run --agent 'codex",
        ] {
            assert!(!is_only_bridge(line), "{line}");
        }
    }
}
