//! Variables that switch hooks off or hide the user's own files.
//!
//! A repository can set them: several agents read environment variables from a
//! project's settings. So the user is told, once per session.

use std::ffi::OsString;
use std::path::Path;

use anyhook_util::env;

use crate::config::discover::{self, Dirs, is_config_name};

/// The notice when all hooks are switched off.
pub(crate) const SWITCHED_OFF: &str = "switched off (`ANYHOOK=0`): no hook runs";

/// A notice for each variable whose folder hides one that has files of the user
/// or the administrator.
pub(crate) fn notices(dirs: &Dirs) -> Vec<String> {
    let mut notices = Vec::new();
    let moving = [
        env::ANYHOOK_CONFIG_DIR,
        env::ANYHOOK_STATE_DIR,
        env::ANYHOOK_MANAGED_DIR,
        env::XDG_CONFIG_HOME,
        env::XDG_STATE_HOME,
    ];
    if moving.iter().all(|variable| variable.os().is_none()) {
        return notices;
    }
    let is_moving = |name: &str| moving.iter().any(|variable| variable.name == name);
    let lookup = |name: &str| -> Option<OsString> {
        (!is_moving(name)).then(|| env::by_name_os(name)).flatten()
    };
    let usual = Dirs::from_lookup(lookup);
    let pairs = [
        (
            "configuration",
            &usual.config,
            &dirs.config,
            [env::ANYHOOK_CONFIG_DIR, env::XDG_CONFIG_HOME],
        ),
        (
            "state",
            &usual.state,
            &dirs.state,
            [env::ANYHOOK_STATE_DIR, env::XDG_STATE_HOME],
        ),
        (
            "managed",
            &usual.managed,
            &dirs.managed,
            [env::ANYHOOK_MANAGED_DIR; 2],
        ),
    ];
    for (what, usual, used, variables) in pairs {
        if usual == used || !has_own_files(usual) {
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

/// Whether a folder has a manifest, a policy, settings or consents.
fn has_own_files(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| is_config_name(&name) || name == discover::TRUST_FOLDER)
}
