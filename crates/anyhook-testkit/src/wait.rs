//! Waiting for what another process or thread does.

use std::time::{Duration, Instant};

/// Longer than any step of a test takes; only a failing test waits this long.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until `find` returns something.
///
/// # Panics
/// After [`TEST_TIMEOUT`].
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until `holds` is true.
///
/// # Panics
/// After [`TEST_TIMEOUT`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}
