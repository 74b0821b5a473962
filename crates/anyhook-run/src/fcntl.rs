//! Commands of `fcntl` that no safe crate offers.

#![expect(
    unsafe_code,
    reason = "only a C function with a variable argument offers them"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Which signal is sent; missing in the crate `libc`.
const F_SETSIG: libc::c_int = 10;

/// A command that takes a number, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NumberCommand {
    /// Who gets signals about the file: a process, or the negative number of a group.
    SetOwner(libc::c_int),
    SetSignal(libc::c_int),
    TakeReadLease,
    /// Returns what kind of lease is held.
    GetLease,
}

pub(crate) fn fcntl(file: impl AsFd, command: NumberCommand) -> io::Result<libc::c_int> {
    let (command, argument) = match command {
        NumberCommand::SetOwner(owner) => (libc::F_SETOWN, owner),
        NumberCommand::SetSignal(signal) => (F_SETSIG, signal),
        NumberCommand::TakeReadLease => (libc::F_SETLEASE, libc::F_RDLCK),
        NumberCommand::GetLease => (libc::F_GETLEASE, 0),
    };
    // SAFETY: the file is open, and these commands take an integer and touch no memory.
    let result = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, argument) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
