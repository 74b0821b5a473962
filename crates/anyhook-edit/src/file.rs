//! Whole files: read as text, replaced atomically, removed.
//!
//! A reader sees the old file or the new one, never a part of it, even if this
//! process dies.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhook_util::hash::sha256;

use crate::error::EditError;

/// Prefix of every temporary file: hidden, and without the extension of any
/// config file, so that no program reads it as one.
const TEMP_PREFIX: &str = ".anyhook-tmp-";

/// The names or a value of a file's extended attributes, on Linux at most.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// How many symbolic links are followed before it counts as a loop.
const MAX_SYMLINKS: usize = 40;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("could not {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`{}` is not a regular file; it was not changed", .0.display())]
    NotAFile(PathBuf),
    #[error("`{}` already exists and was not written by anyhook; it was not changed", .0.display())]
    NotOurs(PathBuf),
    #[error("`{}` is read-only; make it writable (chmod u+w) and try again", .0.display())]
    ReadOnly(PathBuf),
    #[error("`{}` is not UTF-8 text; it was not changed", .0.display())]
    NotText(PathBuf),
    #[error("another process is editing `{}`; try again when it is done", .0.display())]
    Busy(PathBuf),
    #[error("`{}`: {source}", path.display())]
    Edit { path: PathBuf, source: EditError },
    #[error("could not read the installation record `{}`: {message}", path.display())]
    Log { path: PathBuf, message: String },
}

impl FileError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The steps of a write, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteStep {
    FoldersCreated,
    TempCreated,
    HalfWritten,
    Written,
    ModeSet,
    Synced,
    Renamed,
    FolderSynced,
}

/// Called after every step, before the next one begins. An error ends the write
/// like a failing disk; tests use it to die at any step.
pub type WriteObserver<'w> = &'w mut dyn FnMut(&Path, WriteStep) -> io::Result<()>;

/// The path with symbolic links resolved. Neither file nor folder need exist.
pub fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    let mut real = std::path::absolute(path).map_err(FileError::io("find", path))?;
    for _ in 0..MAX_SYMLINKS {
        let is_link = fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_symlink());
        if !is_link {
            return Ok(resolve_folder(&real));
        }
        let next = fs::read_link(&real).map_err(FileError::io("follow", &real))?;
        real.pop();
        real.push(next);
    }
    let error = io::Error::other("too many symbolic links");
    Err(FileError::io("follow", path)(error))
}

/// Resolves the part of the folder that exists; the rest cannot contain links.
fn resolve_folder(path: &Path) -> PathBuf {
    for ancestor in path.ancestors().skip(1) {
        if let Ok(real) = anyhook_util::paths::canonicalize(ancestor)
            && let Ok(rest) = path.strip_prefix(ancestor)
        {
            return real.join(rest);
        }
    }
    path.to_owned()
}

/// The text of a file, or `None` if it does not exist.
pub fn read_text(path: &Path) -> Result<Option<String>, FileError> {
    if regular_file(path)?.is_none() {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(FileError::io("read", path))?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| FileError::NotText(path.to_owned()))
}

/// The metadata of a file, or `None` if it does not exist.
fn regular_file(path: &Path) -> Result<Option<fs::Metadata>, FileError> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err(FileError::NotAFile(path.to_owned())),
        Ok(meta) => Ok(Some(meta)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::io("read", path)(error)),
    }
}

/// Replaces the content of a file atomically, and creates the file and its
/// folders if they are missing. Keeps the mode and, if permitted, the owner.
/// Returns the folders that were created, outermost first.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
    write_observed(path, bytes, &mut |_, _| Ok(()))
}

/// As [`write_atomic`], with an observer of every step.
pub fn write_observed(
    path: &Path,
    bytes: &[u8],
    observer: WriteObserver<'_>,
) -> Result<Vec<PathBuf>, FileError> {
    write_with_permissions(path, bytes, false, observer)
}

/// As [`write_observed`]; a new file can be made executable.
pub(crate) fn write_with_permissions(
    path: &Path,
    bytes: &[u8],
    executable: bool,
    observer: WriteObserver<'_>,
) -> Result<Vec<PathBuf>, FileError> {
    let real = real_path(path)?;
    let old = regular_file(&real)?;
    let is_read_only = |old: &fs::Metadata| old.permissions().readonly();
    if old.as_ref().is_some_and(is_read_only) {
        return Err(FileError::ReadOnly(real));
    }
    let created = missing_folders(&real);
    let mut attempt = UnfinishedWrite {
        temp: None,
        created: created.clone(),
    };
    let mode = match (&old, executable) {
        // Private until the mode of the old file is set: settings may contain secrets.
        (Some(_), _) => 0o600,
        (None, false) => 0o666,
        (None, true) => 0o777,
    };
    replace(&real, old.as_ref(), mode, bytes, &mut attempt, observer)
        .map_err(FileError::io("write", &real))?;
    attempt.created.clear();
    Ok(created)
}

/// What to remove if a write fails half-way.
struct UnfinishedWrite {
    temp: Option<PathBuf>,
    created: Vec<PathBuf>,
}

impl Drop for UnfinishedWrite {
    fn drop(&mut self) {
        if let Some(temp) = &self.temp {
            let _gone_already = fs::remove_file(temp);
        }
        remove_folders(&self.created);
    }
}

