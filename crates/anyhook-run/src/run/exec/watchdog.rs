//! Ends running hooks when this process dies without ending them itself: by
//! `SIGKILL`, by a crash, or for lack of memory.
//!
//! A hook has its own process group, which nothing else would end. The watchdog
//! is a copy of this process that holds one end of a pipe; the kernel closes the
//! other end whatever happens here. `PR_SET_PDEATHSIG` would not do: it reaches
//! only the first process of a hook, is bound to the thread that has started it,
//! exists only on Linux, and makes starting a hook several times slower.
//!
//! It has its own session, so that a signal to the agent's group does not reach
//! it, and no open files but the pipe, so that no one waits for it. A detached
//! hook is run by its own supervisor, which has a watchdog of its own.
#![expect(
    unsafe_code,
    reason = "a copy of this process can only be made through a C function"
)]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Child;
use std::sync::Mutex;

use anyhook_util::sync::lock;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::TERMINATION_GRACE_PERIOD;

/// Further hooks are not watched.
const MAX_WATCHED: usize = 1024;

/// How often the watchdog checks whether what it has asked to end is gone.
const CHECK_INTERVAL_MS: i32 = 20;
const CHECKS: u128 = TERMINATION_GRACE_PERIOD.as_millis() / CHECK_INTERVAL_MS as u128;

/// The one of this process: it dies as a whole, whatever its parts do.
static WATCHDOG: Mutex<Option<Watchdog>> = Mutex::new(None);

struct Watchdog {
    pid: Pid,
    /// The writing end of its pipe.
    pipe: File,
}

/// A process group that is watched until this is dropped.
pub(super) struct Watched {
    group: i32,
}

/// Starts the watchdog of this process, if there is none. A process that will
/// grow calls this early: the watchdog keeps the memory that it is copied with.
pub fn start() {
    let mut watchdog = lock(&WATCHDOG);
    if watchdog.is_none() {
        *watchdog = fork_watchdog().ok();
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

/// Watches the group of a process that was just started.
pub(super) fn watch(child: &Child) -> Option<Watched> {
    let group = i32::try_from(child.id()).ok()?;
    start();
    send(group);
    Some(Watched { group })
}

impl Drop for Watched {
    fn drop(&mut self) {
        send(-self.group);
    }
}

/// A group to watch, or the negative number of one that has ended.
fn send(message: i32) {
    if let Some(watchdog) = lock(&WATCHDOG).as_mut() {
        // Without a watchdog the hook runs all the same.
        let _ = watchdog.pipe.write_all(&message.to_ne_bytes());
    }
}

fn fork_watchdog() -> std::io::Result<Watchdog> {
    let (reader, writer) = std::io::pipe()?;
    // SAFETY: other threads may exist, so the child calls only functions that are
    // safe after a fork: system calls, no allocation and no locks.
    match unsafe { libc::fork() } {
        0 => guard(&OwnedFd::from(reader)),
        pid => Ok(Watchdog {
            pid: Pid::from_raw(pid.max(0)).ok_or_else(std::io::Error::last_os_error)?,
            pipe: File::from(OwnedFd::from(writer)),
        }),
    }
}

/// The watchdog's whole life.
fn guard(reader: &OwnedFd) -> ! {
    let mut groups = [0_i32; MAX_WATCHED];
    // SAFETY: plain system calls on numbers and on memory of this function.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::dup2(reader.as_raw_fd(), 0);
        close_from(1);
        libc::chdir(c"/".as_ptr());
        loop {
            let mut message = 0_i32;
            let size = size_of::<i32>();
            let count = libc::read(0, (&raw mut message).cast(), size);
            let error = std::io::Error::last_os_error().kind();
            if count == -1 && error == std::io::ErrorKind::Interrupted {
                continue;
            }
            if usize::try_from(count) != Ok(size) {
                break;
            }
            let (from, to) = if message > 0 {
                (0, message)
            } else {
                (-message, 0)
            };
            if let Some(slot) = groups.iter_mut().find(|slot| **slot == from) {
                *slot = to;
            }
        }
        let is_running = |group: &i32| *group > 0 && libc::kill(-*group, 0) == 0;
        for group in groups.iter().filter(|group| **group > 0) {
            libc::kill(-*group, libc::SIGTERM);
        }
        for _ in 0..CHECKS {
            if !groups.iter().any(is_running) {
                libc::_exit(0);
            }
            libc::poll(std::ptr::null_mut(), 0, CHECK_INTERVAL_MS);
        }
        for group in groups.iter().filter(|group| **group > 0) {
            libc::kill(-*group, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}

/// Closes every file from this number on.
unsafe fn close_from(first: i32) {
    // SAFETY: nothing of this process uses these files any more.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0 {
            return;
        }
        let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
        for fd in first..i32::try_from(limit).unwrap_or(256) {
            libc::close(fd);
        }
    }
}
