//! What a file's change time does not show: who writes to the file through memory, and
//! who exchanges a folder above it, even for a moment.
//!
//! Linux reports both. A read lease is granted only while no process has the file open,
//! or mapped, for writing, and is lost as soon as one opens it so. That a folder above
//! the file was moved shows in change times, and a watch on each of them says so.
//! Elsewhere neither is known.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{FolderWatch, ReadLease};
#[cfg(target_os = "linux")]
pub(super) use linux::{FolderWatch, ReadLease};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, OnceLock};

    use anyhook_util::paths::canonicalize;
    use anyhook_util::sync::lock;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use super::super::checked_files::remaining_wait;
    use crate::config::cache::FileStamp;
    use crate::fcntl::{NumberCommand, fcntl};

    /// Held while no process can write to its file.
    #[derive(Debug)]
    pub(in super::super) struct ReadLease(File);

    impl ReadLease {
        /// `Ok(None)` where the file system or the file's owner does not allow leases;
        /// an error if the file is open for writing.
        pub(in super::super) fn take(file: &File) -> io::Result<Option<Self>> {
            let file = file.try_clone()?;
            // A lost lease is seen at the end. The usual signal would end this process;
            // by default this one does nothing.
            if fcntl(&file, NumberCommand::SetSignal(libc::SIGURG)).is_err() {
                return Ok(None);
            }
            match fcntl(&file, NumberCommand::TakeReadLease) {
                Ok(_) => Ok(Some(Self(file))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
                Err(_) => Ok(None),
            }
        }

        /// Whether no process has opened the file for writing since.
        pub(in super::super) fn is_held(&self) -> bool {
            fcntl(&self.0, NumberCommand::GetLease).is_ok_and(|kind| kind == libc::F_RDLCK)
        }
    }

    /// Says whether one of some folders was moved.
    ///
    /// To move a folder changes its change time and that of the folder above it, so if
    /// only one of the two has changed, it was not moved. That is enough for a hook
    /// that ends soon. In a longer time both change by themselves, so then the kernel
    /// reports moves ([`Self::watch`]): not at once, because to close such a watch
    /// takes 75 µs, and 5 to 20 ms on a busy machine.
    #[derive(Debug, Default)]
    pub(in super::super) struct FolderWatch {
        /// Of a link the link itself: what it points to is among the others.
        folders: BTreeMap<PathBuf, Option<FileStamp>>,
        watched: OnceLock<Watched>,
    }

    /// Since when the kernel reports moves.
    #[derive(Debug)]
    struct Watched {
        since: u64,
        ids: Vec<i32>,
        was_moved_before: bool,
    }

    impl FolderWatch {
        /// For the folders above these files.
        pub(in super::super) fn new(files: &[PathBuf]) -> Self {
            let mut folders = BTreeMap::new();
            for file in files {
                let real = canonicalize(file).ok();
                for path in real.iter().chain([file]) {
                    let above = path.ancestors().skip(1).filter(|it| it.is_absolute());
                    for folder in above {
                        if !folders.contains_key(folder) {
                            folders.insert(folder.to_owned(), stamp(folder));
                        }
                    }
                }
            }
            let is_certain = shows_moves(folders.iter());
            let watch = Self {
                folders,
                watched: OnceLock::new(),
            };
            if !is_certain {
                watch.watch();
            }
            watch
        }

        /// Has the kernel report further moves. If it cannot, the change times go on to
        /// count: then a hook may fail without need.
        pub(in super::super) fn watch(&self) {
            if self.folders.is_empty() || self.watched.get().is_some() {
                return;
            }
            let mut process = lock(&PROCESS_WATCH);
            if process.is_none() {
                *process = ProcessWatch::new();
            }
            let Some(process) = process.as_mut() else {
                return;
            };
            process.take_events();
            let flags = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::DONT_FOLLOW;
            let watches = self.folders.keys();
            // A folder that the user may not list is not the user's to move either.
            let ids =
                watches.filter_map(|folder| inotify::add_watch(&process.fd, folder, flags).ok());
            let watched = Watched {
                ids: ids.collect(),
                since: process.events,
                was_moved_before: self.stamps_show_move(),
            };
            let _ = self.watched.set(watched);
        }

        pub(in super::super) fn has_seen_move(&self) -> bool {
            let Some(watched) = self.watched.get() else {
                return self.stamps_show_move();
            };
            let mut process = lock(&PROCESS_WATCH);
            watched.was_moved_before
                || process.as_mut().is_none_or(|process| {
                    process.take_events();
                    process.has_moved(watched)
                })
        }

        fn stamps_show_move(&self) -> bool {
            let has_changed = |folder: &Path| {
                let before = self.folders.get(folder);
                before.is_none_or(|before| stamp(folder) != *before)
            };
            self.folders.iter().any(|(folder, before)| {
                let now = stamp(folder);
                let is_same = match (before, &now) {
                    (Some(before), Some(now)) => before.is_of_same_file(now),
                    (before, now) => before.is_none() && now.is_none(),
                };
                !is_same || (now != *before && folder.parent().is_some_and(has_changed))
            })
        }
    }

    fn stamp(folder: &Path) -> Option<FileStamp> {
        FileStamp::from_metadata(&std::fs::symlink_metadata(folder).ok()?)
    }

    /// Whether a move would show in the change times: on a file system that sets them as
    /// expected, and not so soon after another change that its time would be the same.
    fn shows_moves<'a>(
        folders: impl Iterator<Item = (&'a PathBuf, &'a Option<FileStamp>)>,
    ) -> bool {
        let mut known_device = None;
        for (folder, stamp) in folders {
            let Some(stamp) = stamp else {
                return false;
            };
            if remaining_wait(stamp).is_some() {
                return false;
            }
            if known_device != Some(stamp.device()) {
                let kind = rustix::fs::statfs(folder).map(|data| u64::try_from(data.f_type));
                let is_known = |kind: u64| FILE_SYSTEMS.contains(&kind);
                if !kind.is_ok_and(|kind| kind.is_ok_and(is_known)) {
                    return false;
                }
                known_device = Some(stamp.device());
            }
        }
        true
    }

    /// Those that set the change time of a folder that is moved: ext4, XFS, Btrfs, F2FS,
    /// tmpfs and overlays, whose upper layer is one of these.
    const FILE_SYSTEMS: [u64; 6] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0xf2f5_2010,
        0x0102_1994,
        0x794c_7630,
    ];

    /// One for all hooks, and never closed: a user has only 128 of them.
    static PROCESS_WATCH: Mutex<Option<ProcessWatch>> = Mutex::new(None);

    struct ProcessWatch {
        fd: OwnedFd,
        /// How many events there were.
        events: u64,
        /// The number of the last event of each folder.
        last: BTreeMap<i32, u64>,
        /// The number of the last event that says that others were dropped.
        dropped: u64,
    }

    impl ProcessWatch {
        fn new() -> Option<Self> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            Some(Self {
                fd,
                events: 0,
                last: BTreeMap::new(),
                dropped: 0,
            })
        }

        fn take_events(&mut self) {
            let mut buffer = [MaybeUninit::uninit(); 1024];
            let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
            while let Ok(event) = reader.next() {
                self.events += 1;
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    self.dropped = self.events;
                }
                self.last.insert(event.wd(), self.events);
            }
        }

        fn has_moved(&self, watched: &Watched) -> bool {
            let is_new = |event: &u64| *event > watched.since;
            let mut last = watched.ids.iter().filter_map(|id| self.last.get(id));
            last.any(is_new) || is_new(&self.dropped)
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

    #[derive(Debug, Default)]
    pub(in super::super) struct FolderWatch;

    impl FolderWatch {
        pub(in super::super) fn new(_files: &[PathBuf]) -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "as on Linux")]
        pub(in super::super) fn watch(&self) {}

        #[expect(clippy::unused_self, reason = "as on Linux")]
        pub(in super::super) fn has_seen_move(&self) -> bool {
            false
        }
    }
}
