//! Where things are on this machine: the project, the home, our own folders,
//! the programs on PATH. A value, so that tests can make one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhook_agents::spec::ConfigFile;
use anyhook_run::discover::{self, Dirs};

/// The surroundings of one call.
#[derive(Debug, Clone)]
pub struct World {
    /// The folder that was asked about.
    pub cwd: PathBuf,
    /// Its project: the repository's root, else the nearest folder with `.anyhook`.
    pub root: PathBuf,
    pub home: Option<PathBuf>,
    pub dirs: Dirs,
    pub env: BTreeMap<String, OsString>,
}

impl World {
    pub fn from_env(cwd: PathBuf) -> Self {
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect();
        Self::new(cwd, env)
    }

    pub fn new(cwd: PathBuf, env: BTreeMap<String, OsString>) -> Self {
        let dirs = Dirs::from_lookup(|name| env.get(name).cloned());
        let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
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
    pub fn records(&self) -> PathBuf {
        self.dirs.state.join("install")
    }

    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.env.get(name).filter(|value| !value.is_empty())
    }

    /// The place of an agent's file; a `*` in its name stays.
    pub fn place(&self, file: &ConfigFile) -> Option<PathBuf> {
        self.expand(&file.path, file.home_env.as_deref())
    }

    /// A path of an agent's table, as it is on this machine.
    pub fn expand(&self, path: &str, home_env: Option<&str>) -> Option<PathBuf> {
        let Some(rest) = path.strip_prefix("~/") else {
            return Some(self.root.join(path));
        };
        if let Some(moved) = home_env.and_then(|name| self.var(name)) {
            let (_, rest) = rest.split_once('/')?;
            return Some(Path::new(moved).join(rest));
        }
        if let (Some(rest), Some(base)) =
            (rest.strip_prefix(".config/"), self.var("XDG_CONFIG_HOME"))
            && Path::new(base).is_absolute()
        {
            return Some(Path::new(base).join(rest));
        }
        Some(self.home.as_ref()?.join(rest))
    }

    /// The files that are there for an agent's file, `*` resolved, in order.
    pub fn present(&self, file: &ConfigFile) -> Vec<PathBuf> {
        let Some(path) = self.place(file) else {
            return Vec::new();
        };
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let Some((before, after)) = name.split_once('*') else {
            return path.is_file().then_some(path).into_iter().collect();
        };
        let entries = path
            .parent()
            .and_then(|folder| std::fs::read_dir(folder).ok());
        let mut found: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.len() >= before.len() + after.len()
                    && name.starts_with(before)
                    && name.ends_with(after)
                    && !name.starts_with('.')
            })
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
            .collect();
        found.sort();
        found
    }

    /// Every program of that name on PATH, in order, each file once.
    pub fn on_path(&self, name: &str) -> Vec<PathBuf> {
        let Some(path) = self.var("PATH") else {
            return Vec::new();
        };
        let mut names = vec![name.to_owned()];
        if cfg!(windows) {
            names.extend(["exe", "cmd", "bat"].map(|ending| format!("{name}.{ending}")));
        }
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut found = Vec::new();
        for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
            for file in names.iter().map(|name| folder.join(name)) {
                let real = std::fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
                if is_program(&file) && !seen.contains(&real) {
                    seen.push(real);
                    found.push(file);
                }
            }
        }
        found
    }

    /// A path as people write it: from the project or the home.
    pub fn shown(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(&self.root) {
            return rest.display().to_string();
        }
        match self
            .home
            .as_ref()
            .and_then(|home| path.strip_prefix(home).ok())
        {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}

/// Whether a file can be run, as far as its mode tells.
pub fn is_program(path: &Path) -> bool {
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
