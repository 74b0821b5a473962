//! Files that only the user can read, replaced as a whole.
//!
//! Config files of agents are edited by `anyhook-edit`, which also keeps their
//! mode and owner; this module is for anyhook's own state.

#[cfg(windows)]
mod windows;

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// Creates a folder and its missing parents with mode 0700. A file in its place
/// is `NotADirectory`: "already exists" would read as if the folder were there.
pub fn create_private_dir(folder: &Path) -> io::Result<()> {
    let created = private_dir_builder().recursive(true).create(folder);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::new(io::ErrorKind::NotADirectory, "a file is in its place")
        }
        _ => error,
    })
}

/// Creates folders with mode 0700; by default it fails if the folder exists.
pub fn private_dir_builder() -> DirBuilder {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has a mode to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Options that create files with mode 0600.
pub fn private_file_options() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has a mode to set"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags(never_block());
    }
    options
}

/// Opening a pipe in a file's place does not wait for its other end, and a
/// terminal in its place does not become the controlling one. Regular files
/// ignore both.
#[cfg(unix)]
fn never_block() -> i32 {
    use rustix::fs::OFlags;
    (OFlags::NONBLOCK | OFlags::NOCTTY)
        .bits()
        .try_into()
        .unwrap_or_default()
}

/// Opens a regular file to read it. Anything else is an error at once: a pipe
/// or a device in a file's place must not stop the reader. Checked after the
/// file is opened, because a path can be replaced at any time.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, never_block());
    let is_folder = || io::Error::other("it is a folder, not a file");
    // Windows does not open folders, and says "access denied".
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if cfg!(windows) && path.is_dir() => is_folder(),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok((file, metadata)),
        (_, true) => Err(is_folder()),
        _ => Err(io::Error::other("it is not a file")),
    }
}

/// Opens a file; creates its folder, privately, only if opening fails for the
/// lack of it, because the folder nearly always exists.
pub fn open_in_private_dir(options: &OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path).or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        create_private_dir(path.parent().ok_or(error)?)?;
        options.open(path)
    })
}

/// Replaces a private file as a whole: a reader sees the old or the new content.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    write_and_rename(path, content, false)
}

/// Like [`replace`], and the new content survives a power cut.
pub fn replace_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    write_and_rename(path, content, true)
}

fn write_and_rename(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let writer = (std::process::id(), std::thread::current().id());
    let draft = folder.join(format!(".{name}.{writer:?}"));
    let mut options = private_file_options();
    options.write(true).create(true).truncate(true);
    let result = open_in_private_dir(&options, &draft).and_then(|mut file| {
        file.write_all(content)?;
        if sync {
            file.sync_all()?;
        }
        drop(file);
        rename(&draft, path)
    });
    if result.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    result
}

/// Opens what a user has named on a command line: a file, or a pipe
/// (`<(command)`) that something writes to.
pub fn open_named(path: &Path) -> io::Result<File> {
    /// How long a pipe may wait for its writer.
    const WRITER_TIMEOUT: Duration = Duration::from_secs(2);
    if let Ok((file, _)) = open_regular(path) {
        return Ok(file);
    }
    let (sender, opened) = std::sync::mpsc::channel();
    let path = path.to_owned();
    // Opening cannot be interrupted, so the thread is left behind.
    std::thread::Builder::new().spawn(move || sender.send(File::open(path)))?;
    let opened = opened.recv_timeout(WRITER_TIMEOUT);
    opened.unwrap_or_else(|_| Err(io::Error::other("nothing writes to this pipe")))
}

/// The text of a regular file of at most `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    read_text_and_metadata(path, limit).map(|(text, _)| text)
}

/// The text of a regular file of at most `limit` bytes, and the metadata of the
/// very file that was read.
pub fn read_text_and_metadata(path: &Path, limit: u64) -> io::Result<(String, Metadata)> {
    let (bytes, metadata) = read_bytes_and_metadata(path, limit)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))?;
    Ok((text, metadata))
}

/// The content of a regular file of at most `limit` bytes.
pub fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_bytes_and_metadata(path, limit).map(|(bytes, _)| bytes)
}

/// The content of a regular file of at most `limit` bytes, and the metadata of the
/// very file that was read.
pub fn read_bytes_and_metadata(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, metadata) = open_regular(path)?;
    let too_large = || {
        let limit = limit / (1024 * 1024);
        io::Error::other(format!("it is larger than {limit} MiB"))
    };
    if metadata.len() > limit {
        return Err(too_large());
    }
    // One byte more, so that the end is found without growing the buffer.
    let size = usize::try_from(metadata.len()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(size.saturating_add(1));
    // It may grow while it is read, and some files do not know their size.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok((bytes, metadata))
}

