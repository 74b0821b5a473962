//! The server as a child process in its own process group, so that its children can
//! be ended with it.

use std::io;
use std::process::{Child, Command, ExitStatus};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Signal {
    /// Asks it to end.
    Terminate,
    Kill,
}

/// The group of a child, valid until the child has been reaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessGroup {
    pub(crate) leader: u32,
}

#[cfg(unix)]
mod sys {
    use std::os::unix::process::{CommandExt, ExitStatusExt};

    use rustix::process::{
        Pid, Signal as Native, WaitId, WaitIdOptions, kill_process_group, waitid,
    };

    use super::{Child, Command, ExitStatus, ProcessGroup, Signal, io};

    pub(crate) fn start_in_own_group(command: &mut Command) {
        command.process_group(0);
    }

    impl ProcessGroup {
        pub(crate) fn signal(self, signal: Signal) {
            let native = match signal {
                Signal::Terminate => Native::TERM,
                Signal::Kill => Native::KILL,
            };
            let leader = i32::try_from(self.leader).ok().and_then(Pid::from_raw);
            if let Some(leader) = leader {
                // It may have ended already.
                let _ = kill_process_group(leader, native);
            }
        }
    }

    /// Waits for the child, ends the rest of its group, and only then reaps it: until
    /// then the number of the group cannot be reused.
    pub(crate) fn wait(child: &mut Child) -> io::Result<ExitStatus> {
        let group = ProcessGroup { leader: child.id() };
        if let Some(leader) = i32::try_from(group.leader).ok().and_then(Pid::from_raw) {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(leader), ended) {}
            group.signal(Signal::Kill);
        }
        child.wait()
    }

    /// As in a shell: 128 plus the signal for a process that was killed.
    pub(crate) fn exit_code(status: ExitStatus) -> i32 {
        status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .unwrap_or(1)
    }
}

#[cfg(not(unix))]
mod sys {
    use super::{Child, Command, ExitStatus, ProcessGroup, Signal, io};

    pub(crate) fn start_in_own_group(_: &mut Command) {}

    impl ProcessGroup {
        pub(crate) fn signal(self, _: Signal) {
            // `/T` ends the children too.
            let _ = Command::new("taskkill")
                .args(["/F", "/T", "/PID", &self.leader.to_string()])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status();
        }
    }

    pub(crate) fn wait(child: &mut Child) -> io::Result<ExitStatus> {
        child.wait()
    }

    pub(crate) fn exit_code(status: ExitStatus) -> i32 {
        status.code().unwrap_or(1)
    }
}

pub(crate) use sys::{exit_code, start_in_own_group, wait};
