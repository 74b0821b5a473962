//! The folders of one session: HOME, project, temporary folder and run folder, removed with the session.
//!
//! Not the testkit's `Scratch`: a real client needs its own variables, a folder that can be kept for inspection,
//! and an environment that can be sent into a namespace.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::error::{AtPath, Error, Result};

pub struct Sandbox {
    root: Option<TempDir>,
    pub home: PathBuf,
    pub project: PathBuf,
    pub run: PathBuf,
    /// The whole environment of everything that runs here.
    pub env: BTreeMap<String, String>,
}

impl Sandbox {
    /// `first_in_path` comes before the PATH of this process.
    pub(crate) fn new(first_in_path: &[PathBuf], keep: bool) -> Result<Self> {
        let temp = env::temp_dir();
        let root = tempfile::Builder::new()
            .prefix("anyhook-e2e-")
            .tempdir()
            .at("create a folder in", &temp)?;
        let base = root.path().canonicalize().at("resolve", root.path())?;
        let [home, project, tmp, run] =
            ["home", "project", "tmp", "run"].map(|name| base.join(name));
        for folder in [&home, &project, &tmp, &run] {
            fs::create_dir(folder).at("create", folder)?;
        }
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(
            first_in_path
                .iter()
                .cloned()
                .chain(env::split_paths(&inherited)),
        );
        let path = path.unwrap_or(inherited);
        let env = [
            ("PATH", path.to_string_lossy().into_owned()),
            ("HOME", home.to_string_lossy().into_owned()),
            ("TMPDIR", tmp.to_string_lossy().into_owned()),
            ("PWD", project.to_string_lossy().into_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("TERM", "dumb".to_owned()),
            ("USER", "e2e".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("CI", "1".to_owned()),
            ("DO_NOT_TRACK", "1".to_owned()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ];
        let sandbox = Sandbox {
            root: if keep {
                // The folder must outlive this process: give up its guard.
                let _ = root.keep();
                None
            } else {
                Some(root)
            },
            home,
            project,
            run,
            env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        let mut git = sandbox.command("git");
        git.args(["init", "--quiet", "--initial-branch=main"]);
        // Without git, the project is simply not a repository.
        let _ = git.output();
        Ok(sandbox)
    }

    /// The folder of the session, if it is kept.
    pub fn kept_folder(&self) -> Option<&Path> {
        self.root.is_none().then(|| self.run.parent()).flatten()
    }

    /// A command in the project, with only the environment of the session.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.project);
        command
    }

    /// Copies the contents of a folder into the project.
    pub fn copy_into_project(&self, folder: &Path) -> Result<()> {
        let mut folders = vec![(folder.to_owned(), self.project.clone())];
        while let Some((from, to)) = folders.pop() {
            fs::create_dir_all(&to).at("create", &to)?;
            for entry in fs::read_dir(&from).at("list", &from)? {
                let entry = entry.at("list", &from)?;
                let (source, target) = (entry.path(), to.join(entry.file_name()));
                if source.is_dir() {
                    folders.push((source, target));
                } else {
                    fs::copy(&source, &target).at("copy", source)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a file; `~/…` is below HOME, everything else below the project. An existing JSON object is merged with
    /// the new one; a text goes behind existing TOML or YAML.
    pub fn write_file(&self, path: &str, text: &str, executable: bool) -> Result<()> {
        let path = match path.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => self.project.join(path.strip_prefix("./").unwrap_or(path)),
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        let text = match (ending, fs::read_to_string(&path)) {
            (Some("json"), Ok(old)) => {
                let merged = merge_json(parse_json(&path, &old)?, parse_json(&path, text)?);
                format!("{merged:#}\n")
            }
            (Some("toml" | "yaml"), Ok(old)) => old + text,
            _ => text.to_owned(),
        };
        fs::write(&path, text).at("write", &path)?;
        if executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .at("make executable", path)?;
        }
        Ok(())
    }
}

fn parse_json(path: &Path, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Error::Data {
        path: path.to_owned(),
        message: format!("{error} in:\n{text}"),
    })
}

/// Merges objects member by member; otherwise the new value wins.
fn merge_json(old: Value, new: Value) -> Value {
    match (old, new) {
        (Value::Object(mut old), Value::Object(new)) => {
            for (key, value) in new {
                let value = match old.remove(&key) {
                    Some(there) => merge_json(there, value),
                    None => value,
                };
                old.insert(key, value);
            }
            Value::Object(old)
        }
        (_, new) => new,
    }
}
