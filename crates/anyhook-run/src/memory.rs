//! What a long-lived process remembers of the places where events happen.
//!
//! `anyhook run` looks at manifests, policies and consent anew each time. A
//! daemon asks whether any of it has changed since it looked, by the times that
//! the system keeps of files and folders. It remembers nothing that has changed
//! just now: such a time could hide a second change. What it has asked holds for
//! a millisecond, so that many calls at once do not ask the same.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use openhook::discovery::FILE_NAME;

use crate::discover::PROJECT_FOLDER;
use crate::places::Places;
use crate::surroundings::Surroundings;

/// Some file systems count in steps of two seconds.
const SETTLED: Duration = Duration::from_millis(2500);

/// Less than `anyhook run` takes from its look to its answer: of two calls so
/// near to each other nobody could tell which meets a change.
const FRESH: Duration = Duration::from_millis(1);

/// Places that are remembered at once.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<Places, Known>>);

#[derive(Debug, Clone)]
struct Known {
    here: Arc<Surroundings>,
    /// When it was last asked whether anything has changed.
    asked: Instant,
    /// All that was looked at; `None` was not there.
    looked: Arc<[(PathBuf, Option<Stamp>)]>,
}

impl Memory {
    /// What was found there, when it is still so.
    pub fn recall(&self, places: &Places) -> Option<Arc<Surroundings>> {
        let now = Instant::now();
        let looked = match self.lock().get(places)? {
            known if now.duration_since(known.asked) < FRESH => return Some(known.here.clone()),
            known => known.looked.clone(),
        };
        let is_same = |(path, stamp): &(PathBuf, Option<Stamp>)| Stamp::of(path) == *stamp;
        let is_same = looked.iter().all(is_same);
        let mut all = self.lock();
        if !is_same {
            all.remove(places);
            return None;
        }
        let known = all.get_mut(places)?;
        // Somebody may have looked anew meanwhile.
        if Arc::ptr_eq(&known.looked, &looked) {
            known.asked = known.asked.max(now);
        }
        Some(known.here.clone())
    }

    /// `begun`: before anything was looked at.
    pub fn remember(
        &self,
        places: Places,
        looked: Vec<PathBuf>,
        here: &Arc<Surroundings>,
        begun: SystemTime,
    ) {
        let Some(settled) = begun.checked_sub(SETTLED) else {
            return;
        };
        // What a link of such a name leads to may come and go unseen.
        if !cfg!(unix) || looked.iter().any(|path| has_link(path)) {
            return;
        }
        let asked = Instant::now();
        let looked: Arc<[_]> = looked
            .into_iter()
            .map(|path| {
                let stamp = Stamp::of(&path);
                (path, stamp)
            })
            .collect();
        let is_old = |stamp: &Stamp| stamp.changed() < settled;
        if looked
            .iter()
            .filter_map(|(_, stamp)| stamp.as_ref())
            .all(is_old)
        {
            let mut known = self.lock();
            if known.len() >= MOST {
                known.clear();
            }
            let here = here.clone();
            let place = Known {
                here,
                asked,
                looked,
            };
            known.insert(places, place);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Places, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_link(folder: &Path) -> bool {
    let names = [PROJECT_FOLDER, ".git", FILE_NAME];
    names.iter().any(|name| folder.join(name).is_symlink())
}

/// What changes when a file or the list of a folder does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Set by every change, and by nobody's wish.
    changed: (i64, i64),
}

impl Stamp {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let data = std::fs::metadata(path).ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    fn of(_path: &Path) -> Option<Self> {
        None
    }

    fn changed(&self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        let since = Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanos).unwrap_or_default(),
        );
        SystemTime::UNIX_EPOCH
            .checked_add(since)
            .unwrap_or_else(SystemTime::now)
    }
}
