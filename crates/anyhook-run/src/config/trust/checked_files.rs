//! The files of a hook, compared before it runs and looked at again after it.
//!
//! A file could be exchanged between the comparison and the moment in which the
//! hook's interpreter reads it. The kernel sets a file's change time, which no
//! program can set, so a file that has the same one after the run was the file
//! that was compared, in all the time between. That holds only if the time is
//! older than the resolution of the clock, so a file that has just changed is
//! compared a moment later.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhook_util::fs::open_regular;
use anyhook_util::hash::sha256_of;

use crate::config::cache::FileStamp;

/// Longer than the steps of the clock that change times are taken from.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// A file that still changes after so many comparisons is not compared.
const MAX_COMPARISONS: usize = 4;

/// Files that had the expected content, each with its state at that time.
#[derive(Debug, Default)]
pub(crate) struct CheckedFiles(Vec<(PathBuf, String, Option<FileStamp>)>);

impl CheckedFiles {
    /// Compares files with the hashes that they should have; also returns those
    /// that differ.
    pub(super) fn check<'a>(
        files: &[PathBuf],
        expected: impl Fn(&Path) -> Option<&'a String>,
    ) -> (Self, Vec<PathBuf>) {
        let (mut checked, mut changed) = (Vec::new(), Vec::new());
        for path in files {
            let same = expected(path).and_then(|expected| {
                let (hash, stamp) = hash_steady(path).ok()?;
                (hash == *expected).then_some((path.clone(), hash, stamp))
            });
            match same {
                Some(same) => checked.push(same),
                None => changed.push(path.clone()),
            }
        }
        (Self(checked), changed)
    }

    /// The files that were changed or exchanged since, even if only for a time.
    pub(crate) fn changed_since(&self) -> Vec<&Path> {
        let is_same = |(path, hash, stamp): &&(PathBuf, String, Option<FileStamp>)| match stamp {
            Some(stamp) => FileStamp::from_path(path).as_ref() == Some(stamp),
            None => hash_file(path).is_ok_and(|now| now == *hash),
        };
        let changed = self.0.iter().filter(|file| !is_same(file));
        changed.map(|(path, ..)| path.as_path()).collect()
    }
}

pub(super) fn hash_file(path: &Path) -> io::Result<String> {
    sha256_of(open_regular(path)?.0)
}

/// The hash of a file that did not change meanwhile.
fn hash_steady(path: &Path) -> io::Result<(String, Option<FileStamp>)> {
    for _ in 0..MAX_COMPARISONS {
        let (file, metadata) = open_regular(path)?;
        let stamp = FileStamp::from_metadata(&metadata);
        let hash = sha256_of(file)?;
        match stamp.as_ref().and_then(remaining_wait) {
            Some(wait) => std::thread::sleep(wait),
            None => return Ok((hash, stamp)),
        }
    }
    Err(io::Error::other("it is changing"))
}

/// How long to wait until a further change would show in the change time.
fn remaining_wait(stamp: &FileStamp) -> Option<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = now.ok()?.checked_sub(stamp.changed_at());
    // The clock of another machine may be ahead by any time.
    let wait = CLOCK_STEP.checked_sub(age.unwrap_or(CLOCK_STEP))?;
    (!wait.is_zero()).then_some(wait)
}
