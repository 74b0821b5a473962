//! Ends running hooks when this process dies without ending them itself: by
//! `SIGKILL`, by a crash, or for lack of memory.
//!
//! A hook has its own process group, which nothing else would end. The watchdog
//! is a process of its own that holds one end of a pipe; the kernel closes the
//! other end whatever happens here. `PR_SET_PDEATHSIG` would not do: it reaches
//! only the first process of a hook, is bound to the thread that has started it,
//! exists only on Linux, and makes starting a hook several times slower. A hook is
//! watched after its first 5 ms, in which most have ended; until then there is a
//! [death signal](super::death_signal).
//!
//! It has its own session, so that a signal to the agent's group does not reach
//! it, and no open files but the pipe, so that no one waits for it. A detached
//! hook is run by its own supervisor, which has a watchdog of its own.
//!
//! On Linux the watchdog shares the memory of this process, as `vfork` does, and
//! has a stack of its own. A copy (`fork`) costs as much as half a hook: every page
//! that this process writes afterwards is copied.
#![expect(
    unsafe_code,
    reason = "a second process without a second program needs C functions"
)]

use std::fs::File;
use std::io::Write as _;
#[cfg(not(target_os = "linux"))]
use std::os::fd::AsFd as _;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::Mutex;

use anyhook_util::sync::lock;
use rustix::event::{Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpid,
};

use super::TERMINATION_GRACE_PERIOD;

/// Further hooks are not watched.
const MAX_WATCHED: usize = 1024;

/// How often the watchdog checks whether what it has asked to end is gone.
const CHECK_INTERVAL_MS: i64 = 20;
const MAX_CHECKS: u128 = TERMINATION_GRACE_PERIOD.as_millis() / CHECK_INTERVAL_MS as u128;

/// Only the pages that are used count.
#[cfg(target_os = "linux")]
const STACK_BYTES: usize = 64 * 1024;

/// The one of this process: it dies as a whole, whatever its parts do.
static WATCHDOG: Mutex<Option<Watchdog>> = Mutex::new(None);

struct Watchdog {
    pid: Pid,
    /// The writing end of its pipe.
    pipe: File,
    #[cfg(target_os = "linux")]
    _stack: Vec<u128>,
}

/// A process group that is watched until this is dropped.
pub(super) struct Watched {
    group: i32,
}

/// Starts the watchdog of this process, if there is none. A process that will
/// grow calls this early: where the watchdog is a copy, it keeps the memory that
/// it is copied with.
pub fn start() {
    let mut watchdog = lock(&WATCHDOG);
    if watchdog.is_none() {
        *watchdog = start_watchdog().ok();
    }
}

/// Ends the watchdog, before this process ends by itself: where the first process
/// of a container does not care for orphans, it would be left as a zombie.
pub fn stop() {
    if let Some(watchdog) = lock(&WATCHDOG).take() {
        let _ = kill_process(watchdog.pid, Signal::KILL);
        let _ = waitpid(Some(watchdog.pid), WaitOptions::empty());
    }
}

/// Watches the group of a process that was just started; `None` if that is impossible.
pub(super) fn watch(child: &Child) -> Option<Watched> {
    let group = i32::try_from(child.id()).ok()?;
    start();
    send(group).then_some(Watched { group })
}

impl Drop for Watched {
    fn drop(&mut self) {
        send(-self.group);
    }
}

/// A group to watch, or the negative number of one that has ended. Without a watchdog
/// the hook runs all the same.
fn send(message: i32) -> bool {
    let mut watchdog = lock(&WATCHDOG);
    let sent = watchdog
        .as_mut()
        .map(|it| it.pipe.write_all(&message.to_ne_bytes()));
    sent.is_some_and(|sent| sent.is_ok())
}

