//! Who can write a file: what counts as the user's or the administrator's own
//! must have been written by them.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Owner, group and mode of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileOwner {
    uid: u32,
    gid: u32,
    mode: u32,
}

#[cfg(unix)]
impl FileOwner {
    pub(super) fn from_metadata(data: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            uid: data.uid(),
            gid: data.gid(),
            mode: data.mode(),
        }
    }

    /// Checks that the file belongs to the user or to root, and that no one else
    /// can write it.
    pub(super) fn check_user(self, path: &Path) -> Result<(), String> {
        self.check(rustix::process::geteuid().as_raw(), path)
    }

    /// Checks that the file belongs to root or to the owner of the managed
    /// folder, and that no one else can write it.
    pub(super) fn check_managed(self, folder: Self, path: &Path) -> Result<(), String> {
        self.check(folder.uid, path)
    }

    fn check(self, owner: u32, path: &Path) -> Result<(), String> {
        let shown = path.display();
        if self.uid != 0 && self.uid != owner {
            return Err(format!("`{shown}` belongs to another user"));
        }
        // A group with the user's number is the user's private group, without other members.
        let is_private_group = self.gid == self.uid;
        if self.mode & 0o002 != 0 || (self.mode & 0o020 != 0 && !is_private_group) {
            return Err(format!(
                "others can write `{shown}`; run `chmod go-w {shown}`"
            ));
        }
        Ok(())
    }
}

/// On other platforms only the owner can write these folders by default.
#[cfg(not(unix))]
impl FileOwner {
    pub(super) fn from_metadata(_data: &Metadata) -> Self {
        Self::default()
    }

    pub(super) fn check_user(self, _path: &Path) -> Result<(), String> {
        Ok(())
    }

    pub(super) fn check_managed(self, _folder: Self, _path: &Path) -> Result<(), String> {
        Ok(())
    }
}

impl FileOwner {
    pub(super) fn from_path(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|data| Self::from_metadata(&data))
    }
}
