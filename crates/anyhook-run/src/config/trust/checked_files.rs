//! The files of a hook, compared before it runs and looked at again after it.
//!
//! A file could be exchanged between the comparison and the moment in which the
//! hook's interpreter reads it. The kernel sets a file's change time, which no
//! program can set, so a file that has the same one after the run was not replaced
//! in all the time between. That holds only if the time is older than the
//! resolution of the clock, so a file that has just changed is compared a moment
//! later. What the change time does not show is the concern of [`super::file_watch`];
//! where that is not known, the content is compared again.
//!
//! A built-in guard reads its files in this process. It gets the very bytes that were
//! compared, so nothing has to be looked at again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhook_util::fs::{open_regular, read_bytes};
use anyhook_util::hash::{sha256, sha256_of};

use super::file_watch::{FolderWatch, ReadLease};
use crate::config::cache::FileStamp;

/// Longer than the steps of the clock that change times are taken from.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// A file that still changes after this many comparisons is not compared.
const MAX_COMPARISONS: usize = 4;

/// Files that had the expected content, each with its state at that time.
#[derive(Debug, Default)]
pub(crate) struct CheckedFiles {
    files: Vec<CheckedFile>,
    /// For the folders above them.
    folders: FolderWatch,
    /// What was read for a hook that runs in this process.
    contents: Vec<FileContent>,
}

#[derive(Debug)]
struct FileContent {
    path: PathBuf,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct CheckedFile {
    path: PathBuf,
    hash: String,
    stamp: Option<FileStamp>,
    lease: Option<ReadLease>,
}

impl CheckedFile {
    /// Whether it is what was compared, and was so in all the time between.
    fn is_same(&self) -> bool {
        let has_same_stamp = match &self.stamp {
            Some(stamp) => FileStamp::from_path(&self.path).as_ref() == Some(stamp),
            None => true,
        };
        has_same_stamp
            && match &self.lease {
                Some(lease) => lease.is_held(),
                None => hash_file(&self.path).is_ok_and(|now| now == self.hash),
            }
    }
}

impl CheckedFiles {
    /// Compares files with the hashes that they should have; also returns those
    /// that differ.
    pub(super) fn check<'a>(
        files: &[PathBuf],
        expected: impl Fn(&Path) -> Option<&'a String>,
    ) -> (Self, Vec<PathBuf>) {
        let mut checked = Self::default();
        if !files.is_empty() {
            checked.folders = FolderWatch::new(files);
        }
        let mut changed = Vec::new();
        for path in files {
            let same = expected(path).and_then(|expected| {
                let file = compare(path).ok()?;
                (file.hash == *expected).then_some(file)
            });
            match same {
                Some(same) => checked.files.push(same),
                None => changed.push(path.clone()),
            }
        }
        (checked, changed)
    }

    /// As [`Self::check`], for a hook that reads the files in this process: it gets what
    /// was compared. A file of more than `limit` bytes is only compared.
    pub(super) fn check_contents<'a>(
        files: &[PathBuf],
        limit: u64,
        expected: impl Fn(&Path) -> Option<&'a String>,
    ) -> (Self, Vec<PathBuf>) {
        let mut contents = Vec::new();
        let mut large = Vec::new();
        let mut changed = Vec::new();
        for path in files {
            match (expected(path), read_bytes(path, limit)) {
                (Some(expected), Ok(bytes)) if sha256(&bytes) == *expected => {
                    let path = path.clone();
                    contents.push(FileContent { path, bytes });
                }
                (Some(_), Err(_)) => large.push(path.clone()),
                _ => changed.push(path.clone()),
            }
        }
        let (mut checked, changed_large) = Self::check(&large, expected);
        checked.contents = contents;
        changed.extend(changed_large);
        (checked, changed)
    }

    /// What was read of a file and is what was approved.
    pub(crate) fn content(&self, path: &Path) -> Option<&[u8]> {
        let known = self.contents.iter().find(|file| file.path == path);
        known.map(|file| file.bytes.as_slice())
    }

    /// The files that were changed or exchanged since, even if only for a time.
    pub(crate) fn changed_since(&self) -> Vec<&Path> {
        let was_moved = !self.files.is_empty() && self.folders.has_seen_move();
        let changed = self
            .files
            .iter()
            .filter(|file| was_moved || !file.is_same());
        changed.map(|file| file.path.as_path()).collect()
    }

    /// To be called when the hook takes longer than most: see [`FolderWatch`].
    pub(crate) fn watch_folders(&self) {
        self.folders.watch();
    }

    /// Whether a text is the content of a file that was compared, if the file was.
    pub(crate) fn has_content(&self, path: &Path, text: &str) -> bool {
        let mut files = self.files.iter();
        let known = files.find(|file| file.path == path);
        known.is_none_or(|file| file.hash == sha256(text.as_bytes()))
    }
}

