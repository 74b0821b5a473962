//! The config cache of a long-lived process.
//!
//! `anyhook run` reads manifests, policies and consents for each event. A daemon
//! keeps them and checks with `stat` whether any file or folder has changed.
//! Files changed within the last 2.5 s are not cached, because a coarse
//! timestamp could hide a second write. A validated entry is trusted for 1 ms,
//! so that concurrent calls do not all check the same files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use anyhook_util::sync::lock;
use openhook::discovery::FILE_NAME;

use crate::config::discover::PROJECT_FOLDER;
use crate::config::effective::EffectiveConfig;
use crate::config::folders::EventFolders;

/// Some file systems have timestamps with a resolution of two seconds.
const MIN_FILE_AGE: Duration = Duration::from_millis(2500);

/// Shorter than `anyhook run` takes from reading its config to its answer: a
/// change counts at most this much later than without the cache.
const VALIDATION_LIFETIME: Duration = Duration::from_millis(1);

/// Folders that one daemon answers for without reading their files again.
const MAX_ENTRIES: usize = 4096;

#[derive(Debug, Default)]
pub struct ConfigCache(Mutex<HashMap<EventFolders, CacheEntry>>);

#[derive(Debug, Clone)]
struct CacheEntry {
    config: Arc<EffectiveConfig>,
    validated: Instant,
    /// Every path that the config depends on; `None` did not exist.
    inspected: Arc<[(PathBuf, Option<FileStamp>)]>,
}

impl ConfigCache {
    /// The cached config, if nothing that it depends on has changed.
    pub(super) fn get(&self, folders: &EventFolders) -> Option<Arc<EffectiveConfig>> {
        let now = Instant::now();
        let inspected = match lock(&self.0).get(folders)? {
            entry if now.duration_since(entry.validated) < VALIDATION_LIFETIME => {
                return Some(entry.config.clone());
            }
            entry => entry.inspected.clone(),
        };
        let mut stamps = inspected.iter();
        let is_same = stamps.all(|(path, stamp)| FileStamp::from_path(path) == *stamp);
        let mut entries = lock(&self.0);
        if !is_same {
            entries.remove(folders);
            return None;
        }
        let entry = entries.get_mut(folders)?;
        // Another thread may have replaced the entry meanwhile.
        if Arc::ptr_eq(&entry.inspected, &inspected) {
            entry.validated = entry.validated.max(now);
        }
        Some(entry.config.clone())
    }

    /// `begun`: a time before the first of the files was read.
    pub(super) fn insert(
        &self,
        folders: EventFolders,
        inspected: Vec<PathBuf>,
        config: &Arc<EffectiveConfig>,
        begun: SystemTime,
    ) {
        let begun = begun.duration_since(SystemTime::UNIX_EPOCH);
        let newest = begun.unwrap_or_default().saturating_sub(MIN_FILE_AGE);
        // The target of a symbolic link may change without a change of its folder.
        if !cfg!(unix) || inspected.iter().any(|path| has_link(path)) {
            return;
        }
        let validated = Instant::now();
        let stamped = inspected.into_iter().map(|path| {
            let stamp = FileStamp::from_path(&path);
            (path, stamp)
        });
        let inspected: Arc<[_]> = stamped.collect();
        let mut stamps = inspected.iter().filter_map(|(_, stamp)| stamp.as_ref());
        if !stamps.all(|stamp| stamp.changed_at() < newest) {
            return;
        }
        let mut entries = lock(&self.0);
        if entries.len() >= MAX_ENTRIES && !entries.contains_key(&folders) {
            remove_oldest(&mut entries, |entry| entry.validated);
        }
        let entry = CacheEntry {
            config: config.clone(),
            validated,
            inspected,
        };
        entries.insert(folders, entry);
    }
}

/// Removes the entries that were not used for longest: an eighth of all, so that folders
/// beyond the limit cost a look at all entries only now and then.
fn remove_oldest<T>(entries: &mut HashMap<EventFolders, T>, used: impl Fn(&T) -> Instant) {
    let mut times: Vec<Instant> = entries.values().map(&used).collect();
    let at = times.len() / 8;
    let (_, oldest, _) = times.select_nth_unstable(at);
    let oldest = *oldest;
    entries.retain(|_, entry| used(entry) > oldest);
}

fn has_link(folder: &Path) -> bool {
    let names = [PROJECT_FOLDER, ".git", FILE_NAME];
    names.iter().any(|name| folder.join(name).is_symlink())
}

/// Metadata that changes with a file or with the entries of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Set by every change; unlike the modification time, no program can set it.
    ctime: (i64, i64),
}

impl FileStamp {
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        Self::from_metadata(&std::fs::metadata(path).ok()?)
    }

    #[cfg(unix)]
    #[expect(clippy::unnecessary_wraps, reason = "not known on every platform")]
    pub(super) fn from_metadata(data: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            ctime: (data.ctime(), data.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    pub(super) fn from_metadata(_data: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Whether both are of one file or folder, whatever its content.
    #[cfg(target_os = "linux")]
    pub(super) fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The stamp that a file would have that was last changed so much earlier.
    #[cfg(test)]
    #[cfg(unix)]
    pub(super) fn changed_before(mut self, time: Duration) -> Self {
        self.ctime.0 -= i64::try_from(time.as_secs()).unwrap();
        self
    }

    /// Since the epoch.
    pub(super) fn changed_at(&self) -> Duration {
        let (seconds, nanos) = self.ctime;
        Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanos).unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(number: usize) -> EventFolders {
        EventFolders::from_folder(Path::new(&format!("/project-{number}")))
    }

    /// Folders in use stay when there are more than a daemon keeps.
    #[test]
    fn a_full_cache_forgets_what_was_not_used_for_longest() {
        let begun = Instant::now();
        let full = (0..MAX_ENTRIES).map(|number| {
            let used = begun + Duration::from_secs(u64::try_from(number).unwrap());
            (folders(number), used)
        });
        let mut entries: HashMap<_, _> = full.collect();
        remove_oldest(&mut entries, |used| *used);
        let removed = MAX_ENTRIES - entries.len();
        assert_eq!(removed, MAX_ENTRIES / 8 + 1);
        for number in 0..MAX_ENTRIES {
            assert_eq!(entries.contains_key(&folders(number)), number >= removed);
        }
    }
}
