//! The folders of anyhook's own files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhook_model::Scope;
use anyhook_util::env;
use anyhook_util::hash::PartsHash;
use anyhook_util::paths::normal_form;
use anyhook_util::system::OperatingSystem;

use super::files::{list_folder, listed_paths};
use super::{LoadProblem, MANIFEST_NAMES, canonical_path, is_projects_own};
use crate::config::account::Account;
use crate::config::owner::FileOwner;
use crate::config::policy::locks_env;

/// The folder of the consents in the state folder.
pub(crate) const TRUST_FOLDER: &str = "trust";

/// Where programs keep their configuration, in the home folder.
pub(super) const USUAL_CONFIG_BASE: &str = if cfg!(windows) {
    "AppData/Roaming"
} else {
    ".config"
};

/// Stands for a folder whose place is not known: nothing can be there.
const NO_FOLDER: &str = if cfg!(windows) {
    r"\\.\NUL\anyhook"
} else {
    "/dev/null/anyhook"
};

/// The folders of anyhook's own files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    pub config: PathBuf,
    pub state: PathBuf,
    pub managed: PathBuf,
    /// No project is searched above it.
    pub home: Option<PathBuf>,
    /// Folders that the environment names and that are not used.
    pub problems: Vec<LoadProblem>,
}

impl Dirs {
    /// By `ANYHOOK_*_DIR`, else by the conventions of the platform.
    pub fn from_env() -> Self {
        Self::from_lookup(env::by_name_os)
    }

    /// Of relative paths none counts: they would depend on the agent's folder, so
    /// that a repository could contain the user's configuration. On a locked
    /// installation the environment does not count at all.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let managed = platform_managed(&lookup);
        let is_locked = locks_env(&managed);
        let mut problems = Vec::new();
        let mut path = |variable: env::Variable| {
            let value = lookup(variable.name).filter(|value| !value.is_empty() && !is_locked);
            let path = normal_form(PathBuf::from(value?));
            if path.is_absolute() {
                return Some(path);
            }
            problems.push(LoadProblem {
                scope: Scope::User,
                message: format!("`{}` is not an absolute path", variable.name),
                path,
            });
            None
        };
        let mut home = None;
        if cfg!(windows) {
            // A POSIX shell may have set the other one, to something else.
            home = path(env::USERPROFILE);
        }
        let home = home.or_else(|| path(env::HOME));
        let home = home.or_else(|| Account::current().map(|account| account.home.clone()));
        let mut base = |variable: env::Variable, default: &str| {
            let base = path(variable).or_else(|| Some(home.as_ref()?.join(default)));
            base.map(|base| base.join("anyhook"))
        };
        let (config, state) = if cfg!(windows) {
            (
                base(env::APPDATA, USUAL_CONFIG_BASE),
                base(env::LOCALAPPDATA, "AppData/Local"),
            )
        } else {
            (
                base(env::XDG_CONFIG_HOME, USUAL_CONFIG_BASE),
                base(env::XDG_STATE_HOME, ".local/state"),
            )
        };
        let config = path(env::ANYHOOK_CONFIG_DIR).or(config);
        let state = path(env::ANYHOOK_STATE_DIR).or(state);
        let redirected = path(env::ANYHOOK_MANAGED_DIR);
        if config.is_none() || state.is_none() {
            problems.push(LoadProblem {
                scope: Scope::User,
                path: PathBuf::from("~"),
                message: format!(
                    "your home folder is not known: `{}` is not set, and you have no entry in the password database",
                    env::HOME.name
                ),
            });
        }
        let state = state.unwrap_or_else(|| PathBuf::from(NO_FOLDER));
        if let Ok(owner) = FileOwner::from_path(&state)
            && let Err(why) = owner.check_user(&state)
        {
            problems.push(LoadProblem {
                scope: Scope::User,
                message: format!("{why}; approvals and caches in it do not count"),
                path: state.clone(),
            });
        }
        Self {
            config: config.unwrap_or_else(|| PathBuf::from(NO_FOLDER)),
            state,
            managed: redirected.unwrap_or(managed),
            home,
            problems,
        }
    }

    /// Whether the configuration folder is part of one of these projects, by any of
    /// its names. A repository's files are not the user's, whatever the environment
    /// says; a home folder that is a repository is, and so is the usual configuration
    /// folder in it.
    pub(super) fn is_config_in(&self, projects: &[PathBuf]) -> bool {
        if projects.is_empty() {
            return false;
        }
        let real = canonical_path(&self.config).0;
        let mut projects = projects.iter();
        projects.any(|project| is_projects_own(&self.config, &real, project))
    }

    /// Equal for all processes that look for hooks in the same folders.
    pub fn digest(&self) -> String {
        let mut digest = PartsHash::default();
        for path in [Some(&self.config), Some(&self.managed), self.home.as_ref()] {
            let path = path.map(|path| canonical_path(path).0).unwrap_or_default();
            digest.add(path.as_os_str().as_encoded_bytes());
        }
        digest.finish()
    }

    /// Whether the administrator has hooks, or may have: in a folder that cannot be read.
    pub fn has_managed_manifest(&self) -> bool {
        let listing = list_folder(&self.managed);
        listing.map_or(true, |listing| {
            let mut manifests = listed_paths(&self.managed, &listing, &MANIFEST_NAMES);
            manifests.next().is_some()
        })
    }

    /// Whether approvals and caches in the state folder count: only the user can
    /// have written them.
    pub(crate) fn is_state_trusted(&self) -> bool {
        !self
            .problems
            .iter()
            .any(|problem| problem.path == self.state)
    }

    /// Why nothing can be written to the state folder, for the user. Creates it if
    /// it is missing.
    pub(crate) fn recording_problem(&self) -> Option<String> {
        let why = state_write_problem(&self.state)?;
        let state = self.state.display();
        Some(format!("events cannot be recorded in `{state}`: {why}"))
    }

    /// The state folder for approvals: one that is empty if another user can
    /// have written them.
    pub(crate) fn approvals_state(&self) -> &Path {
        if self.is_state_trusted() {
            &self.state
        } else {
            Path::new(NO_FOLDER)
        }
    }
}

