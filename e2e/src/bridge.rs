//! anyhook in a session: the program under test, how it is put into a client and taken out, and its journal.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhook_model::Record;
use tempfile::TempDir;

use crate::error::{AtPath, Error, Result};
use crate::expect::{Replace, ReplaceIn};
use crate::scratch::Scratch;
use crate::session::Outcome;

/// A folder with nothing in it but `anyhook`: a copy, so that a build beside us does not change it under our hands.
#[derive(Debug)]
pub struct Program {
    folder: TempDir,
}

impl Program {
    pub fn copy_of(binary: &Path) -> Result<Program> {
        let folder = folder()?;
        let copy = folder.path().join("anyhook");
        fs::copy(binary, &copy).at("copy", binary)?;
        Ok(Program { folder })
    }

    /// The same program behind a script that changes its answers.
    pub fn lying(&self, lie: &Replace) -> Result<Program> {
        let real = self.folder.path().join("anyhook");
        let folder = folder()?;
        let script = folder.path().join("anyhook");
        let text = format!(
            "#!/bin/sh\nanswer=$('{}' \"$@\")\ncode=$?\nprintf '%s\\n' \"$answer\" | sed 's/{}/{}/g'\nexit $code\n",
            real.display(),
            lie.from,
            lie.to
        );
        fs::write(&script, text).at("write", &script)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
            .at("make executable", script)?;
        Ok(Program { folder })
    }

    /// For the PATH.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn folder() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("anyhook-e2e-program-")
        .tempdir()
        .at("create a folder in", std::env::temp_dir())
}

/// The environment of every session that has anyhook: nothing of the machine's own.
pub fn env() -> [(&'static str, &'static str); 1] {
    [("ANYHOOK_MANAGED_DIR", "@home@/.no-managed-hooks")]
}

/// Trusts the project's hooks and puts the bridge in place.
pub fn install(scratch: &Scratch, agent: &str, scope: &str, args: &[String]) -> Result<()> {
    anyhook(scratch, &["trust", "--yes"])?;
    let mut words = vec!["install", "--agent", agent, "--scope", scope, "--yes"];
    words.extend(args.iter().map(String::as_str));
    anyhook(scratch, &words).map(drop)
}

pub fn uninstall(scratch: &Scratch, agent: &str, scope: &str) -> Result<()> {
    let words = ["uninstall", "--agent", agent, "--scope", scope, "--yes"];
    anyhook(scratch, &words).map(drop)
}

/// Runs anyhook in the project; its standard output, if it says that all is well.
pub fn anyhook(scratch: &Scratch, words: &[&str]) -> Result<String> {
    succeed(scratch.command("anyhook").args(words))
}

fn succeed(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() {
        return Ok(text(&done.stdout));
    }
    let words: Vec<String> = command
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    Err(Error::Command {
        command: format!("{program} {}", words.join(" ")),
        status: done.status.to_string(),
        output: format!("{}{}", text(&done.stdout), text(&done.stderr)),
    })
}

/// Breaks a file that was installed.
pub fn damage(scratch: &Scratch, damage: &ReplaceIn) -> Result<()> {
    let path = scratch.project.join(&damage.file);
    let text = fs::read_to_string(&path).at("read", &path)?;
    let broken = text.replace(&damage.from, &damage.to);
    if broken == text {
        return Err(Error::Data {
            path,
            message: format!("`{}` is not in it", damage.from),
        });
    }
    fs::write(&path, broken).at("write", path)
}

/// Where the bridge keeps what it remembers.
const STATE: &str = ".local/state/anyhook";

/// Every record of the session's journal, in order.
pub fn journal(outcome: &Outcome) -> Result<Vec<Record>> {
    let path = outcome
        .scratch
        .home
        .join(STATE)
        .join("journal/events.jsonl");
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(Vec::new());
    };
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            serde_json::from_str(line).map_err(|error| Error::Data {
                path: path.clone(),
                message: error.to_string(),
            })
        })
        .collect()
}

/// Every file and folder of HOME and project, but what anyhook keeps for itself.
pub fn snapshot(scratch: &Scratch) -> Result<BTreeMap<PathBuf, Option<Vec<u8>>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![scratch.home.clone(), scratch.project.clone()];
    let own = scratch.home.join(STATE);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).at("list", &folder)? {
            let path = entry.at("list", &folder)?.path();
            if path == own {
                continue;
            }
            if path.is_dir() {
                // The folders that lead to our own state are ours as well.
                if !own.starts_with(&path) {
                    found.insert(path.clone(), None);
                }
                folders.push(path);
            } else {
                let bytes = fs::read(&path).at("read", &path)?;
                found.insert(path, Some(bytes));
            }
        }
    }
    Ok(found)
}