#[cfg(target_os = "linux")]
fn start_watchdog() -> std::io::Result<Watchdog> {
    let (reader, writer) = std::io::pipe()?;
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    let top = stack
        .as_mut_ptr_range()
        .start
        .wrapping_add(stack.capacity());
    let argument = std::ptr::without_provenance_mut(reader.as_raw_fd().cast_unsigned() as usize);
    // SAFETY: the new process shares the memory, but not the files and the signal
    // handlers. All its signals are blocked, so it runs `watch_pipe` only, which
    // uses its own stack, system calls that do not set `errno`, no allocation and
    // no locks. The stack lives until the process has ended (`stop`), and the
    // argument is a number.
    let pid = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        let pid = libc::clone(run_watchdog, top.cast(), flags, argument);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        pid
    };
    Ok(Watchdog {
        pid: Pid::from_raw(pid.max(0)).ok_or_else(std::io::Error::last_os_error)?,
        pipe: File::from(OwnedFd::from(writer)),
        _stack: stack,
    })
}

#[cfg(target_os = "linux")]
extern "C" fn run_watchdog(argument: *mut libc::c_void) -> libc::c_int {
    let reader = i32::try_from(argument.addr()).unwrap_or_default();
    // SAFETY: the pipe's end is open in this process.
    watch_pipe(unsafe { BorrowedFd::borrow_raw(reader) })
}

#[cfg(not(target_os = "linux"))]
fn start_watchdog() -> std::io::Result<Watchdog> {
    let (reader, writer) = std::io::pipe()?;
    // SAFETY: other threads may exist, so the child calls only functions that are
    // safe after a fork: system calls, no allocation and no locks.
    match unsafe { libc::fork() } {
        0 => {
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                // SAFETY: nothing else runs in this process.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            watch_pipe(reader.as_fd())
        }
        pid => Ok(Watchdog {
            pid: Pid::from_raw(pid.max(0)).ok_or_else(std::io::Error::last_os_error)?,
            pipe: File::from(OwnedFd::from(writer)),
        }),
    }
}

/// The watchdog's whole life.
fn watch_pipe(reader: BorrowedFd<'_>) -> ! {
    let mut groups = [None::<Pid>; MAX_WATCHED];
    let _ = rustix::process::setsid();
    let _ = rustix::stdio::dup2_stdin(reader);
    // SAFETY: standard input is the pipe now.
    let pipe = unsafe { BorrowedFd::borrow_raw(0) };
    close_from(1);
    let _ = rustix::process::chdir(c"/");
    loop {
        let mut message = [0; size_of::<i32>()];
        match rustix::io::read(pipe, &mut message) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(count) if count == message.len() => {}
            Ok(_) | Err(_) => break,
        }
        let message = i32::from_ne_bytes(message);
        let group = Pid::from_raw(message.saturating_abs());
        let (from, to) = if message > 0 {
            (None, group)
        } else {
            (group, None)
        };
        if let Some(slot) = groups.iter_mut().find(|slot| **slot == from) {
            *slot = to;
        }
    }
    let groups = groups.iter().flatten();
    for group in groups.clone() {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let interval = Timespec {
        tv_sec: 0,
        tv_nsec: CHECK_INTERVAL_MS * 1_000_000,
    };
    for _ in 0..MAX_CHECKS {
        if groups
            .clone()
            .all(|group| test_kill_process_group(*group).is_err())
        {
            end();
        }
        let _ = poll(&mut [], Some(&interval));
    }
    for group in groups {
        let _ = kill_process_group(*group, Signal::KILL);
    }
    end()
}

/// Ends this process at once.
fn end() -> ! {
    // SAFETY: always allowed; nothing of the shared memory is touched.
    unsafe { libc::_exit(0) }
}

/// Closes every file from this number on.
fn close_from(first: i32) {
    // SAFETY: nothing of this process uses these files any more.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0 {
            return;
        }
        let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
        for fd in first..i32::try_from(limit).unwrap_or(256) {
            rustix::io::close(fd);
        }
    }
}
