//! The signals of this process, whatever its parent has done to them.
#![expect(
    unsafe_code,
    reason = "dispositions and the mask can only be set through C functions"
)]

/// Undoes what a parent can leave behind, so that it changes neither this process
/// nor the hooks:
///
/// * `SIGCHLD` that is ignored hides how a hook has ended;
/// * `SIGXFSZ` (a file larger than the limit of the process) would end this process
///   before it has answered; with a handler the write fails instead;
/// * blocked signals would stay blocked in every hook, and keep this process from
///   being asked to stop.
///
/// To be called at the start, while there is one thread.
pub fn reset_inherited_signals() {
    extern "C" fn ignore(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = ignore;
    // SAFETY: the structures are initialised as the functions demand, and the
    // handler does nothing. Unlike an ignored signal, one with a handler is reset
    // in programs that this process starts.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const action.sa_mask,
            std::ptr::null_mut(),
        );
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}
