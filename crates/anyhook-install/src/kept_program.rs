//! The place where `install` keeps the program for entries that could not name it
//! otherwise: a copy if it runs from a place that does not last, a link if it does.
//!
//! A list beside it names the config files whose entries need it. The last
//! `uninstall` removes both.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_edit::{FileLock, read_text, write_atomic};
use anyhook_util::env;

use crate::command::PROGRAM_NAME;
use crate::detect::program_version;
use crate::error::InstallError;
use crate::machine::{Machine, is_executable_file, real_path};

/// Below the folder for the user's data.
const FOLDER: &str = "anyhook/bin";
/// Where the entries of shared files look, which do not know the variables of
/// whoever installed them.
const SEARCHED_FOLDER: &str = ".local/share/anyhook/bin";
const LIST_NAME: &str = "used-by";
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeptFile {
    CopyOf(PathBuf),
    LinkTo(PathBuf),
}

/// The places on one machine; `None` if no home folder is known.
#[derive(Debug, Clone)]
pub(crate) struct KeptProgram {
    folder: Option<PathBuf>,
    /// Only where it is another one.
    searched_folder: Option<PathBuf>,
}

impl KeptProgram {
    pub(crate) fn new(machine: &Machine) -> Self {
        let home = machine.home.as_deref();
        let (variable, usual) = if cfg!(windows) {
            (env::LOCALAPPDATA, "AppData/Local")
        } else {
            (env::XDG_DATA_HOME, ".local/share")
        };
        let base = machine.var(variable.name).map(PathBuf::from);
        let base = base.filter(|base| base.is_absolute());
        let base = base.or_else(|| Some(home?.join(usual)));
        let folder = base.map(|base| base.join(FOLDER));
        let searched = home.map(|home| home.join(SEARCHED_FOLDER));
        Self {
            searched_folder: searched.filter(|other| cfg!(unix) && folder.as_ref() != Some(other)),
            folder,
        }
    }

    /// The file that entries start.
    pub(crate) fn path(&self) -> Result<PathBuf, InstallError> {
        let folder = self.folder.as_deref().ok_or(InstallError::NoHome)?;
        Ok(program_in(folder))
    }

    pub(crate) fn exists(&self) -> bool {
        self.path()
            .is_ok_and(|path| path.symlink_metadata().is_ok())
    }

    /// Every place in which an entry may look, where a program is.
    pub(crate) fn programs(&self) -> Vec<PathBuf> {
        let folders = [&self.searched_folder, &self.folder];
        let programs = folders.into_iter().flatten().map(|one| program_in(one));
        programs.filter(|path| is_executable_file(path)).collect()
    }

    /// The program that an entry with a searched program starts from here.
    pub(crate) fn searched(&self) -> Option<PathBuf> {
        let folder = self.searched_folder.as_ref().or(self.folder.as_ref())?;
        Some(program_in(folder)).filter(|path| is_executable_file(path))
    }

    /// A link to a program that is gone.
    pub(crate) fn broken_link(&self) -> Option<PathBuf> {
        let path = self.path().ok()?;
        (path.symlink_metadata().is_ok() && !path.exists()).then_some(path)
    }

    pub(crate) fn write(&self, machine: &Machine, file: &KeptFile) -> Result<(), InstallError> {
        let path = self.path()?;
        let _lock = self.lock(machine)?;
        let mut is_changed = put(&path, file).map_err(failed(&path))?;
        if let Some(folder) = &self.searched_folder {
            let searched = program_in(folder);
            let link = KeptFile::LinkTo(path.clone());
            is_changed |= put(&searched, &link).map_err(failed(&searched))?;
        }
        // On a file system that runs no programs, every entry would be dead.
        if is_changed && program_version(machine, &path).is_none() {
            return Err(InstallError::KeptProgram {
                path,
                why: "it does not start there".to_owned(),
            });
        }
        Ok(())
    }

    /// Adds a config file to those that need the program.
    pub(crate) fn register(&self, machine: &Machine, target: &Path) -> Result<(), InstallError> {
        let list = self.list()?;
        let _lock = self.lock(machine)?;
        let mut users = read_users(&list);
        let target = real_path(target);
        if !users.contains(&target) {
            users.push(target);
            write_users(&list, &users)?;
        }
        Ok(())
    }

