//! Small files of our own in the state folder.

use std::io::{self, Write};
use std::path::Path;

/// A folder that only the user can look into.
pub fn create_private_dir(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Replaces a file as a whole: a reader sees the old or the new one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    create_private_dir(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let writer = (std::process::id(), std::thread::current().id());
    let draft = folder.join(format!(".{name}.{writer:?}"));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let result = options
        .open(&draft)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| std::fs::rename(&draft, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    result
}

/// Whether the marker was not there yet; it is afterwards. Without a place to
/// write it, every time is the first.
pub fn first_time(marker: &Path) -> bool {
    let create = || {
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(marker)
    };
    let result = create().or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        let folder = marker.parent().ok_or(error)?;
        create_private_dir(folder)?;
        create()
    });
    match result {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::AlreadyExists,
    }
}
