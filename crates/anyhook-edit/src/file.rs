//! Files as a whole: read as text, replaced in one step, removed again.
//!
//! A reader sees the old file or the new one, never a part, whatever happens
//! to this process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::EditError;
use crate::patch::sha256;

/// Starts the name of every temporary file: hidden, without the ending of any
/// config file, so that nothing reads it as one.
const TEMP_PREFIX: &str = ".anyhook-tmp-";

/// Symbolic links that are followed before it counts as a circle.
const MAX_LINKS: usize = 40;

/// What went wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`{}` is not a regular file, so it was left alone", .0.display())]
    NotAFile(PathBuf),
    #[error("`{}` is there already and not ours, so it was left alone", .0.display())]
    NotOurs(PathBuf),
    #[error("`{}` is write-protected, so it was left alone; allow writing (chmod u+w) and try again", .0.display())]
    ReadOnly(PathBuf),
    #[error("`{}` is not UTF-8 text, so it was left alone", .0.display())]
    NotText(PathBuf),
    #[error("another process is editing `{}` and has not finished; try again when it is done", .0.display())]
    Busy(PathBuf),
    #[error("`{}`: {source}", path.display())]
    Edit { path: PathBuf, source: EditError },
    #[error("the record of the installation, `{}`, cannot be read: {message}", path.display())]
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

/// The moments of a write, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    FoldersMade,
    TempMade,
    HalfWritten,
    Written,
    ModeSet,
    Synced,
    Renamed,
    FolderSynced,
}

/// Told of every step before the next one begins. An error ends the write as a
/// failing disk would; tests use it to die at any moment.
pub type Watch<'w> = &'w mut dyn FnMut(&Path, Step) -> io::Result<()>;

/// The file behind any symbolic links. It need not exist, nor its folder.
pub fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    let mut real = std::path::absolute(path).map_err(FileError::io("find", path))?;
    for _ in 0..MAX_LINKS {
        let is_link = fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_symlink());
        if !is_link {
            return Ok(resolve_folder(&real));
        }
        let next = fs::read_link(&real).map_err(FileError::io("follow", &real))?;
        real = match real.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    Err(FileError::Io {
        action: "follow",
        path: path.to_owned(),
        source: io::Error::other("too many symbolic links"),
    })
}

/// Resolves the part of the folder that exists; the rest cannot hold links.
fn resolve_folder(path: &Path) -> PathBuf {
    for ancestor in path.ancestors().skip(1) {
        if let Ok(real) = fs::canonicalize(ancestor)
            && let Ok(rest) = path.strip_prefix(ancestor)
        {
            return real.join(rest);
        }
    }
    path.to_owned()
}

/// The text of a file, or nothing when there is no such file.
pub fn read_text(path: &Path) -> Result<Option<String>, FileError> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Err(FileError::NotAFile(path.to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io("read", path)(error)),
    }
    let bytes = fs::read(path).map_err(FileError::io("read", path))?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| FileError::NotText(path.to_owned()))
}

/// Replaces the content of a file in one step, and makes the file and its
/// folders when they are not there. Mode and, where the system allows, owner
/// stay. Returns the folders that were made, outermost first.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>, FileError> {
    write_watched(path, bytes, &mut |_, _| Ok(()))
}

/// As [`write_atomic`], with a witness.
pub fn write_watched(
    path: &Path,
    bytes: &[u8],
    watch: Watch<'_>,
) -> Result<Vec<PathBuf>, FileError> {
    write_as(path, bytes, false, watch)
}

/// As [`write_watched`]; a new file can be made one to run.
pub(crate) fn write_as(
    path: &Path,
    bytes: &[u8],
    executable: bool,
    watch: Watch<'_>,
) -> Result<Vec<PathBuf>, FileError> {
    let real = real_path(path)?;
    let old = match fs::metadata(&real) {
        Ok(meta) if !meta.is_file() => return Err(FileError::NotAFile(real)),
        Ok(meta) if meta.permissions().readonly() => return Err(FileError::ReadOnly(real)),
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(FileError::io("read", &real)(error)),
    };
    let made = missing_folders(&real);
    let mut attempt = Attempt {
        temp: None,
        made: made.clone(),
    };
    let mode = match (&old, executable) {
        // Private until the mode of the old file is set: settings may hold secrets.
        (Some(_), _) => 0o600,
        (None, false) => 0o666,
        (None, true) => 0o777,
    };
    replace(&real, old.as_ref(), mode, bytes, &mut attempt, watch)
        .map_err(FileError::io("write", &real))?;
    attempt.made.clear();
    Ok(made)
}

/// What has to go again when a write fails half-way.
struct Attempt {
    temp: Option<PathBuf>,
    made: Vec<PathBuf>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(temp) = &self.temp {
            let _gone_already = fs::remove_file(temp);
        }
        remove_folders(&self.made);
    }
}

fn replace(
    real: &Path,
    old: Option<&fs::Metadata>,
    mode: u32,
    bytes: &[u8],
    attempt: &mut Attempt,
    watch: Watch<'_>,
) -> io::Result<()> {
    let mut reached = |step| watch(real, step);
    let folder = real.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    reached(Step::FoldersMade)?;
    let (mut file, temp) = create_temp(real, folder, mode)?;
    attempt.temp = Some(temp.clone());
    reached(Step::TempMade)?;
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    file.write_all(head)?;
    reached(Step::HalfWritten)?;
    file.write_all(tail)?;
    reached(Step::Written)?;
    if let Some(old) = old {
        keep_owner(&file, old);
        file.set_permissions(old.permissions())?;
    }
    reached(Step::ModeSet)?;
    file.sync_all()?;
    drop(file);
    reached(Step::Synced)?;
    fs::rename(&temp, real)?;
    attempt.temp = None;
    reached(Step::Renamed)?;
    sync_folder(folder);
    reached(Step::FolderSynced)
}

/// `mode` is what the process's umask is taken from, where the system has one.
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

/// The same for all temporary files of one target, and of no other.
fn temp_stem(real: &Path) -> String {
    let name = real.file_name().unwrap_or_default();
    let mut hash = sha256(name.as_encoded_bytes());
    hash.truncate(16);
    format!("{TEMP_PREFIX}{hash}-")
}

/// Removes what a process that died left beside `path`. Only for who holds the
/// lock of that file: otherwise another's write may be under way.
pub(crate) fn remove_stale(real: &Path) {
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

/// Removes a file that we made, and those of the folders that we made for it
/// that are empty now.
pub fn remove_created(path: &Path, folders: &[PathBuf]) -> Result<(), FileError> {
    let real = real_path(path)?;
    match fs::remove_file(&real) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(FileError::io("remove", &real)(error));
        }
        _ => {}
    }
    if let Some(folder) = real.parent() {
        sync_folder(folder);
    }
    remove_folders(folders);
    Ok(())
}

/// The folders that will have to be made for a file, outermost first.
pub(crate) fn missing_folders(real: &Path) -> Vec<PathBuf> {
    let folders = real.ancestors().skip(1);
    let missing = folders.take_while(|path| !path.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// A folder with something in it stays: the system refuses to remove it.
fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _may_be_in_use = fs::remove_dir(folder);
    }
}

/// The permission bits, where the system has them.
pub(crate) fn mode(path: &Path) -> Option<u32> {
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

/// Lets everybody run a file who may read it, where the system asks for that.
pub(crate) fn make_executable(path: &Path) -> Result<(), FileError> {
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

/// Only root can give files away; for others the owner is right already, or
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

/// Makes the new name last through a power cut. The content is safe already,
/// so a system that cannot do this is no reason to fail.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        let _best_effort = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}
