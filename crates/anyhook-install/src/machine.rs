//! The machine as seen from one folder: project, home, anyhook's folders,
//! environment, programs on PATH. A value, so that tests can make one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhook_agents::spec::ConfigFile;
use anyhook_run::config::discover::{self, Dirs};
use anyhook_util::env;

use crate::command::PROGRAM_NAME;
use crate::kept_program::KeptProgram;

#[derive(Debug, Clone)]
pub struct Machine {
    pub cwd: PathBuf,
    /// The project of `cwd`: the repository's root, else the nearest folder with `.anyhook`.
    pub root: PathBuf,
    pub home: Option<PathBuf>,
    pub dirs: Dirs,
    pub env: BTreeMap<String, OsString>,
}

impl Machine {
    pub fn from_env(cwd: PathBuf) -> Self {
        let env = anyhook_util::env::all()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect();
        Self::new(cwd, env)
    }

    pub fn new(cwd: PathBuf, env: BTreeMap<String, OsString>) -> Self {
        let dirs = Dirs::from_lookup(|name| lookup(&env, name).cloned());
        let cwd = real_path(&cwd);
        let root = discover::discover(&dirs, &cwd).root;
        Self {
            root: if root.as_os_str().is_empty() {
                cwd.clone()
            } else {
                root
            },
            cwd,
            home: dirs.home.clone(),
            dirs,
            env,
        }
    }

    /// Where locks and records of installations are kept.
    pub(crate) fn records_dir(&self) -> PathBuf {
        self.dirs.state.join("install")
    }

    pub fn var(&self, name: &str) -> Option<&OsString> {
        lookup(&self.env, name).filter(|value| !value.is_empty())
    }

    /// The path of an agent's file; a `*` in its name stays.
    pub fn config_path(&self, file: &ConfigFile) -> Option<PathBuf> {
        self.expand_path(&file.path, file.home_env.as_deref())
    }

    /// A path of an agent's table, resolved on this machine.
    pub fn expand_path(&self, path: &str, home_env: Option<&str>) -> Option<PathBuf> {
        let Some(rest) = path.strip_prefix("~/") else {
            return Some(self.root.join(path));
        };
        // `NAME=folder`: the variable is the place of that folder.
        if let Some((name, folder)) = home_env.and_then(|home_env| home_env.split_once('='))
            && let Some(moved) = self.var(name)
        {
            let below = path.strip_prefix(folder)?.trim_start_matches('/');
            return Some(Path::new(moved).join(below));
        }
        let (name, below) = home_env.map_or(("", ""), |home_env| {
            home_env.split_once('/').unwrap_or((home_env, ""))
        });
        if let Some(moved) = self.var(name) {
            let (_, rest) = rest.split_once('/')?;
            return Some(Path::new(moved).join(below).join(rest));
        }
        if let Some(rest) = rest.strip_prefix("$DOCUMENTS/") {
            return Some(self.other_documents_folder()?.join(rest));
        }
        if let (Some(rest), Some(base)) = (
            rest.strip_prefix(".config/"),
            self.var(env::XDG_CONFIG_HOME.name),
        ) && Path::new(base).is_absolute()
        {
            return Some(Path::new(base).join(rest));
        }
        Some(self.home.as_ref()?.join(rest))
    }

