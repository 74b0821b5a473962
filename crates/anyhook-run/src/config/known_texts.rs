//! The hashes of large manifests, so that a call need not read a megabyte to learn that
//! nothing has changed: hashing 5,000 hooks takes longer than a whole call.
//!
//! A file that has the stamp it had when it was hashed has the same content: every
//! change sets the change time, and no program can set that. The stamp must have been
//! older than the steps of any clock, so that a later change shows in it. Records are
//! sealed with the key of the caches, one small file for each path, overwritten by the
//! next one with the same slot.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhook_util::fs::{read_bytes, replace};
use anyhook_util::hash::{hmac_sha256, sha256, slot_of_hash};

use crate::config::cache::FileStamp;
use crate::config::cache_key::CacheKey;
use crate::config::manifest_cache::FOLDER;

/// A smaller manifest is read: that costs less than the record.
const LARGE_BYTES: u64 = 64 * 1024;

/// Longer than the steps of the times that file systems keep, shared ones included.
const MIN_AGE: Duration = Duration::from_secs(3);

const VERSION: &str = "known texts 1";

const SLOT_COUNT: u32 = 256;

const MAC_BYTES: usize = 32;
const HASH_DIGITS: usize = 64;
const MAX_RECORD_BYTES: u64 = 16 * 1024;

/// The hash of a file's text, if it is large and has not changed since it was read.
pub(super) fn known_hash(state: &Path, path: &Path, metadata: &Metadata) -> Option<String> {
    if metadata.len() < LARGE_BYTES || !metadata.is_file() {
        return None;
    }
    let stamp = FileStamp::from_metadata(metadata)?;
    let content = read_bytes(&slot_path(state, path), MAX_RECORD_BYTES).ok()?;
    let (mac, record) = content.split_at_checked(MAC_BYTES)?;
    let hash = std::str::from_utf8(record.get(..HASH_DIGITS)?).ok()?;
    let key = CacheKey::load(state)?;
    let is_same = record == record_of(path, &stamp, hash) && mac == seal(&key, record);
    is_same.then(|| hash.to_owned())
}

/// Remembers the hash of a file that had this stamp before it was read.
pub(super) fn remember(state: &Path, path: &Path, stamp: &FileStamp, hash: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = now.ok().and_then(|now| now.checked_sub(stamp.changed_at()));
    if stamp.size() < LARGE_BYTES || age.is_none_or(|age| age < MIN_AGE) {
        return;
    }
    if let Some(key) = CacheKey::load_or_create(state) {
        let record = record_of(path, stamp, hash);
        let content = [&seal(&key, &record)[..], &record].concat();
        // If this fails, the next call reads the file again.
        let _ = replace(&slot_path(state, path), &content);
    }
}

fn record_of(path: &Path, stamp: &FileStamp, hash: &str) -> Vec<u8> {
    let mut record = format!("{hash} {stamp:?} ").into_bytes();
    record.extend_from_slice(path.as_os_str().as_encoded_bytes());
    record
}

fn seal(key: &CacheKey, record: &[u8]) -> [u8; MAC_BYTES] {
    hmac_sha256(&key.secret, &[VERSION.as_bytes(), b"\0", record])
}

fn slot_path(state: &Path, path: &Path) -> PathBuf {
    let hash = sha256(path.as_os_str().as_encoded_bytes());
    let slot = slot_of_hash(&hash, SLOT_COUNT);
    state.join(FOLDER).join(format!("text-{slot:02x}"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_as_long_as_nothing_about_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (state, path) = (
            folder.path().join("state"),
            folder.path().join("hooks.yaml"),
        );
        std::fs::create_dir(&state).unwrap();
        std::fs::write(&path, "x".repeat(100_000)).unwrap();
        let known = || known_hash(&state, &path, &std::fs::metadata(&path).unwrap());
        let hash = "a".repeat(HASH_DIGITS);
        let stamp = FileStamp::from_path(&path).unwrap();
        remember(&state, &path, &stamp, &hash);
        assert!(known().is_none(), "it has only just changed");
        remember(
            &state,
            &path,
            &stamp.clone().changed_before(MIN_AGE * 2),
            &hash,
        );
        assert!(known().is_none(), "the stamp is another one");
        // A record of an old file, as it would be after some seconds.
        let key = CacheKey::load_or_create(&state).unwrap();
        let record = record_of(&path, &stamp, &hash);
        let content = [&seal(&key, &record)[..], &record].concat();
        std::fs::write(slot_path(&state, &path), &content).unwrap();
        assert_eq!(known(), Some(hash));
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            std::fs::write(slot_path(&state, &path), &changed).unwrap();
            assert!(known().is_none(), "byte {at}");
        }
        std::fs::write(slot_path(&state, &path), &content).unwrap();
        assert!(known().is_some());
        std::fs::write(&path, "y".repeat(100_000)).unwrap();
        assert!(known().is_none(), "the content is another one");
    }
}
