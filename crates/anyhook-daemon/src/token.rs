//! Who may read: the token in its file, one-time links, and what a link is exchanged for.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const LINK_LIFE: Duration = Duration::from_secs(60 * 60);
const SESSION_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const SESSIONS_MAX: usize = 64;

/// The token in `path`; made with mode 0600 when there is none.
pub fn token_file(path: &Path) -> io::Result<String> {
    secret_file(path, 32)
}

/// The name of this machine's journal in a shared store, from `path`; made when there is none.
pub fn source_file(path: &Path) -> io::Result<String> {
    secret_file(path, 16)
}

fn secret_file(path: &Path, bytes: usize) -> io::Result<String> {
    // A second try, for two daemons that start at the same moment.
    for _ in 0..2 {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(mut file) => {
                let secret = random(bytes)?;
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
        close_to_others(path)?;
        let secret = text.trim();
        if secret.len() >= bytes {
            return Ok(secret.to_owned());
        }
        // Its maker died before it wrote.
        std::fs::remove_file(path)?;
    }
    Err(io::Error::other(format!(
        "`{}` holds no usable secret",
        path.display()
    )))
}

#[cfg(unix)]
fn close_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode.trailing_zeros() < 6 {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

/// So many random bytes, as hexadecimal digits.
pub(crate) fn random(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(io::Error::other)?;
    let mut text = String::with_capacity(bytes * 2);
    for byte in buffer {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Takes the same time wherever the two differ.
fn same(left: &str, right: &str) -> bool {
    left.len() == right.len()
        && left
            .bytes()
            .zip(right.bytes())
            .fold(0, |differ, (left, right)| differ | (left ^ right))
            == 0
}

/// Everything that opens a door.
#[derive(Debug)]
pub(crate) struct Keys {
    token: String,
    /// Codes of one-time links, and until when they may be used.
    links: Mutex<HashMap<String, Instant>>,
    /// What pages got for their code. Gone when the daemon ends.
    sessions: Mutex<HashMap<String, Instant>>,
}

impl Keys {
    pub fn new(token: String) -> Self {
        Self {
            token,
            links: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    pub fn fits(&self, key: &str) -> bool {
        if !self.token.is_empty() && same(&self.token, key) {
            return true;
        }
        let now = Instant::now();
        lock(&self.sessions)
            .iter()
            .any(|(session, until)| *until > now && same(session, key))
    }

    /// A code that can be exchanged once.
    pub fn new_link(&self) -> io::Result<String> {
        let code = random(16)?;
        let mut links = lock(&self.links);
        keep_young(&mut links);
        links.insert(code.clone(), Instant::now() + LINK_LIFE);
        Ok(code)
    }

    /// A session for a code; the code is used up, even when that fails.
    pub fn exchange(&self, code: &str) -> Option<String> {
        let until = lock(&self.links).remove(code)?;
        if until < Instant::now() {
            return None;
        }
        let session = random(32).ok()?;
        let mut sessions = lock(&self.sessions);
        keep_young(&mut sessions);
        sessions.insert(session.clone(), Instant::now() + SESSION_LIFE);
        Some(session)
    }
}

fn keep_young(keys: &mut HashMap<String, Instant>) {
    let now = Instant::now();
    keys.retain(|_, until| *until > now);
    while keys.len() >= SESSIONS_MAX {
        let oldest = keys
            .iter()
            .min_by_key(|(_, until)| **until)
            .map(|(key, _)| key.clone());
        match oldest {
            Some(oldest) => keys.remove(&oldest),
            None => return,
        };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