    /// The user's folder for documents, if the desktop names another one than
    /// `~/Documents`. Agents ask the same program; without a desktop it names the
    /// home folder.
    fn other_documents_folder(&self) -> Option<PathBuf> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let path = self.var("PATH")?;
        let mut folders = std::env::split_paths(path);
        let program = folders.find_map(|folder| {
            let program = folder.join("xdg-user-dir");
            program.is_file().then_some(program)
        })?;
        let mut command = std::process::Command::new(program);
        command.arg("DOCUMENTS").env_clear().envs(&self.env);
        let output = command.output().ok()?;
        let folder = String::from_utf8(output.stdout).ok()?;
        let folder = PathBuf::from(folder.trim());
        let usual = self.home.as_ref()?.join("Documents");
        (folder.is_absolute() && folder != usual).then_some(folder)
    }

    /// The existing files that match an agent's file, sorted.
    pub(crate) fn existing_paths(&self, file: &ConfigFile) -> Vec<PathBuf> {
        let Some(path) = self.config_path(file) else {
            return Vec::new();
        };
        let name = path.file_name().unwrap_or_default();
        if !name.to_string_lossy().contains('*') {
            return path.is_file().then_some(path).into_iter().collect();
        }
        let folder = path.parent().and_then(|folder| folder.read_dir().ok());
        let mut found: Vec<PathBuf> = folder
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .filter(|existing| matches_file_name(&path, existing) && existing.is_file())
            .collect();
        found.sort();
        found
    }

    /// Every program of that name on PATH, in order, each file once.
    pub fn programs_on_path(&self, name: &str) -> Vec<PathBuf> {
        let Some(path) = self.var(env::PATH.name) else {
            return Vec::new();
        };
        let mut names = vec![name.to_owned()];
        if cfg!(windows) {
            names = ["exe", "com", "cmd", "bat"]
                .map(|ending| format!("{name}.{ending}"))
                .to_vec();
        }
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut found = Vec::new();
        for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
            for file in names.iter().map(|name| folder.join(name)) {
                let real = real_path(&file);
                if is_executable_file(&file) && !seen.contains(&real) {
                    seen.push(real);
                    found.push(file);
                }
            }
        }
        found
    }

    /// Every program of that name on PATH that is not a file of the project.
    pub(crate) fn own_programs(&self, name: &str) -> Vec<PathBuf> {
        let mut programs = self.programs_on_path(name);
        programs.retain(|path| !self.is_in_project(path));
        programs
    }

    /// Whether a file is one of the project's, which its authors can change. A
    /// project that contains the home is the user's own.
    pub(crate) fn is_in_project(&self, path: &Path) -> bool {
        let root = real_path(&self.root);
        let home = self.home.as_deref().map(real_path);
        if home.is_some_and(|home| home.starts_with(&root)) {
            return false;
        }
        let folder = path.parent().map(real_path);
        folder.is_some_and(|folder| folder.starts_with(&root)) || real_path(path).starts_with(&root)
    }

    /// The file that a shell in `folder` starts for a bare name, by PATH, whose
    /// relative folders count.
    pub(crate) fn first_on_path(&self, name: &str, folder: &Path) -> Option<PathBuf> {
        let path = self.var(env::PATH.name)?;
        let name = if cfg!(windows) {
            format!("{name}.exe")
        } else {
            name.to_owned()
        };
        let mut files = std::env::split_paths(path).map(|part| folder.join(part).join(&name));
        files.find(|file| is_executable_file(file))
    }

    /// The file that an entry with a searched program starts.
    pub(crate) fn searched_program(&self) -> Option<PathBuf> {
        let kept = KeptProgram::new(self).searched();
        kept.or_else(|| self.first_on_path(PROGRAM_NAME, &self.root))
    }

    /// A path for people: relative to the project or the home.
    pub fn display_path(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(&self.root) {
            return rest.display().to_string();
        }
        let home = self.home.as_ref();
        match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}

/// A variable by its name, whose case does not matter on Windows.
fn lookup<'a>(env: &'a BTreeMap<String, OsString>, name: &str) -> Option<&'a OsString> {
    env.get(name).or_else(|| {
        let mut variables = env.iter().filter(|_| cfg!(windows));
        let found = variables.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    })
}

/// Whether two paths are equal, where a `*` in the name of `pattern` matches any text.
pub(crate) fn matches_file_name(pattern: &Path, path: &Path) -> bool {
    let expected = pattern.file_name().unwrap_or_default().to_string_lossy();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    pattern.parent() == path.parent()
        && match expected.split_once('*') {
            Some((start, end)) => name
                .strip_prefix(start)
                .is_some_and(|rest| rest.ends_with(end)),
            None => name == expected,
        }
}

/// The path with symbolic links resolved, or as it is if it does not exist.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    anyhook_util::paths::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a file can be executed, according to its mode.
pub(crate) fn is_executable_file(path: &Path) -> bool {
    let Ok(meta) = std::fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        meta.is_file() && meta.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    meta.is_file()
}
