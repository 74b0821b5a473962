//! The command line that stands in an agent's file: written for that agent's
//! shell, and recognised again.
//!
//! It is one simple command, a program with plain arguments: some agents append
//! a here-document to it, some split it at blanks without a shell.

use std::path::{Path, PathBuf};

use crate::world::World;

/// Whose rules the command line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    Posix,
    Cmd,
    PowerShell,
}

/// How the program is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// By its path on this machine.
    Absolute,
    /// `anyhook`, found on PATH: for files that others use as well.
    Name,
}

const NAME: &str = "anyhook";

/// The program as it is to be written.
///
/// The entry on PATH is preferred to the file behind it: package managers move
/// the file with each version.
pub fn program(world: &World, naming: Naming, running: &Path) -> String {
    if naming == Naming::Name {
        return NAME.to_owned();
    }
    let running = &still_there(running);
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let mine = real(running);
    let listed = world
        .on_path(NAME)
        .into_iter()
        .find(|path| mine.is_some() && real(path) == mine);
    let path: PathBuf = listed.unwrap_or_else(|| running.to_owned());
    path.to_string_lossy().into_owned()
}

/// Linux tells of a program that was replaced while it ran that it is deleted.
fn still_there(running: &Path) -> PathBuf {
    let text = running.to_string_lossy();
    text.strip_suffix(" (deleted)")
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .unwrap_or_else(|| running.to_owned())
}

/// The whole line.
pub fn line(program: &str, agent: &str, event: Option<&str>, quoting: Quoting) -> String {
    let mut line = quoted(program, quoting);
    if quoting == Quoting::PowerShell && line.starts_with('\'') {
        line = format!("& {line}");
    }
    line.push_str(" run --agent ");
    line.push_str(&quoted(agent, quoting));
    if let Some(event) = event {
        line.push_str(" --event ");
        line.push_str(&quoted(event, quoting));
    }
    line
}

/// The line as a program and its arguments.
pub fn argv(program: &str, agent: &str) -> Vec<String> {
    [program, "run", "--agent", agent]
        .map(str::to_owned)
        .to_vec()
}

fn quoted(word: &str, quoting: Quoting) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric()
            || "_-./+:@%=,".contains(c)
            || (quoting != Quoting::Posix && c == '\\')
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    match quoting {
        Quoting::Posix => format!("'{}'", word.replace('\'', r"'\''")),
        Quoting::Cmd => format!("\"{word}\""),
        Quoting::PowerShell => format!("'{}'", word.replace('\'', "''")),
    }
}

/// A command line that calls the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours {
    pub program: String,
    pub agent: String,
    pub event: Option<String>,
}

/// Whether a command line calls the bridge, and how.
pub fn ours(command: &str) -> Option<Ours> {
    [true, false]
        .into_iter()
        .find_map(|escapes| recognise(&words(command, escapes)))
}

fn recognise(words: &[String]) -> Option<Ours> {
    let start = words
        .windows(2)
        .position(|pair| matches!(pair, [program, run] if is_our_name(program) && run == "run"))?;
    let program = words.get(start)?.clone();
    let mut rest = words.get(start + 2..)?.iter();
    let (mut agent, mut event) = (None, None);
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        match name {
            "--agent" => agent = value.or_else(|| rest.next().cloned()),
            "--event" => event = value.or_else(|| rest.next().cloned()),
            _ => {}
        }
    }
    Some(Ours {
        program,
        agent: agent?,
        event,
    })
}

fn is_our_name(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == NAME || name.eq_ignore_ascii_case("anyhook.exe")
}

/// The words of a line as a shell takes them. `escapes`: a backslash quotes the
/// next character, as in POSIX and not on Windows.
pub fn words(line: &str, escapes: bool) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') if escapes => {
                if let Some(next) = chars.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_recognised() {
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
                let line = line(program, "codex", Some("PreToolUse"), quoting);
                let ours = ours(&line).unwrap_or_else(|| panic!("{line}"));
                assert_eq!(ours.agent, "codex", "{line}");
                assert_eq!(ours.event.as_deref(), Some("PreToolUse"), "{line}");
                assert_eq!(ours.program, program, "{line}");
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_not_recognised() {
        for line in [
            "",
            "echo hi",
            "anyhook validate",
            "anyhook run",
            "my-anyhook run --agent codex",
            "anyhook-like run --agent codex",
            "./anyhook/guard.sh run --agent codex",
        ] {
            assert_eq!(ours(line), None, "{line}");
        }
        assert!(ours("A=1 anyhook run --later x --agent=codex").is_some());
    }
}