pub(super) fn hash_file(path: &Path) -> io::Result<String> {
    sha256_of(open_regular(path)?.0)
}

/// A file that did not change meanwhile.
fn compare(path: &Path) -> io::Result<CheckedFile> {
    for _ in 0..MAX_COMPARISONS {
        let (file, metadata) = open_regular(path)?;
        let Ok(lease) = ReadLease::take(&file) else {
            std::thread::sleep(CLOCK_STEP);
            continue;
        };
        let stamp = FileStamp::from_metadata(&metadata);
        let hash = sha256_of(file)?;
        match stamp.as_ref().and_then(remaining_wait) {
            Some(wait) => std::thread::sleep(wait),
            None => {
                return Ok(CheckedFile {
                    path: path.to_owned(),
                    hash,
                    stamp,
                    lease,
                });
            }
        }
    }
    Err(io::Error::other("it is changing"))
}

/// How long to wait until a further change would show in the change time.
pub(super) fn remaining_wait(stamp: &FileStamp) -> Option<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = now.ok()?.checked_sub(stamp.changed_at());
    // The clock of another machine may be ahead by any time.
    let wait = CLOCK_STEP.checked_sub(age.unwrap_or(CLOCK_STEP))?;
    (!wait.is_zero()).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_compared_content_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.yaml");
        std::fs::write(&path, "a").unwrap();
        let hash = sha256(b"a");
        let files = [path.clone()];
        let (checked, changed) = CheckedFiles::check(&files, |_| Some(&hash));
        assert!(changed.is_empty() && checked.changed_since().is_empty());
        assert!(checked.has_content(&path, "a"));
        assert!(!checked.has_content(&path, "b"));
        assert!(checked.has_content(&folder.path().join("other"), "b"));
    }

    #[test]
    fn a_guard_gets_the_compared_content_whatever_happens_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.yaml");
        std::fs::write(&path, "a").unwrap();
        let hash = sha256(b"a");
        let files = [path.clone()];
        let (checked, changed) = CheckedFiles::check_contents(&files, 1024, |_| Some(&hash));
        assert!(changed.is_empty());
        std::fs::write(&path, "b").unwrap();
        assert_eq!(checked.content(&path), Some(b"a".as_slice()));
        assert!(checked.changed_since().is_empty());
        // Changed before it was read, without approval, and gone.
        let (checked, changed) = CheckedFiles::check_contents(&files, 1024, |_| Some(&hash));
        assert_eq!(
            (checked.content(&path), changed.as_slice()),
            (None, &files[..])
        );
        let (checked, changed) = CheckedFiles::check_contents(&files, 1024, |_| None);
        assert_eq!(
            (checked.content(&path), changed.as_slice()),
            (None, &files[..])
        );
        std::fs::remove_file(&path).unwrap();
        let (_, changed) = CheckedFiles::check_contents(&files, 1024, |_| Some(&hash));
        assert_eq!(changed, files);
    }

    #[test]
    fn a_large_file_is_only_compared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.yaml");
        std::fs::write(&path, "abcde").unwrap();
        let hash = sha256(b"abcde");
        let files = [path.clone()];
        let (checked, changed) = CheckedFiles::check_contents(&files, 4, |_| Some(&hash));
        assert!(changed.is_empty());
        assert_eq!(checked.content(&path), None);
        assert!(!checked.has_content(&path, "other"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_that_was_moved_and_back_shows() {
        let root = tempfile::tempdir().unwrap();
        let (folder, aside) = (root.path().join("a"), root.path().join("b"));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("script");
        std::fs::write(&path, "a").unwrap();
        let hash = sha256(b"a");
        let (checked, _) = CheckedFiles::check(std::slice::from_ref(&path), |_| Some(&hash));
        std::fs::write(folder.join("log"), "").unwrap();
        assert!(checked.changed_since().is_empty());
        std::fs::rename(&folder, &aside).unwrap();
        std::fs::rename(&aside, &folder).unwrap();
        assert_eq!(checked.changed_since(), [&path]);
    }
}