    /// Removes the program if no config file needs it any more; returns its path.
    pub(crate) fn remove_unless_used(
        &self,
        machine: &Machine,
    ) -> Result<Option<PathBuf>, InstallError> {
        let (path, list) = (self.path()?, self.list()?);
        // Whoever put a program here without the list keeps it.
        if !list.is_file() {
            return Ok(None);
        }
        let _lock = self.lock(machine)?;
        let mut users = read_users(&list);
        users.retain(|target| needs_kept_program(target));
        if !users.is_empty() {
            write_users(&list, &users)?;
            return Ok(None);
        }
        let searched = self.searched_folder.as_deref().map(program_in);
        for file in searched.iter().chain([&path, &list]) {
            match fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(file)(error));
                }
                _ => {}
            }
            remove_empty_folders(machine, file);
        }
        Ok(Some(path))
    }

    fn list(&self) -> Result<PathBuf, InstallError> {
        Ok(self.path()?.with_file_name(LIST_NAME))
    }

    fn lock(&self, machine: &Machine) -> Result<FileLock, InstallError> {
        let list = self.list()?;
        Ok(FileLock::acquire(
            &machine.records_dir(),
            &list,
            LOCK_TIMEOUT,
        )?)
    }
}

/// Removes the folders above a file that are empty now, up to the home folder.
fn remove_empty_folders(machine: &Machine, file: &Path) {
    let home = machine.home.as_deref();
    let is_below_home =
        |folder: &Path| home.is_some_and(|home| folder.starts_with(home) && folder != home);
    for (depth, folder) in file.ancestors().skip(1).enumerate() {
        // The first two are anyhook's own.
        if (depth > 1 && !is_below_home(folder)) || fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

fn program_in(folder: &Path) -> PathBuf {
    folder
        .join(PROGRAM_NAME)
        .with_extension(std::env::consts::EXE_EXTENSION)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> InstallError {
    let path = path.to_owned();
    move |error| InstallError::KeptProgram {
        path,
        why: error.to_string(),
    }
}

/// Writes the file beside its place and renames it, so that an agent always finds
/// a whole one. Returns whether anything had to be done.
fn put(path: &Path, file: &KeptFile) -> std::io::Result<bool> {
    let (KeptFile::CopyOf(source) | KeptFile::LinkTo(source)) = file;
    let is_copy = matches!(file, KeptFile::CopyOf(_)) || cfg!(not(unix));
    let is_current = if is_copy {
        let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        is_file && is_executable_file(path) && has_same_content(path, source)
    } else {
        // Also when the program that runs is the one that is kept.
        real_path(path) == real_path(source) && is_executable_file(path)
    };
    if is_current {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let draft = folder.join(format!(".{PROGRAM_NAME}.{}", std::process::id()));
    let _leftover = fs::remove_file(&draft);
    let written = if is_copy {
        fs::copy(source, &draft).and_then(|_| {
            anyhook_edit::make_executable(&draft).map_err(std::io::Error::other)?;
            // Windows flushes only what is open for writing.
            let draft = fs::OpenOptions::new().write(true).open(&draft)?;
            draft.sync_all()
        })
    } else {
        link(source, &draft)
    };
    let written = written.and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _best_effort = fs::remove_file(&draft);
    }
    written.map(|()| true)
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(_to: &Path, _at: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Whether two programs are the same, byte for byte.
pub(crate) fn has_same_content(a: &Path, b: &Path) -> bool {
    let size = |path: &Path| fs::metadata(path).ok().map(|meta| meta.len());
    if size(a).is_none() || size(a) != size(b) {
        return false;
    }
    let (Ok(a), Ok(b)) = (fs::File::open(a), fs::File::open(b)) else {
        return false;
    };
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (Ok(left), Ok(right)) = (a.fill_buf(), b.fill_buf()) else {
            return false;
        };
        let length = left.len().min(right.len());
        if left.get(..length) != right.get(..length) {
            return false;
        }
        if length == 0 {
            return left.len() == right.len();
        }
        a.consume(length);
        b.consume(length);
    }
}

fn read_users(list: &Path) -> Vec<PathBuf> {
    let text = read_text(list).ok().flatten().unwrap_or_default();
    text.lines().map(PathBuf::from).collect()
}

fn write_users(list: &Path, users: &[PathBuf]) -> Result<(), InstallError> {
    let lines: Vec<_> = users.iter().map(|path| path.to_string_lossy()).collect();
    write_atomic(list, lines.join("\n").as_bytes())?;
    Ok(())
}

/// Whether a config file, or one in a folder of scripts, still has an entry that
/// names the kept program. A file that cannot be read may have one.
fn needs_kept_program(target: &Path) -> bool {
    let mentions = |path: &Path| match read_text(path) {
        Ok(text) => text.is_some_and(|text| {
            let text = text.replace('\\', "/").replace("//", "/");
            text.contains(FOLDER) && text.contains("run")
        }),
        Err(_) => true,
    };
    match fs::read_dir(target) {
        Ok(entries) => entries.flatten().any(|entry| mentions(&entry.path())),
        Err(_) => mentions(target),
    }
}

/// Removes the kept program if no entry on this machine needs it any more.
pub fn remove_unused(machine: &Machine) -> Result<Option<PathBuf>, InstallError> {
    let kept = KeptProgram::new(machine);
    if kept.folder.is_none() {
        return Ok(None);
    }
    kept.remove_unless_used(machine)
}