/// Renames a file over another one. On Windows a program that has just opened
/// the other one, such as a virus scanner, prevents that for a moment.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    const MAX_ATTEMPTS: u32 = 40;
    const RETRY_DELAY: Duration = Duration::from_millis(25);
    let is_transient = |error: &io::Error| {
        // Access denied, sharing violation, lock violation.
        cfg!(windows) && matches!(error.raw_os_error(), Some(5 | 32 | 33)) && !to.is_dir()
    };
    let mut result = std::fs::rename(from, to);
    for _ in 0..MAX_ATTEMPTS {
        match &result {
            Err(error) if is_transient(error) => std::thread::sleep(RETRY_DELAY),
            _ => break,
        }
        result = std::fs::rename(from, to);
    }
    result
}

/// Locks a file against other processes that do the same; released when the file
/// is closed. Never waits, and nothing is kept from reading or writing the file.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    #[cfg(windows)]
    return windows::try_lock(file);
    #[cfg(not(windows))]
    #[expect(clippy::disallowed_methods, reason = "the one place that may")]
    file.try_lock()
}

/// The volume of an open file and its number there, whatever its name is now.
#[cfg(unix)]
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let data = file.metadata()?;
    Ok((data.dev(), data.ino()))
}

/// The volume of an open file and its number there, whatever its name is now.
#[cfg(windows)]
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    windows::identity(file)
}

/// Whether an open file is the one that `path` names now.
pub fn is_current(open: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let named = std::fs::metadata(path).map(|named| (named.dev(), named.ino()));
        identity(open).is_ok_and(|open| named.is_ok_and(|named| named == open))
    }
    #[cfg(windows)]
    {
        let named = File::open(path).and_then(|named| identity(&named));
        identity(open).is_ok_and(|open| named.is_ok_and(|named| named == open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_replaced_file_and_its_folder_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/state.json");
        for content in ["one", "two"] {
            replace(&path, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        replace_durably(&path, b"three").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
        let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "no draft is left");
        #[cfg(unix)]
        {
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().unwrap()), 0o700);
            assert_eq!(mode(&dir.path().join("a")), 0o700);
        }
    }

    #[test]
    fn a_failed_replacement_leaves_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("folder");
        std::fs::create_dir_all(target.join("full")).unwrap();
        assert!(replace(&target, b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read_text(&path, 3).unwrap(), "abc");
        assert!(read_text(&path, 2).is_err());
        assert!(read_text(dir.path(), 3).is_err());
        #[cfg(unix)]
        {
            // Opening it would block: no process writes to it.
            let fifo = dir.path().join("fifo");
            let status = std::process::Command::new("mkfifo").arg(&fifo).status();
            assert!(status.unwrap().success());
            assert!(read_text(&fifo, 3).is_err());
            for (target, link) in [("nowhere", "dangling"), ("loop", "loop")] {
                let link = dir.path().join(link);
                std::os::unix::fs::symlink(dir.path().join(target), &link).unwrap();
                assert!(read_text(&link, 3).is_err());
            }
            let socket = dir.path().join("socket");
            let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            assert!(read_text(&socket, 3).is_err());
            assert!(read_text(Path::new("/dev/zero"), 3).is_err());
            // Writing into a pipe without a reader would block too.
            assert!(private_file_options().append(true).open(&fifo).is_err());
        }
    }

    #[test]
    fn a_replaced_file_is_not_current() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        replace(&path, b"1").unwrap();
        let open = File::open(&path).unwrap();
        assert!(is_current(&open, &path));
        replace(&path, b"2").unwrap();
        assert!(!is_current(&open, &path));
    }

    #[test]
    fn a_locked_file_can_be_read_and_written_by_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        replace(&path, b"1").unwrap();
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).append(true).open(&path).unwrap()
        };
        let (owner, mut other) = (open(), open());
        try_lock(&owner).unwrap();
        assert!(matches!(try_lock(&other), Err(TryLockError::WouldBlock)));
        assert_eq!(std::fs::read(&path).unwrap(), b"1");
        other.write_all(b"2").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"12");
        drop(owner);
        try_lock(&other).unwrap();
    }
}
