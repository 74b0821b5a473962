//! anyhook in a session: the program under test, installing it into a client and removing it, and its journal.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhook_model::Record;
use tempfile::TempDir;

use crate::command::{run_for_all_output, run_to_success};
use crate::error::{AtPath, Error, Result};
use crate::expect::{Replace, ReplaceIn};
use crate::sandbox::Sandbox;
use crate::session::Outcome;

/// A folder with a copy of `anyhook` and nothing else; a build that runs meanwhile cannot change it.
#[derive(Debug)]
pub struct Program {
    folder: TempDir,
}

impl Program {
    pub fn copy_of(binary: &Path) -> Result<Program> {
        let folder = create_program_folder()?;
        let copy = folder.path().join("anyhook");
        fs::copy(binary, &copy).at("copy", binary)?;
        Ok(Program { folder })
    }

    /// The same program behind a script that alters its answers.
    pub fn with_altered_answers(&self, replacement: &Replace) -> Result<Program> {
        let real = self.folder.path().join("anyhook");
        Program::from_script(&format!(
            "#!/bin/sh\nanswer=$('{}' \"$@\")\ncode=$?\nprintf '%s\\n' \"$answer\" | sed 's/{}/{}/g'\nexit $code\n",
            real.display(),
            replacement.from,
            replacement.to
        ))
    }

    /// The same program, which lets the daemon at `$E2E_SERVER` run the hooks: the installation writes
    /// entries without a daemon, and a client may want changed entries to be reviewed.
    pub fn with_server(&self) -> Result<Program> {
        let real = self.folder.path().join("anyhook");
        Program::from_script(&format!(
            "#!/bin/sh\ncase $1 in run) set -- \"$@\" --server \"$E2E_SERVER\" ;; esac\nexec '{}' \"$@\"\n",
            real.display()
        ))
    }

    fn from_script(text: &str) -> Result<Program> {
        let folder = create_program_folder()?;
        write_script(&folder.path().join("anyhook"), text)?;
        Ok(Program { folder })
    }

    /// For the PATH.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

pub fn write_script(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).at("write", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).at("make executable", path)
}

pub fn create_program_folder() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("anyhook-e2e-program-")
        .tempdir()
        .at("create a folder in", std::env::temp_dir())
}

/// The variable with the address of the session's daemon, and the address.
pub const SERVER_VARIABLE: &str = "E2E_SERVER";
pub const SERVER: &str = "http://127.0.0.1:@daemon@";

/// The arguments of an installation whose entries ask the session's daemon.
pub fn via_daemon(sandbox: &Sandbox) -> [String; 2] {
    let address = sandbox.env.get(SERVER_VARIABLE).cloned();
    ["--via".to_owned(), address.unwrap_or_default()]
}

/// Variables for every session with anyhook: no managed hooks of this machine.
pub fn session_env() -> [(&'static str, &'static str); 1] {
    [("ANYHOOK_MANAGED_DIR", "@home@/.no-managed-hooks")]
}

/// Trusts the project's hooks and installs the bridge.
pub fn install(sandbox: &Sandbox, agent: &str, scope: &str, args: &[String]) -> Result<()> {
    run_anyhook(sandbox, &["trust", "--yes"])?;
    install_only(sandbox, agent, scope, args).map(drop)
}

/// Installs the bridge; what that printed.
pub fn install_only(
    sandbox: &Sandbox,
    agent: &str,
    scope: &str,
    args: &[String],
) -> Result<String> {
    let mut words = vec!["install", "--agent", agent, "--scope", scope, "--yes"];
    if !args.iter().any(|word| word == "--events") {
        // What a scenario records is compared too.
        words.extend(["--events", "all"]);
    }
    words.extend(args.iter().map(String::as_str));
    let mut command = sandbox.command("anyhook");
    // The entries start what is on PATH, which may be a script around the program.
    let folders = sandbox
        .env
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let programs = std::env::split_paths(folders).map(|folder| folder.join("anyhook"));
    if let Some(program) = programs.into_iter().find(|program| program.is_file()) {
        command.env("ANYHOOK_PROGRAM", program);
    }
    run_for_all_output(command.args(&words))
}

pub fn uninstall(sandbox: &Sandbox, agent: &str, scope: &str) -> Result<()> {
    let words = ["uninstall", "--agent", agent, "--scope", scope, "--yes"];
    run_anyhook(sandbox, &words).map(drop)
}

/// Runs anyhook in the project; its standard output if it succeeds.
pub fn run_anyhook(sandbox: &Sandbox, words: &[&str]) -> Result<String> {
    run_to_success(sandbox.command("anyhook").args(words))
}

/// Breaks a file that was installed.
pub fn damage_installed_file(sandbox: &Sandbox, damage: &ReplaceIn) -> Result<()> {
    let path = sandbox.project.join(&damage.file);
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

/// The state folder of anyhook, below HOME.
const STATE_FOLDER: &str = ".local/state/anyhook";

/// Every record of the session's journal, in order.
pub fn read_journal(outcome: &Outcome) -> Result<Vec<Record>> {
    let path = outcome
        .sandbox
        .home
        .join(STATE_FOLDER)
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

/// Every file and folder of HOME and project, without the state of anyhook.
pub fn snapshot(sandbox: &Sandbox) -> Result<BTreeMap<PathBuf, Option<Vec<u8>>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![sandbox.home.clone(), sandbox.project.clone()];
    let own = sandbox.home.join(STATE_FOLDER);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).at("list", &folder)? {
            let path = entry.at("list", &folder)?.path();
            if path == own {
                continue;
            }
            if path.is_dir() {
                // anyhook creates the folders above its state as well.
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
