//! How many calls run their hooks at the same time, shared fairly between projects.
//!
//! A project may hold at most as many slots as are left for all others. So calls that
//! hang in one project leave half of all slots, those of a second one a quarter, and so on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use anyhook_util::sync::lock;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct HookSlots {
    state: Mutex<SlotState>,
    freed: Notify,
}

#[derive(Debug)]
struct SlotState {
    free: usize,
    by_project: HashMap<String, usize>,
}

/// The right to run one call's hooks, until it is dropped.
pub(crate) struct HookSlot {
    project: String,
    slots: Arc<HookSlots>,
}

impl HookSlots {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(SlotState {
                free: count.max(1),
                by_project: HashMap::new(),
            }),
            freed: Notify::new(),
        })
    }

    /// Waits until `project` may run another call.
    pub(crate) async fn acquire(self: &Arc<Self>, project: &str) -> HookSlot {
        loop {
            // Created before the attempt, so that no notification is missed after it.
            let freed = self.freed.notified();
            if let Some(slot) = self.try_acquire(project) {
                return slot;
            }
            freed.await;
        }
    }

    fn try_acquire(self: &Arc<Self>, project: &str) -> Option<HookSlot> {
        let mut state = lock(&self.state);
        let held = state.by_project.get(project).copied().unwrap_or_default();
        if state.free == 0 || held >= state.free {
            return None;
        }
        state.free -= 1;
        *state.by_project.entry(project.to_owned()).or_default() += 1;
        Some(HookSlot {
            project: project.to_owned(),
            slots: self.clone(),
        })
    }
}

impl Drop for HookSlot {
    fn drop(&mut self) {
        let mut state = lock(&self.slots.state);
        state.free += 1;
        if let Some(held) = state.by_project.get_mut(&self.project) {
            *held -= 1;
            if *held == 0 {
                state.by_project.remove(&self.project);
            }
        }
        drop(state);
        self.slots.freed.notify_waiters();
    }
}

/// The folder of a payload that is not decoded yet, only to share slots by.
pub(crate) fn folder_hint(payload: &[u8]) -> &str {
    const KEY: &[u8] = b"\"cwd\"";
    let hint = || {
        let at = payload.windows(KEY.len()).position(|part| part == KEY)?;
        let rest = payload.get(at + KEY.len()..)?;
        let mut quoted = rest.split(|byte| *byte == b'"');
        (quoted.next()?.trim_ascii() == b":").then_some(())?;
        std::str::from_utf8(quoted.next()?).ok()
    };
    hint().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_leaves_as_much_as_it_takes() {
        let slots = HookSlots::new(16);
        let mut held = Vec::new();
        let mut take = |project: &str| {
            let before = held.len();
            while let Some(slot) = slots.try_acquire(project) {
                held.push(slot);
            }
            held.len() - before
        };
        assert_eq!(
            ["a", "b", "a", "c", "d", "e"].map(&mut take),
            [8, 4, 0, 2, 1, 1]
        );
        held.clear();
        let state = lock(&slots.state);
        assert_eq!((state.free, state.by_project.len()), (16, 0));
    }

    #[test]
    fn hints() {
        for (payload, hint) in [
            (r#"{"a":1,"cwd": "/p","b":2}"#, "/p"),
            (r#"{"cwd":null,"b":"x"}"#, ""),
            (r#"{"cwd":"/p"#, "/p"),
            (r#"{"cwd""#, ""),
            ("", ""),
        ] {
            assert_eq!(folder_hint(payload.as_bytes()), hint, "{payload}");
        }
    }
}
