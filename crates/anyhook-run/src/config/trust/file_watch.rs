//! What a file's change time does not show: who writes to the file through memory, and
//! who exchanges a folder above it, even for a moment.
//!
//! Linux tells both. A read lease is granted only while no process has the file open, or
//! mapped, for writing, and is lost as soon as one opens it so. A watch on each folder
//! above the file says that the folder was moved. Elsewhere neither is known.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{FolderWatch, ReadLease};
#[cfg(target_os = "linux")]
pub(super) use linux::{FolderWatch, ReadLease};

#[cfg(target_os = "linux")]
mod linux {
    #![expect(
        unsafe_code,
        reason = "leases are only offered by a C function with a variable argument"
    )]

    use std::collections::BTreeSet;
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::path::{Path, PathBuf};

    use anyhook_util::paths::canonicalize;
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    /// Which signal reports a lost lease; missing in the crate `libc`.
    const F_SETSIG: libc::c_int = 10;

    /// Held as long as nobody can write to its file.
    #[derive(Debug)]
    pub(in super::super) struct ReadLease(File);

    impl ReadLease {
        /// `Ok(None)` where the file system or the file's owner does not allow leases;
        /// an error if the file is open for writing.
        pub(in super::super) fn take(file: &File) -> io::Result<Option<Self>> {
            let file = file.try_clone()?;
            // A lost lease is seen at the end. The usual signal would end this process;
            // by default this one does nothing.
            let is_silent = control(&file, F_SETSIG, libc::SIGURG) == Some(0);
            if !is_silent {
                return Ok(None);
            }
            match control(&file, libc::F_SETLEASE, libc::F_RDLCK) {
                Some(_) => Ok(Some(Self(file))),
                None => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::WouldBlock => Err(error),
                    _ => Ok(None),
                },
            }
        }

        /// Whether nobody has opened the file for writing since.
        pub(in super::super) fn is_held(&self) -> bool {
            control(&self.0, libc::F_GETLEASE, 0) == Some(libc::F_RDLCK)
        }
    }

    fn control(file: &File, command: libc::c_int, argument: libc::c_int) -> Option<libc::c_int> {
        // SAFETY: the descriptor is open, and these commands take an integer.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        (result >= 0).then_some(result)
    }

    /// Says whether one of some folders was moved.
    #[derive(Debug)]
    pub(in super::super) struct FolderWatch(OwnedFd);

    impl FolderWatch {
        /// Watches the folders above these files. `None` if the user has no watch left.
        pub(in super::super) fn new(files: &[PathBuf]) -> Option<Self> {
            let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
            for file in files {
                let real = canonicalize(file).ok();
                for path in real.iter().chain([file]) {
                    folders.extend(path.ancestors().skip(1).map(Path::to_owned));
                }
            }
            // Of a link the link itself: what it points to is among the others.
            let flags = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::DONT_FOLLOW;
            for folder in folders.iter().filter(|folder| folder.is_absolute()) {
                // A folder that the user may not list is not the user's to move either.
                let _ = inotify::add_watch(&watch, folder, flags);
            }
            Some(Self(watch))
        }

        pub(in super::super) fn has_seen_move(&self) -> bool {
            let mut events = [0_u8; 512];
            rustix::io::read(&self.0, &mut events).is_ok_and(|count| count > 0)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::fs::File;
    use std::io;
    use std::path::PathBuf;

    #[derive(Debug)]
    pub(in super::super) struct ReadLease;

    impl ReadLease {
        #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
        pub(in super::super) fn take(_file: &File) -> io::Result<Option<Self>> {
            Ok(None)
        }

        pub(in super::super) fn is_held(&self) -> bool {
            true
        }
    }

    #[derive(Debug)]
    pub(in super::super) struct FolderWatch;

    impl FolderWatch {
        pub(in super::super) fn new(_files: &[PathBuf]) -> Option<Self> {
            None
        }

        pub(in super::super) fn has_seen_move(&self) -> bool {
            false
        }
    }
}
