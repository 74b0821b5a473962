//! Calls of the system that std does not have: job objects, the start of a
//! suspended process, and the console's code page.
#![expect(
    unsafe_code,
    reason = "these functions of the system can only be called through their C interface"
)]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::process::Child;

use windows_sys::Win32::Foundation::{FALSE, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Globalization::{CP_OEMCP, MultiByteToWideChar};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT,
    JOB_OBJECT_LIMIT_BREAKAWAY_OK, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenThread, ResumeThread, THREAD_SUSPEND_RESUME,
};

/// The exit code of what is ended with its job.
const ENDED_EXIT_CODE: u32 = 1;

/// A program and everything that it starts.
#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

impl Job {
    /// A job that ends what is in it when this process ends.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: both arguments may be null: no attributes, no name.
        let handle = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is valid, and nothing else closes it.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        job.set_limit(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
        Ok(job)
    }

    fn set_limit(&self, limit: JOB_OBJECT_LIMIT) -> io::Result<()> {
        let mut information = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        information.BasicLimitInformation.LimitFlags = limit;
        // SAFETY: the pointer and the size are those of a local value.
        let done = unsafe {
            SetInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const information).cast(),
                size(&information),
            )
        };
        check(done)
    }

    pub(super) fn assign(&self, child: &Child) -> io::Result<()> {
        // SAFETY: both handles are open.
        let done =
            unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), child.as_raw_handle()) };
        check(done)
    }

    /// Ends everything in it.
    pub(super) fn terminate(&self) {
        // SAFETY: the handle is open. It fails only if nothing is left.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), ENDED_EXIT_CODE) };
    }

    /// What is still in it lives on.
    pub(super) fn release(self) {
        let _ = self.set_limit(0);
    }
}

/// Lets a process run that was started suspended: its only thread.
pub(super) fn resume(process: u32) -> io::Result<()> {
    // SAFETY: plain values; the result is checked.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is valid, and nothing else closes it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = THREADENTRY32::default();
    entry.dwSize = size(&entry);
    // SAFETY: the entry is a local value that knows its size.
    let mut found = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut entry) };
    let mut resumed = Err(io::ErrorKind::NotFound.into());
    while found != FALSE {
        if entry.th32OwnerProcessID == process {
            resumed = resume_thread(entry.th32ThreadID);
        }
        // SAFETY: as above.
        found = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut entry) };
    }
    resumed
}

fn resume_thread(thread: u32) -> io::Result<()> {
    // SAFETY: plain values; the result is checked.
    let handle = unsafe { OpenThread(THREAD_SUSPEND_RESUME, FALSE, thread) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is valid, and nothing else closes it.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: the handle is open.
    let count = unsafe { ResumeThread(handle.as_raw_handle()) };
    if count == u32::MAX {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether this process is in a job that lets what it starts leave it.
pub(super) fn may_leave_job() -> bool {
    let mut is_in_job = FALSE;
    let own: HANDLE = std::ptr::null_mut();
    // SAFETY: the pseudo handle of this process, any job, a local value.
    let done = unsafe { IsProcessInJob(GetCurrentProcess(), own, &raw mut is_in_job) };
    if done == FALSE || is_in_job == FALSE {
        return false;
    }
    let mut information = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    // SAFETY: the pointer and the size are those of a local value; a null handle
    // means the job of this process.
    let done = unsafe {
        QueryInformationJobObject(
            own,
            JobObjectExtendedLimitInformation,
            (&raw mut information).cast(),
            size(&information),
            std::ptr::null_mut(),
        )
    };
    let limits = information.BasicLimitInformation.LimitFlags;
    done != FALSE && limits & JOB_OBJECT_LIMIT_BREAKAWAY_OK != 0
}

/// Text in the code page that programs of the console write by default.
pub(super) fn decode_console_text(bytes: &[u8]) -> Option<String> {
    let length = i32::try_from(bytes.len()).ok()?;
    // SAFETY: the pointer and the length are those of the slice; no output.
    let needed = unsafe {
        MultiByteToWideChar(CP_OEMCP, 0, bytes.as_ptr(), length, std::ptr::null_mut(), 0)
    };
    let mut wide = vec![0_u16; usize::try_from(needed).ok().filter(|count| *count > 0)?];
    // SAFETY: as above, and the output has the length that was asked for.
    let written = unsafe {
        MultiByteToWideChar(
            CP_OEMCP,
            0,
            bytes.as_ptr(),
            length,
            wide.as_mut_ptr(),
            needed,
        )
    };
    wide.truncate(usize::try_from(written).ok()?);
    Some(String::from_utf16_lossy(&wide))
}

fn check(done: i32) -> io::Result<()> {
    if done == FALSE {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn size<T>(value: &T) -> u32 {
    u32::try_from(size_of_val(value)).unwrap_or_default()
}
