//! The programs and scripts that a hook's command starts, for checks before it runs.
//!
//! Only what is certain is listed: a word that the shell still has to expand, and
//! everything after a change of the folder, is left out.

use std::path::{Path, PathBuf};

use anyhook_model::{Hook, Scope};
use anyhook_util::shell::{self, Word};

use super::manifest::{self, working_dir};
use super::trust;
use crate::run::exec::command::{line_syntax, normalize_path, with_slashes};
use crate::run::exec::words::{WordRole, WordRoles};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedProgram {
    /// As the command names it.
    pub name: String,
    /// The interpreter that runs it; `None` for what the system itself starts.
    pub interpreter: Option<String>,
    /// Where the file may be, preferred first; empty for a program on PATH.
    pub candidates: Vec<PathBuf>,
    /// It may be the value of an option, and no file at all.
    pub follows_option: bool,
    /// The first program of its command.
    pub is_first: bool,
}

impl StartedProgram {
    /// The file that is started.
    pub fn file(&self) -> Option<&Path> {
        let mut candidates = self.candidates.iter();
        candidates.find(|path| path.is_file()).map(PathBuf::as_path)
    }
}

/// What a hook's command for this system starts.
pub fn started_programs(
    hook: &Hook,
    scope: Scope,
    root: &Path,
    folder: &Path,
) -> Vec<StartedProgram> {
    let Some(command) = manifest::command(&hook.handler) else {
        return Vec::new();
    };
    let variables = trust::hook_variables(hook, root, folder);
    let line = command.to_line(|name| {
        let mut known = variables.iter().filter(|(known, _)| known == name);
        known.next().map(|(_, value)| value.clone())
    });
    let places = FilePlaces {
        scope,
        root,
        folder,
        cwd: &working_dir(&hook.handler, root),
    };
    let mut programs = Vec::new();
    let mut roles = WordRoles::default();
    let mut previous = String::new();
    for word in shell::split(&line, line_syntax(&line)).words {
        let role = roles.next_role(&word);
        if role == WordRole::Folder {
            break;
        }
        let follows_option = previous.starts_with('-');
        previous.clone_from(&word.text);
        let interpreter = match role {
            WordRole::Program => None,
            WordRole::Script => Some(roles.program().to_owned()),
            _ => continue,
        };
        if let Some(name) = literal_text(&word, &variables) {
            programs.push(StartedProgram {
                candidates: places.candidates(&name, interpreter.is_some()),
                name,
                interpreter,
                follows_option,
                is_first: programs.is_empty(),
            });
        } else if programs.is_empty() {
            // What the shell expands first may change everything that follows.
            break;
        }
    }
    programs
}

/// A word with its known variables replaced; `None` if something is left for the shell.
fn literal_text(word: &Word, variables: &[(String, String)]) -> Option<String> {
    let mut text = word.text.clone();
    if word.expands {
        for (name, value) in variables {
            text = text.replace(&format!("${{{name}}}"), value);
            text = text.replace(&format!("${name}/"), &format!("{value}/"));
        }
    }
    if let Some(rest) = text.strip_prefix("~/") {
        text = format!("{}/{rest}", anyhook_util::env::HOME.text()?);
    }
    let is_open = word.expands && text.contains(['$', '`']);
    (!is_open && !word.is_pattern && !text.starts_with('~')).then_some(text)
}

/// The folders in which a command's files are looked up, as in `run/exec/command.rs`.
struct FilePlaces<'a> {
    scope: Scope,
    root: &'a Path,
    folder: &'a Path,
    cwd: &'a Path,
}

impl FilePlaces<'_> {
    fn candidates(&self, name: &str, is_script: bool) -> Vec<PathBuf> {
        let name = &*with_slashes(name);
        let is_path = name.contains('/');
        if !is_path && !is_script {
            return Vec::new();
        }
        let is_dotted = name.starts_with("./") || name.starts_with("../");
        let folders: &[&Path] = match self.scope {
            Scope::Managed | Scope::User => &[self.folder],
            Scope::Project if is_dotted => &[self.root, self.folder, self.cwd],
            Scope::Project if is_path => &[self.cwd, self.folder],
            Scope::Project => &[self.cwd],
        };
        let mut candidates: Vec<PathBuf> = Vec::new();
        for folder in folders {
            let path = normalize_path(&folder.join(name));
            if !candidates.contains(&path) {
                candidates.push(path);
            }
        }
        candidates
    }
}