fn replace(
    real: &Path,
    old: Option<&fs::Metadata>,
    mode: u32,
    bytes: &[u8],
    attempt: &mut UnfinishedWrite,
    observer: WriteObserver<'_>,
) -> io::Result<()> {
    let mut reached = |step| observer(real, step);
    let folder = real.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    reached(WriteStep::FoldersCreated)?;
    let (mut file, temp) = create_temp(real, folder, mode)?;
    attempt.temp = Some(temp.clone());
    reached(WriteStep::TempCreated)?;
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    file.write_all(head)?;
    reached(WriteStep::HalfWritten)?;
    file.write_all(tail)?;
    reached(WriteStep::Written)?;
    if let Some(old) = old {
        keep_owner(&file, old);
        keep_extended_attributes(&file, real);
        file.set_permissions(old.permissions())?;
    }
    reached(WriteStep::ModeSet)?;
    file.sync_all()?;
    drop(file);
    reached(WriteStep::Synced)?;
    anyhook_util::fs::rename(&temp, real)?;
    attempt.temp = None;
    reached(WriteStep::Renamed)?;
    sync_folder(folder);
    reached(WriteStep::FolderSynced)
}

/// On Unix, the file gets `mode` without the bits of the process's umask.
fn create_temp(real: &Path, folder: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(mode);
    }
    #[cfg(not(unix))]
    let _: u32 = mode;
    let stem = format!("{}{}", temp_stem(real), std::process::id());
    for attempt in 0_u32.. {
        let temp = folder.join(format!("{stem}-{attempt}"));
        match options.open(&temp) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
            opened => return opened.map(|file| (file, temp)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Common to all temporary files of one target, and different for every target.
fn temp_stem(real: &Path) -> String {
    let name = real.file_name().unwrap_or_default();
    let mut hash = sha256(name.as_encoded_bytes());
    hash.truncate(16);
    format!("{TEMP_PREFIX}{hash}-")
}

/// Removes the temporary files of a process that died. The caller must hold the
/// lock of the file: otherwise another process may be writing it.
pub(crate) fn remove_stale_temp_files(real: &Path) {
    let stem = temp_stem(real);
    let Some(entries) = real.parent().and_then(|folder| fs::read_dir(folder).ok()) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&stem) {
            let _gone_already = fs::remove_file(entry.path());
        }
    }
}

/// Removes a file that we created, and the folders created for it that are
/// empty now.
pub fn remove_created(path: &Path, folders: &[PathBuf]) -> Result<(), FileError> {
    let real = real_path(path)?;
    remove_if_exists(&real)?;
    if let Some(folder) = real.parent() {
        sync_folder(folder);
    }
    remove_folders(folders);
    Ok(())
}

pub(crate) fn remove_if_exists(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// The folders that must be created for a file, outermost first.
pub(crate) fn missing_folders(real: &Path) -> Vec<PathBuf> {
    let folders = real.ancestors().skip(1);
    let missing = folders.take_while(|path| !path.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// A folder that is not empty stays: the system refuses to remove it.
fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _may_be_in_use = fs::remove_dir(folder);
    }
}

/// How many names a file has, on Unix. Replacing it changes only one of them.
pub fn hard_link_count(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(path).ok().map(|meta| meta.nlink())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// The permission bits, on Unix.
pub(crate) fn permission_bits(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = fs::metadata(path).ok()?;
        Some(meta.permissions().mode() & 0o7777)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Makes a file executable for everyone who may read it, on Unix.
pub fn make_executable(path: &Path) -> Result<(), FileError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = fs::metadata(path).map_err(FileError::io("read", path))?;
        let mode = meta.permissions().mode();
        let wanted = mode | ((mode & 0o444) >> 2);
        if wanted != mode {
            fs::set_permissions(path, fs::Permissions::from_mode(wanted))
                .map_err(FileError::io("make executable", path))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Only root can change the owner; for other users it is already right or
/// cannot be kept.
#[cfg(unix)]
fn keep_owner(file: &File, old: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let same = file
        .metadata()
        .is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()));
    if !same && fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        let _not_permitted = fchown(file, None, Some(old.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _old: &fs::Metadata) {}

/// Labels and the like that users and tools have attached to the file. Those of
/// the system, such as security labels, may be refused; the new file has its own.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn keep_extended_attributes(file: &File, old: &Path) {
    use rustix::fs::{XattrFlags, fsetxattr, getxattr, listxattr};
    let mut names = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    let Ok(length) = listxattr(old, &mut *names) else {
        return;
    };
    names.truncate(length);
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let mut value = vec![0_u8; MAX_ATTRIBUTE_BYTES];
        if let Ok(length) = getxattr(old, name, &mut *value) {
            let value = value.get(..length).unwrap_or_default();
            let _not_permitted = fsetxattr(file, name, value, XattrFlags::empty());
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn keep_extended_attributes(_file: &File, _old: &Path) {}

/// Makes the rename survive a power failure. The content is already safe, so
/// failing to do this is not an error.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        let _best_effort = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    #[test]
    fn extended_attributes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, "{}").unwrap();
        if setxattr(&path, "user.label", b"mine", XattrFlags::empty()).is_err() {
            // This file system has none.
            return;
        }
        write_atomic(&path, b"{ }").unwrap();
        let mut value = [0_u8; 8];
        let length = getxattr(&path, "user.label", &mut value).unwrap();
        assert_eq!(&value[..length], b"mine");
    }
}
