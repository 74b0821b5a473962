//! Which program the entries start: one that is still there tomorrow.
//!
//! An agent takes an entry that cannot start for approval, so an entry never
//! names a file that goes away with a build folder, a cache or a virtual
//! environment. Such a program is copied to a place of its own first
//! ([`crate::kept_program`]).

use std::path::{Path, PathBuf};

use anyhook_util::env;

use crate::command::{BridgeProgram, PROGRAM_NAME, program_in_entry};
use crate::error::InstallError;
use crate::kept_program::{KeptFile, KeptProgram};
use crate::machine::{Machine, is_executable_file, real_path};
use crate::target::Target;

/// How entries name the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramNaming {
    /// By its path on this machine.
    Absolute,
    /// `anyhook`, found on PATH.
    Name,
    /// Wherever it is found on the machine that runs the entry: for files that
    /// other people share.
    Searched,
}

/// The program that entries will start, and what has to be done first.
#[derive(Debug, Clone)]
pub struct ProgramPlan {
    pub program: BridgeProgram,
    /// The file that the entries start on this machine.
    pub path: PathBuf,
    /// Why the running program itself is not the one that entries start.
    pub why_copied: Option<&'static str>,
    keep: Option<KeptFile>,
    kept: KeptProgram,
}

impl ProgramPlan {
    /// Decides; writes nothing.
    pub fn new(
        machine: &Machine,
        naming: ProgramNaming,
        running: &Path,
    ) -> Result<Self, InstallError> {
        let running = without_deleted_mark(running);
        let kept = KeptProgram::new(machine);
        if naming == ProgramNaming::Name {
            return Self::by_name(machine, kept, &running);
        }
        let (lasting, why_copied) = match lasting_path(machine, &running) {
            Ok(path) => (Some(path), None),
            Err(why) => (None, Some(why)),
        };
        // A shell is needed to search.
        let is_searched = naming == ProgramNaming::Searched && cfg!(unix);
        let keep = match &lasting {
            None => Some(KeptFile::CopyOf(running)),
            // Entries of earlier installations may use what is kept.
            Some(path) if is_searched || kept.exists() => Some(KeptFile::LinkTo(path.clone())),
            Some(_) => None,
        };
        let path = match (&lasting, is_searched) {
            (Some(path), false) => path.clone(),
            _ => kept.path()?,
        };
        let program = if is_searched {
            BridgeProgram::Searched
        } else {
            BridgeProgram::Named(program_in_entry(&path))
        };
        Ok(Self {
            program,
            path,
            why_copied,
            keep,
            kept,
        })
    }

    fn by_name(machine: &Machine, kept: KeptProgram, running: &Path) -> Result<Self, InstallError> {
        let found = machine.first_on_path(PROGRAM_NAME, &machine.root);
        let own = [running.to_owned()].into_iter().chain(chosen_path(machine));
        let own: Vec<PathBuf> = own.map(|path| real_path(&path)).collect();
        match found {
            Some(path) if own.contains(&real_path(&path)) => Ok(Self {
                program: BridgeProgram::Named(PROGRAM_NAME.to_owned()),
                path,
                why_copied: None,
                keep: None,
                kept,
            }),
            found => Err(InstallError::NameIsNotThisProgram {
                found: found.map_or_else(
                    || "is not on PATH".to_owned(),
                    |path| format!("on PATH is `{}`, not this program", path.display()),
                ),
            }),
        }
    }

    /// Puts the program where the entries will look for it. To be called before
    /// they are written.
    pub fn apply(&self, machine: &Machine) -> Result<(), InstallError> {
        match &self.keep {
            Some(keep) => self.kept.write(machine, keep),
            None => Ok(()),
        }
    }

    /// Remembers that entries of this target need what is kept.
    pub fn register(&self, machine: &Machine, target: &Target) -> Result<(), InstallError> {
        match &self.keep {
            Some(_) => self.kept.register(machine, &target.path),
            None => Ok(()),
        }
    }
}

/// What the user or a package says this program's path is.
fn chosen_path(machine: &Machine) -> Option<PathBuf> {
    let path = PathBuf::from(machine.var(env::ANYHOOK_PROGRAM.name)?);
    (path.is_absolute() && is_executable_file(&path)).then_some(path)
}

