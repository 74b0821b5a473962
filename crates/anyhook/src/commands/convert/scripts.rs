//! The text of the scripts that a command runs, which shows what they read.

use std::path::{Path, PathBuf};

use anyhook_convert::ScriptText;
use anyhook_model::interpreter;
use anyhook_util::env;
use anyhook_util::fs::read_text;
use anyhook_util::shell::{self, Syntax};

use super::input::{MAX_SCRIPT_BYTES, has_script_ending};
use super::started_programs::{hands_input_on, named_paths, piped_programs};

/// Maximum number of scripts that are read for one command.
const MAX_SCRIPTS: usize = 16;

/// What is in these folders is a program of the system, not a script of the hook.
const SYSTEM_FOLDERS: [&str; 5] = [
    "/bin/",
    "/dev/",
    "/usr/bin/",
    "/usr/local/bin/env",
    "/sbin/",
];

/// Programs that start the one after them.
const WRAPPERS: [&str; 14] = [
    "builtin", "bunx", "command", "env", "exec", "nice", "nohup", "npx", "run", "sudo", "time",
    "timeout", "uv", "uvx",
];

/// Programs of the system whose arguments show all that they do with the payload.
const PLAIN_PROGRAMS: [&str; 34] = [
    "!", ".", ":", "[", "[[", "awk", "basename", "cat", "cd", "cut", "date", "dirname", "do",
    "done", "echo", "exit", "export", "false", "fi", "grep", "head", "if", "jq", "printf", "pwd",
    "sed", "set", "source", "tail", "tee", "test", "then", "tr", "true",
];

/// A file that a command names.
enum NamedFile {
    Text(PathBuf, String),
    /// It is there, and not a text.
    Program,
    Missing,
}

/// Reads scripts, beginning in the folder of a config.
pub(super) struct ScriptFinder<'a> {
    pub folder: &'a Path,
}

impl ScriptFinder<'_> {
    /// The text of the scripts that a command runs.
    pub(super) fn script(&self, command: &str) -> ScriptText {
        let mut scripts: Vec<(PathBuf, String)> = Vec::new();
        let (mut is_missing, mut is_unclear) = (false, false);
        let mut is_wrapped = false;
        for word in shell::split(command, Syntax::SCRIPT).words {
            let is_option = word.text.starts_with('-');
            let name = match word.text.split_once('=') {
                Some((_, value)) if is_option => value,
                _ => word.text.as_str(),
            };
            let is_system = SYSTEM_FOLDERS.iter().any(|folder| name.starts_with(folder));
            if word.is_target || name.is_empty() {
                continue;
            }
            let is_assigned = !is_option && is_assignment(name);
            let is_program = !is_option && (word.is_program || is_wrapped) && !is_number(name);
            if is_program {
                is_wrapped = is_assigned || WRAPPERS.contains(&base_name(name));
            }
            let is_known = is_system
                || is_assigned
                || interpreter::is_interpreter(name)
                || WRAPPERS.contains(&name)
                || PLAIN_PROGRAMS.contains(&name);
            if is_program && is_known {
                continue;
            }
            let is_named = name.contains('/') || has_script_ending(name);
            match self.find(name, is_program) {
                NamedFile::Text(path, text) => scripts.push((path, text)),
                NamedFile::Program => is_unclear = true,
                NamedFile::Missing if is_program => is_missing = true,
                NamedFile::Missing if !is_system && is_named && scripts.is_empty() => {
                    is_missing = true;
                }
                NamedFile::Missing if !is_system && is_named => is_unclear = true,
                NamedFile::Missing => {}
            }
        }
        is_unclear |= !self.add_started(&mut scripts);
        let texts: Vec<String> = scripts.into_iter().map(|(_, text)| text).collect();
        if is_missing {
            ScriptText::Missing
        } else if is_unclear || texts.is_empty() {
            ScriptText::Unclear
        } else {
            ScriptText::Known(texts.join("\n"))
        }
    }

    /// Adds the files that scripts name. Returns whether all of them could be read.
    fn add_started(&self, scripts: &mut Vec<(PathBuf, String)>) -> bool {
        let mut read = 0;
        while let Some((path, text)) = scripts.get(read) {
            read += 1;
            for file in self.named_files(path, text) {
                let NamedFile::Text(path, text) = file else {
                    return false;
                };
                if scripts.iter().any(|(known, _)| *known == path) {
                    continue;
                }
                if scripts.len() == MAX_SCRIPTS {
                    return false;
                }
                scripts.push((path, text));
            }
        }
        true
    }

    /// The files that a script names, beside it or in the project, and the programs
    /// to which it hands what it reads.
    fn named_files(&self, path: &Path, text: &str) -> Vec<NamedFile> {
        let beside = path.parent();
        let names = named_paths(text);
        let files = names.iter().map(|name| {
            let file = beside.map_or(NamedFile::Missing, |folder| read_named(&folder.join(name)));
            match file {
                NamedFile::Missing => self.find(name, false),
                file => file,
            }
        });
        let mut found: Vec<NamedFile> = files
            .filter(|file| !matches!(file, NamedFile::Missing))
            .collect();
        let programs = piped_programs(text).into_iter().filter(|name| {
            !PLAIN_PROGRAMS.contains(name)
                && !interpreter::is_interpreter(name)
                && !is_of_system(name)
        });
        found.extend(programs.map(|name| self.find(name, true)));
        found.extend(hands_input_on(text).then_some(NamedFile::Program));
        found
    }

    /// A file in the config's folder or above it; a program by its name also on
    /// `PATH`.
    fn find(&self, name: &str, is_program: bool) -> NamedFile {
        let path = env::PATH.os().unwrap_or_default();
        let is_searched = is_program && !name.contains('/');
        let on_path = std::env::split_paths(&path).filter(|_| is_searched);
        let places = self.folder.ancestors().take(3).map(Path::to_owned);
        let files = places
            .chain(on_path)
            .map(|folder| read_named(&folder.join(name)));
        let mut found = files.filter(|file| !matches!(file, NamedFile::Missing));
        found.next().unwrap_or(NamedFile::Missing)
    }
}

fn read_named(path: &Path) -> NamedFile {
    if !path.is_file() {
        return NamedFile::Missing;
    }
    match read_text(path, MAX_SCRIPT_BYTES) {
        Ok(text) => NamedFile::Text(path.to_owned(), text),
        Err(_) => NamedFile::Program,
    }
}

/// Whether a program belongs to the system: it is no guard of the project.
fn is_of_system(name: &str) -> bool {
    let mut folders = SYSTEM_FOLDERS.iter();
    let base = base_name(name);
    folders.any(|folder| Path::new(folder).join(base).is_file())
}

fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a word sets a variable for the program after it.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.is_empty() && name.chars().all(is_letter)
    })
}

fn is_number(word: &str) -> bool {
    word.trim_end_matches(['s', 'm', 'h'])
        .parse::<f64>()
        .is_ok()
}