#[cfg(unix)]
fn state_write_problem(state: &Path) -> Option<String> {
    use rustix::fs::{Access, access, statvfs};
    let volume = match statvfs(state) {
        Err(rustix::io::Errno::NOENT) => {
            return anyhook_util::fs::create_private_dir(state)
                .err()
                .map(|error| error.to_string());
        }
        Err(error) => return Some(error.to_string()),
        Ok(volume) => volume,
    };
    if volume.f_blocks > 0 && volume.f_bavail == 0 {
        return Some("the disk is full".to_owned());
    }
    let error = access(state, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(error.to_string())
}

#[cfg(not(unix))]
fn state_write_problem(_state: &Path) -> Option<String> {
    None
}

/// Whether the managed folder overrides the user's environment.
pub fn is_locked(lookup: impl Fn(&str) -> Option<OsString>) -> bool {
    locks_env(&platform_managed(&lookup))
}

/// The folder of this platform for the config of all users.
fn platform_managed(lookup: &impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let _ = lookup;
    #[cfg(windows)]
    {
        use known_folders::{KnownFolder, get_known_folder_path};
        // A project could set the variable, through an agent.
        let data = get_known_folder_path(KnownFolder::ProgramData);
        let data = data.or_else(|| lookup(env::PROGRAM_DATA.name).map(PathBuf::from));
        let data = data.filter(|data| data.is_absolute());
        let data = data.unwrap_or_else(|| PathBuf::from(r"C:\ProgramData"));
        normal_form(data).join("anyhook")
    }
    #[cfg(not(windows))]
    PathBuf::from(unix_managed_folder(OperatingSystem::CURRENT))
}

#[cfg_attr(
    windows,
    allow(dead_code, reason = "Windows itself names the folder there")
)]
pub(super) fn unix_managed_folder(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::MacOs => "/Library/Application Support/anyhook",
        OperatingSystem::Linux | OperatingSystem::Windows => "/etc/anyhook",
    }
}