/// A path of the running program that lasts, or why there is none.
///
/// The entry on PATH is preferred to the file behind it: package managers move
/// the file with each version.
fn lasting_path(machine: &Machine, running: &Path) -> Result<PathBuf, &'static str> {
    if let Some(path) = chosen_path(machine) {
        return Ok(path);
    }
    let real = real_path(running);
    let folders = machine.var(env::PATH.name).cloned().unwrap_or_default();
    let listed = std::env::split_paths(&folders)
        .map(|folder| {
            folder
                .join(PROGRAM_NAME)
                .with_extension(std::env::consts::EXE_EXTENSION)
        })
        .filter(|path| path.is_absolute() && is_executable_file(path) && real_path(path) == real)
        .find(|path| {
            let is_tool = is_managed_tool(&real) && passing_place(machine, path).is_none();
            is_tool
                || [path, &real]
                    .iter()
                    .all(|path| passing_place(machine, path).is_none())
        });
    if let Some(path) = listed {
        return Ok(path);
    }
    let places = [running, real.as_path()];
    let passing = places.iter().find_map(|path| passing_place(machine, path));
    match passing.or_else(|| versioned_place(&real)) {
        Some(why) => Err(why),
        None if is_executable_file(running) => Ok(running.to_owned()),
        None => Err("a file that is gone"),
    }
}

/// Linux marks the path of a program that was replaced while it ran as deleted.
fn without_deleted_mark(running: &Path) -> PathBuf {
    let text = running.to_string_lossy();
    text.strip_suffix(" (deleted)")
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .unwrap_or_else(|| running.to_owned())
}

/// The place of a file that may be gone tomorrow; `None` if it lasts.
fn passing_place(machine: &Machine, path: &Path) -> Option<&'static str> {
    let has_part = |name: &str| path.components().any(|part| part.as_os_str() == name);
    if has_part("node_modules") || has_part("_npx") {
        return Some("a folder of npm packages");
    }
    let mut folders = path.ancestors().skip(1);
    // Cargo marks its folder only if it has created it.
    let is_cargo_build = path.parent().is_some_and(|folder| {
        folder.join(".cargo-lock").is_file()
            || folder.join("deps").is_dir() && folder.join("build").is_dir()
    });
    if is_cargo_build || folders.any(|folder| folder.join("CACHEDIR.TAG").is_file()) {
        return Some("a build folder or a cache");
    }
    let environment = path.parent().and_then(Path::parent);
    if environment.is_some_and(|folder| {
        folder.join("pyvenv.cfg").is_file() || folder.join("conda-meta").is_dir()
    }) {
        return Some("a virtual environment");
    }
    let home = machine.home.as_deref().map(real_path);
    let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let caches = [
        machine.var(env::XDG_CACHE_HOME.name).map(PathBuf::from),
        below_home(".cache"),
        below_home(".npm"),
        below_home("Library/Caches"),
    ];
    let mut caches = caches.into_iter().flatten();
    if caches.any(|folder| path.starts_with(folder)) {
        return Some("a cache");
    }
    // A home may be below a temporary folder, in containers and tests.
    let is_at_home = home.is_some_and(|home| real_path(path).starts_with(home));
    let temporary = [std::env::temp_dir()]
        .into_iter()
        .chain(["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from))
        .map(|folder| real_path(&folder));
    if !is_at_home
        && temporary
            .into_iter()
            .any(|folder| real_path(path).starts_with(folder))
    {
        return Some("a temporary folder");
    }
    machine
        .is_in_project(path)
        .then_some("a folder of this project")
}

/// The environment of a program that a Python package manager installed for the
/// user, and keeps current behind a link on PATH.
fn is_managed_tool(real: &Path) -> bool {
    let text = real.to_string_lossy().replace('\\', "/");
    ["/pipx/venvs/", "/uv/tools/"]
        .iter()
        .any(|part| text.contains(part))
}

/// A folder that the next version replaces.
fn versioned_place(real: &Path) -> Option<&'static str> {
    let has_part = |name: &str| real.components().any(|part| part.as_os_str() == name);
    (has_part("Cellar") || real.starts_with("/nix/store"))
        .then_some("a folder that the next version replaces")
}
