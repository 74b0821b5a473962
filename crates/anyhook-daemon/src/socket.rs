//! The socket in the state folder, by which this user's own programs reach the daemon.
//!
//! Only a process of the same user gets an answer there: the kernel says who the other end
//! is, so neither side needs the token.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("`{0}` belongs to a daemon that is running")]
    InUse(PathBuf),
    #[error("`{0}` already exists and is not a socket")]
    NotASocket(PathBuf),
    #[error("could not create `{path}`: {source}")]
    Create { path: PathBuf, source: io::Error },
}

/// A bound socket; its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    pub listener: UnixListener,
    path: PathBuf,
    inode: Option<u64>,
}

impl OwnSocket {
    /// Replaces the socket of a daemon that was killed, but not that of a running one.
    pub(crate) fn bind(path: &Path) -> Result<Self, SocketError> {
        let create = |source| SocketError::Create {
            path: path.to_owned(),
            source,
        };
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(SocketError::NotASocket(path.to_owned()));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(SocketError::InUse(path.to_owned()));
            }
            std::fs::remove_file(path).map_err(create)?;
        }
        let listener = UnixListener::bind(path).map_err(create)?;
        let socket = Self {
            listener,
            path: path.to_owned(),
            inode: inode(path),
        };
        // Until here the folder's mode protects it.
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(create)?;
        socket.listener.set_nonblocking(true).map_err(create)?;
        Ok(socket)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody can connect any more.
    pub(crate) fn remove(&self) {
        // Another daemon may have put its own there.
        if self.inode.is_some() && inode(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        self.remove();
    }
}

fn inode(path: &Path) -> Option<u64> {
    Some(std::fs::symlink_metadata(path).ok()?.ino())
}

/// Whether the other end runs as the same user.
pub(crate) fn is_same_user(stream: &tokio::net::UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_daemon_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.sock");
        let first = OwnSocket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(OwnSocket::bind(&path), Err(SocketError::InUse(_))));
        drop(first);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as a killed daemon leaves it");
        drop(OwnSocket::bind(&path).unwrap());
        std::fs::write(&path, "").unwrap();
        let error = OwnSocket::bind(&path).unwrap_err();
        assert!(matches!(error, SocketError::NotASocket(_)));
        let long = dir.path().join("x".repeat(120));
        let error = OwnSocket::bind(&long).unwrap_err();
        assert!(matches!(error, SocketError::Create { .. }), "{error}");
    }
}
