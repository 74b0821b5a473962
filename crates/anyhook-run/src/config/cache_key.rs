//! The key of the caches in the state folder.
//!
//! Random, private to the user, and bound to the very file that contains it: a
//! state folder that someone else has prepared, such as one in a repository, has
//! a key with caches that fit it, but its copy on this machine is another file.

use std::path::Path;

use anyhook_util::hash::{hex, hmac_sha256, sha256};

const FILE_NAME: &str = "cache.key";

const SECRET_BYTES: usize = 32;

#[derive(Debug)]
pub(crate) struct CacheKey {
    pub(crate) secret: [u8; SECRET_BYTES],
    /// Tells a file that was written with another key from a changed one.
    pub(super) id: String,
}

impl CacheKey {
    pub(super) fn new(secret: [u8; SECRET_BYTES]) -> Self {
        let mut id = sha256(format!("id\0{}", hex(&secret)).as_bytes());
        id.truncate(16);
        Self { secret, id }
    }

    pub(crate) fn load(state: &Path) -> Option<Self> {
        let path = state.join(FILE_NAME);
        let (bytes, metadata) =
            anyhook_util::fs::read_bytes_and_metadata(&path, SECRET_BYTES as u64).ok()?;
        let stored: [u8; SECRET_BYTES] = bytes.try_into().ok()?;
        let place = file_identity(&path, &metadata)?;
        Some(Self::new(hmac_sha256(&stored, &[&place])))
    }

    pub(crate) fn load_or_create(state: &Path) -> Option<Self> {
        Self::load(state).or_else(|| {
            let mut secret = [0; SECRET_BYTES];
            getrandom::fill(&mut secret).ok()?;
            // Of two at once the last counts.
            anyhook_util::fs::replace(&state.join(FILE_NAME), &secret).ok()?;
            Self::load(state)
        })
    }
}

/// `None` if others can read the file. Number and time of change of a file are
/// given by the system, and no program can set the latter.
#[cfg(unix)]
fn file_identity(_path: &Path, data: &std::fs::Metadata) -> Option<Vec<u8>> {
    use std::os::unix::fs::MetadataExt as _;
    let is_own = data.uid() == rustix::process::geteuid().as_raw();
    let is_private = data.mode() & 0o777 == 0o600;
    let identity = format!("{} {} {}", data.ino(), data.ctime(), data.ctime_nsec());
    (is_own && is_private).then(|| identity.into_bytes())
}

/// Volume, number and time of creation of a file. Who can read it is up to its
/// folder, as for the other files of a user.
#[cfg(not(unix))]
fn file_identity(path: &Path, _data: &std::fs::Metadata) -> Option<Vec<u8>> {
    let file = winapi_util::Handle::from_path(path).ok()?;
    let data = winapi_util::file::information(&file).ok()?;
    let created = data.creation_time()?;
    let identity = format!(
        "{} {} {created}",
        data.volume_serial_number(),
        data.file_index()
    );
    Some(identity.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_key_is_another_one() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        assert!(CacheKey::load(state).is_none());
        let key = CacheKey::load_or_create(state).unwrap();
        assert_eq!(CacheKey::load(state).unwrap().secret, key.secret);
        assert_eq!(CacheKey::load_or_create(state).unwrap().id, key.id);
        let copy = state.join("copy");
        std::fs::create_dir(&copy).unwrap();
        std::fs::copy(state.join(FILE_NAME), copy.join(FILE_NAME)).unwrap();
        let copied = CacheKey::load(&copy).unwrap();
        assert_ne!((copied.secret, copied.id), (key.secret, key.id));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        assert!(CacheKey::load_or_create(state).is_some());
        let path = state.join(FILE_NAME);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(CacheKey::load(state).is_none());
    }
}
