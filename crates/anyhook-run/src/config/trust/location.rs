//! Trust by location: files of the user and the administrator that only their
//! owner or root can have written.

use std::io;
use std::path::Path;

use anyhook_model::{Hook, Scope};

use super::Distrust;
use super::listing::{SYSTEM_FOLDERS, first_value, variables};
use crate::config::discover::ConfigSource;
use crate::config::manifest::{command, working_dir};
use crate::config::owner::FileOwner;
use crate::run::exec::command::CommandContext;
use crate::run::exec::executed_files::executed_files;
use crate::run::guard::GuardCommand;

/// Checks that only its owner can have written a user's or managed file: the user
/// or root, of a managed file the owner of its folder or root.
pub fn by_location(source: &ConfigSource) -> Result<(), Distrust> {
    let location = Location::new(source.scope, source.folder())?;
    location.check(&source.path, source.owner)
}

/// The same for the files that a user's or managed hook executes, and for their
/// folders.
pub(in crate::config) fn by_script_location(
    hook: &Hook,
    scope: Scope,
    root: &Path,
    folder: &Path,
) -> Result<(), Distrust> {
    let Some(command) = command(&hook.handler) else {
        return Ok(());
    };
    let variables = variables(hook, root, folder);
    let line = command.to_line(|name| first_value(&variables, name));
    let mut files = executed_files(&line, folder, &variables);
    if let Some(guard) = GuardCommand::from_command(command) {
        let context = CommandContext {
            scope,
            root,
            folder,
            cwd: &working_dir(&hook.handler, root),
        };
        let rules = guard.files(context).into_iter();
        files.extend(rules.filter(|path| path.is_file()));
    }
    let is_of_system = |file: &Path| SYSTEM_FOLDERS.iter().any(|system| file.starts_with(system));
    for file in files.iter().filter(|file| !is_of_system(file)) {
        by_file_location(scope, folder, file)?;
    }
    Ok(())
}

/// The same for one file and its folder; `folder` is the user's or the managed one.
pub(crate) fn by_file_location(scope: Scope, folder: &Path, file: &Path) -> Result<(), Distrust> {
    // Whoever can replace a link's target can replace the file.
    let real = anyhook_util::paths::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let location = Location::new(scope, folder)?;
    for path in [Some(real.as_path()), real.parent()].into_iter().flatten() {
        let owner = FileOwner::from_path(path);
        let owner = owner.map_err(|error| location_error(path, &error))?;
        location.check(path, owner)?;
    }
    Ok(())
}

/// Whose files count in a scope.
struct Location {
    /// The owner of the managed folder.
    managed: Option<FileOwner>,
}

impl Location {
    /// `folder` is the one of the manifest, which must be the user's or root's.
    fn new(scope: Scope, folder: &Path) -> Result<Self, Distrust> {
        let owner = FileOwner::from_path(folder).map_err(|error| location_error(folder, &error))?;
        owner.check_user(folder).map_err(Distrust::Location)?;
        Ok(Self {
            managed: (scope == Scope::Managed).then_some(owner),
        })
    }

    fn check(&self, path: &Path, owner: FileOwner) -> Result<(), Distrust> {
        let checked = match self.managed {
            Some(folder) => owner.check_managed(folder, path),
            None => owner.check_user(path),
        };
        checked.map_err(Distrust::Location)
    }
}

fn location_error(path: &Path, error: &io::Error) -> Distrust {
    Distrust::Location(format!("`{}`: {error}", path.display()))
}
