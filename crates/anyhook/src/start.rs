//! Where the C library starts us.
//!
//! What Rust does before its own `main` costs a tenth of an empty process, most
//! of it to read `/proc/self/maps` for the sake of a message that a stack
//! overflow would get, and `anyhook run` starts at every tool call. The parts
//! that matter are done here.

use std::ffi::{c_char, c_int};
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stderr, stdin, stdout};
use signal_hook::consts::SIGPIPE;

/// What a program exits with when Rust code has panicked.
const PANICKED: u8 = 101;

#[expect(
    unsafe_code,
    reason = "the C library knows this function by its name; no code of ours has another one of it"
)]
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    hold_standard_streams();
    // With a handler, a write that nobody reads is an error and not the end.
    let _ = signal_hook::flag::register(SIGPIPE, Arc::new(AtomicBool::new(false)));
    let code = std::panic::catch_unwind(crate::work).unwrap_or(PANICKED);
    // It also writes what is still in the buffer of stdout.
    std::process::exit(code.into())
}

/// A standard stream that is closed is opened on nothing: the next file would
/// get its number, and our messages.
fn hold_standard_streams() {
    let mut streams = [stdin(), stdout(), stderr()]
        .map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::empty()));
    if poll(&mut streams, Some(&Timespec::default())).is_ok_and(|ready| ready == 0) {
        return;
    }
    for stream in &streams {
        if stream.revents().contains(PollFlags::NVAL) {
            // The lowest free number is that of the stream.
            let null = File::options().read(true).write(true).open("/dev/null");
            let _ = null.map(IntoRawFd::into_raw_fd);
        }
    }
}
