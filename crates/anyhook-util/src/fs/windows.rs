//! What std does not offer for files on Windows.
#![expect(
    unsafe_code,
    reason = "these functions of the system can only be called through their C interface"
)]

use std::fs::{File, TryLockError};
use std::io;
use std::os::windows::io::AsRawHandle as _;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, FALSE};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};

/// The byte that is locked, behind the end of any file: a lock of its content, as
/// std takes it, would keep others from reading it.
const LOCKED_BYTE_HIGH: u32 = 0x4000_0000;

pub(super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    let mut overlapped = OVERLAPPED {
        Anonymous: OVERLAPPED_0 {
            Anonymous: OVERLAPPED_0_0 {
                Offset: 0,
                OffsetHigh: LOCKED_BYTE_HIGH,
            },
        },
        ..OVERLAPPED::default()
    };
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open, and the structure lives as long as the call,
    // which does not wait.
    let done = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut overlapped) };
    if done != FALSE {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING) => Err(TryLockError::WouldBlock),
        _ => Err(TryLockError::Error(error)),
    }
}

/// The volume and the number of a file in it.
pub(super) fn identity(file: &File) -> io::Result<(u64, u64)> {
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the result goes to a local value.
    let done = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) };
    if done == FALSE {
        return Err(io::Error::last_os_error());
    }
    let number = u64::from(information.nFileIndexHigh) << 32 | u64::from(information.nFileIndexLow);
    Ok((u64::from(information.dwVolumeSerialNumber), number))
}
