//! What is open: sessions that have not ended, tool calls that have not.

use super::report::{Problem, problem};
use crate::time::Timestamp;
use std::collections::HashMap;

/// A session between its first event and its end.
#[derive(Debug)]
pub(super) struct Session {
    pub first_line: u64,
    pub last_line: u64,
    latest: Option<(Timestamp, u64)>,
    calls: HashMap<String, Call>,
}

/// Calls under one key that are open.
#[derive(Debug)]
struct Call {
    line: u64,
    open: u32,
}

impl Session {
    pub(super) fn new(line: u64) -> Self {
        Self {
            first_line: line,
            last_line: line,
            latest: None,
            calls: HashMap::new(),
        }
    }

    /// The line of the earlier event whose time is after this one.
    pub(super) fn tick(&mut self, time: Timestamp, line: u64) -> Option<u64> {
        match self.latest {
            Some((latest, at)) if time < latest => Some(at),
            _ => {
                self.latest = Some((time, line));
                None
            }
        }
    }

    pub(super) fn start_call(&mut self, key: &str, line: u64) {
        if let Some(call) = self.calls.get_mut(key) {
            call.open += 1;
        } else {
            self.calls.insert(key.to_owned(), Call { line, open: 1 });
        }
    }

    /// False when no such call was open.
    pub(super) fn end_call(&mut self, key: &str) -> bool {
        let Some(call) = self.calls.get_mut(key) else {
            return false;
        };
        call.open -= 1;
        if call.open == 0 {
            self.calls.remove(key);
        }
        true
    }

    pub(super) fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// Gives up on the older half of the calls, to keep memory bounded.
    pub(super) fn forget_older_calls(&mut self, id: &str, problem: &mut Problem) {
        let middle = middle(self.calls.values().map(|call| call.line));
        let mut gone: Vec<(String, Call)> = self
            .calls
            .extract_if(|_, call| call.line <= middle)
            .collect();
        report_calls(&mut gone, id, problem);
    }

    /// The session is over, or the stream is: every open call is unfinished.
    pub(super) fn close(self, id: &str, problem: &mut Problem) {
        let mut calls: Vec<(String, Call)> = self.calls.into_iter().collect();
        report_calls(&mut calls, id, problem);
    }
}

fn report_calls(calls: &mut [(String, Call)], session: &str, found: &mut Problem) {
    debug_assert_eq!(found.code, problem::START_WITHOUT_END);
    calls.sort_by_key(|(_, call)| call.line);
    for (key, call) in calls {
        for _ in 0..call.open {
            found.add(call.line, session, || {
                format!("{key} started and did not end")
            });
        }
    }
}

/// The line that parts the older half from the younger one.
pub(super) fn middle(lines: impl Iterator<Item = u64>) -> u64 {
    let mut lines: Vec<u64> = lines.collect();
    let half = lines.len() / 2;
    if half == 0 {
        return u64::MAX;
    }
    *lines.select_nth_unstable(half - 1).1
}
