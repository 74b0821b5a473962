//! Access to reading: the token file, one-time links, and the keys that links are exchanged for.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhook_util::challenge::constant_time_eq;
use anyhook_util::fs::private_file_options;
use anyhook_util::hash::hex;
use anyhook_util::sync::lock;

const LINK_LIFETIME: Duration = Duration::from_secs(60 * 60);
const PAGE_KEY_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Of links, and of page keys.
const MAX_ENTRIES: usize = 64;

/// The token in `path`, created with mode 0600 if it does not exist.
pub fn token_file(path: &Path) -> io::Result<String> {
    secret_file(path, 32)
}

/// The name of this machine's journal in a shared store, from `path`; created if missing.
pub fn source_file(path: &Path) -> io::Result<String> {
    secret_file(path, 16)
}

fn secret_file(path: &Path, bytes: usize) -> io::Result<String> {
    // The second attempt is for two daemons that start at the same moment.
    for _ in 0..2 {
        let mut options = private_file_options();
        match options.write(true).create_new(true).open(path) {
            Ok(mut file) => {
                let secret = random_hex(bytes)?;
                file.write_all(format!("{secret}\n").as_bytes())?;
                file.sync_all()?;
                return Ok(secret);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let mut text = String::new();
        std::fs::File::open(path)?
            .take(4096)
            .read_to_string(&mut text)?;
        restrict_to_owner(path)?;
        let secret = text.trim();
        if secret.len() >= bytes {
            return Ok(secret.to_owned());
        }
        // Its creator died before writing it.
        std::fs::remove_file(path)?;
    }
    Err(io::Error::other(format!(
        "`{}` does not contain a usable secret",
        path.display()
    )))
}

#[cfg(unix)]
fn restrict_to_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode.trailing_zeros() < 6 {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn restrict_to_owner(_: &Path) -> io::Result<()> {
    Ok(())
}

/// `bytes` random bytes as hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(io::Error::other)?;
    Ok(hex(&buffer))
}

/// Keys, with their expiry.
type ExpiringKeys = Mutex<HashMap<String, Instant>>;

/// The token, one-time links and page keys.
#[derive(Debug)]
pub(crate) struct AccessKeys {
    token: String,
    /// Codes of one-time links.
    links: ExpiringKeys,
    /// Keys that pages got for a code. Lost when the daemon ends.
    page_keys: ExpiringKeys,
}

impl AccessKeys {
    pub(crate) fn new(token: String) -> Self {
        Self {
            token,
            links: Mutex::default(),
            page_keys: Mutex::default(),
        }
    }

    /// `None` if the daemon was started without one.
    pub(crate) fn token(&self) -> Option<&str> {
        Some(self.token.as_str()).filter(|token| !token.is_empty())
    }

    pub(crate) fn accepts(&self, key: &str) -> bool {
        if !self.token.is_empty() && constant_time_eq(&self.token, key) {
            return true;
        }
        let now = Instant::now();
        lock(&self.page_keys)
            .iter()
            .any(|(page_key, until)| *until > now && constant_time_eq(page_key, key))
    }

    /// A code that can be exchanged once.
    pub(crate) fn new_link(&self) -> io::Result<String> {
        new_key(&self.links, 16, LINK_LIFETIME)
    }

    /// A page key for a code. The code is consumed, even if this fails.
    pub(crate) fn exchange(&self, code: &str) -> Option<String> {
        let until = lock(&self.links).remove(code)?;
        if until < Instant::now() {
            return None;
        }
        new_key(&self.page_keys, 32, PAGE_KEY_LIFETIME).ok()
    }
}

/// Adds a random key. Removes expired ones, then the oldest ones over the limit.
fn new_key(keys: &ExpiringKeys, bytes: usize, lifetime: Duration) -> io::Result<String> {
    let key = random_hex(bytes)?;
    let now = Instant::now();
    let mut keys = lock(keys);
    keys.retain(|_, until| *until > now);
    while keys.len() >= MAX_ENTRIES
        && let Some((oldest, _)) = keys.iter().min_by_key(|(_, until)| **until)
    {
        let oldest = oldest.clone();
        keys.remove(&oldest);
    }
    keys.insert(key.clone(), now + lifetime);
    Ok(key)
}
