//! Kills a program's process group if this process dies in the program's first moments.
//!
//! It is `PR_SET_PDEATHSIG` for a whole group, not bound to a thread, and set from
//! outside: the kernel signals the owner of one end of a pipe when the other end is gone.
//! Both ends are open in this process only, and the group owns both, because which one is
//! closed first when a process ends differs between kernels.
//!
//! A program that would clean up gets no polite signal first, so a
//! [watchdog](super::watchdog) takes over soon. What nothing covers is the time from the
//! program's start until this process goes on, which the input of the program ends: of 40
//! processes that killed this one without reading their input, on a machine with a load
//! of 20, 2 to 4 went on, and 16 to 20 without this signal.
//!
//! Elsewhere than on Linux the first moments are not watched.

#[cfg(target_os = "linux")]
pub(super) use linux::DeathSignal;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use rustix::process::{Pid, Signal};

    use crate::fcntl::{NumberCommand, fcntl};

    /// Dropped, it is revoked.
    pub(in super::super) struct DeathSignal {
        ends: [OwnedFd; 2],
    }

    impl DeathSignal {
        /// Without effect until a group owns it, so that little is left to do once there
        /// is a group.
        pub(in super::super) fn new() -> io::Result<Self> {
            let (reader, writer) = io::pipe()?;
            let signal = Self {
                ends: [reader.into(), writer.into()],
            };
            for end in &signal.ends {
                fcntl(end, NumberCommand::SetSignal(Signal::KILL.as_raw()))?;
                fcntl_setfl(end, fcntl_getfl(end)? | OFlags::ASYNC)?;
            }
            Ok(signal)
        }

        /// If this fails, the group is not killed.
        pub(in super::super) fn protect(&self, group: Pid) {
            for end in &self.ends {
                let _ = fcntl(end, NumberCommand::SetOwner(-group.as_raw_pid()));
            }
        }
    }

    impl Drop for DeathSignal {
        fn drop(&mut self) {
            for end in &self.ends {
                let _ = fcntl_setfl(end, OFlags::empty());
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) struct DeathSignal;

#[cfg(not(target_os = "linux"))]
impl DeathSignal {
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn protect(&self, _group: rustix::process::Pid) {}
}
