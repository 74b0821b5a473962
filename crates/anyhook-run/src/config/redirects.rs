//! Variables that switch hooks off or hide the user's own files.
//!
//! A repository can set them: several agents read environment variables from a
//! project's settings. So anyhook tells the user, once per session.

use std::ffi::{OsStr, OsString};
use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;

use anyhook_util::env;
use anyhook_util::paths::canonicalize;

use crate::agent::own::AGENTS_FOLDER;
#[cfg(unix)]
use crate::config::account;
use crate::config::discover::{self, Dirs, is_config_name};

/// The variables that name the usual folders.
const CONFIG_BASE: env::Variable = if cfg!(windows) {
    env::APPDATA
} else {
    env::XDG_CONFIG_HOME
};
const STATE_BASE: env::Variable = if cfg!(windows) {
    env::LOCALAPPDATA
} else {
    env::XDG_STATE_HOME
};
const HOME: env::Variable = if cfg!(windows) {
    env::USERPROFILE
} else {
    env::HOME
};

/// The notice when all hooks are switched off.
pub(crate) const SWITCHED_OFF: &str = "switched off (`ANYHOOK=0`): no hook runs";

/// Variables that move a folder of anyhook, without the home.
const FOLDER_VARIABLES: [env::Variable; 5] = [
    env::ANYHOOK_CONFIG_DIR,
    env::ANYHOOK_STATE_DIR,
    env::ANYHOOK_MANAGED_DIR,
    env::XDG_CONFIG_HOME,
    env::XDG_STATE_HOME,
];

/// A notice for each variable whose folder hides one that has files of the user
/// or the administrator: in the home that the environment names, or in the one of the
/// user's account.
pub(crate) fn notices(dirs: &Dirs) -> Vec<String> {
    let mut notices = Vec::new();
    if FOLDER_VARIABLES
        .iter()
        .any(|variable| variable.os().is_some())
    {
        notices.extend(hidden_folders(dirs, env::HOME.os().as_deref()));
    }
    #[cfg(unix)]
    if let Some(home) = real_home() {
        notices.extend(hidden_folders(dirs, Some(home.as_os_str())));
    }
    #[cfg(windows)]
    notices.extend(hidden_known_folders(dirs));
    notices
}

/// The notices, if `home` is the user's.
fn hidden_folders(dirs: &Dirs, home: Option<&OsStr>) -> Vec<String> {
    let lookup = |name: &str| -> Option<OsString> {
        if name == env::HOME.name {
            return home.map(OsStr::to_owned);
        }
        let is_moving = FOLDER_VARIABLES
            .iter()
            .any(|variable| variable.name == name);
        (!is_moving).then(|| env::by_name_os(name)).flatten()
    };
    notices_of_hidden(dirs, &Dirs::from_lookup(lookup))
}

/// A notice for each folder in use that hides a usual one with files.
fn notices_of_hidden(dirs: &Dirs, usual: &Dirs) -> Vec<String> {
    let pairs = [
        (
            "configuration",
            &usual.config,
            &dirs.config,
            [env::ANYHOOK_CONFIG_DIR, CONFIG_BASE, HOME],
        ),
        (
            "state",
            &usual.state,
            &dirs.state,
            [env::ANYHOOK_STATE_DIR, STATE_BASE, HOME],
        ),
        (
            "managed",
            &usual.managed,
            &dirs.managed,
            [env::ANYHOOK_MANAGED_DIR; 3],
        ),
    ];
    let mut notices = Vec::new();
    for (what, usual, used, variables) in pairs {
        // The last question, asked of every folder, would cost a call 0.03 × `/bin/true`.
        if usual == used || !has_own_files(usual) || is_same_folder(usual, used) {
            continue;
        }
        let set = variables.iter().find(|variable| variable.os().is_some());
        let Some(variable) = set else { continue };
        notices.push(format!(
            "`{}` is set: the {what} folder is `{}`, and what is in `{}` does not count",
            variable.name,
            used.display(),
            usual.display()
        ));
    }
    notices
}

/// The user's home by the password database, if `HOME` is another folder.
#[cfg(unix)]
fn real_home() -> Option<PathBuf> {
    let home = PathBuf::from(env::HOME.os()?);
    let real = account::home_by_account(&home)?;
    (!is_same_folder(&real, &home)).then_some(real)
}

/// The notices for the folders that Windows itself names, whatever its variables say.
#[cfg(windows)]
fn hidden_known_folders(dirs: &Dirs) -> Vec<String> {
    use known_folders::{KnownFolder, get_known_folder_path};
    let lookup = |name: &str| -> Option<OsString> {
        let folder = match name {
            _ if name == CONFIG_BASE.name => KnownFolder::RoamingAppData,
            _ if name == STATE_BASE.name => KnownFolder::LocalAppData,
            _ if name == HOME.name => KnownFolder::Profile,
            _ if FOLDER_VARIABLES.iter().any(|it| it.name == name) => return None,
            _ => return env::by_name_os(name),
        };
        get_known_folder_path(folder).map(OsString::from)
    };
    notices_of_hidden(dirs, &Dirs::from_lookup(lookup))
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

/// Whether a folder has a manifest, a policy, settings, consents or tables of agents.
fn has_own_files(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    let others = [discover::TRUST_FOLDER, AGENTS_FOLDER];
    names.any(|name| is_config_name(&name) || others.iter().any(|other| name == *other))
}
