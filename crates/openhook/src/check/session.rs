//! Sessions and tool calls that have started and not ended.

use super::report::{Problems, problem};
use crate::time::Timestamp;
use std::collections::HashMap;

/// A session between its first event and its end.
#[derive(Debug)]
pub(super) struct OpenSession {
    pub first_line: u64,
    pub last_line: u64,
    latest: Option<(Timestamp, u64)>,
    calls: HashMap<String, OpenCalls>,
}

/// Calls with the same key that have not ended.
#[derive(Debug)]
struct OpenCalls {
    first_line: u64,
    count: u32,
}

impl OpenSession {
    pub(super) fn new(line: u64) -> Self {
        Self {
            first_line: line,
            last_line: line,
            latest: None,
            calls: HashMap::new(),
        }
    }

    /// The line of an earlier event with a later time.
    pub(super) fn advance_time(&mut self, time: Timestamp, line: u64) -> Option<u64> {
        match self.latest {
            Some((latest, at)) if time < latest => Some(at),
            _ => {
                self.latest = Some((time, line));
                None
            }
        }
    }

    pub(super) fn start_call(&mut self, key: &str, line: u64) {
        let call = self.calls.entry(key.to_owned()).or_insert(OpenCalls {
            first_line: line,
            count: 0,
        });
        call.count += 1;
    }

    /// False if no such call was open.
    pub(super) fn end_call(&mut self, key: &str) -> bool {
        let Some(call) = self.calls.get_mut(key) else {
            return false;
        };
        call.count -= 1;
        if call.count == 0 {
            self.calls.remove(key);
        }
        true
    }

    pub(super) fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// Gives up on the older half of the calls, to keep memory bounded.
    pub(super) fn forget_older_calls(&mut self, id: &str, problems: &mut Problems) {
        let middle = middle(self.calls.values().map(|call| call.first_line));
        let forgotten = self.calls.extract_if(|_, call| call.first_line <= middle);
        report_unfinished(forgotten.collect(), id, problems);
    }

    /// The session or the stream is over: every open call is unfinished.
    pub(super) fn close(self, id: &str, problems: &mut Problems) {
        report_unfinished(self.calls.into_iter().collect(), id, problems);
    }
}

fn report_unfinished(mut calls: Vec<(String, OpenCalls)>, session: &str, problems: &mut Problems) {
    calls.sort_by_key(|(_, call)| call.first_line);
    for (key, call) in calls {
        for _ in 0..call.count {
            problems.add(problem::START_WITHOUT_END, call.first_line, session, || {
                format!("{key} started and did not end")
            });
        }
    }
}

/// The last line of the older half.
pub(super) fn middle(lines: impl Iterator<Item = u64>) -> u64 {
    let mut lines: Vec<u64> = lines.collect();
    let half = lines.len() / 2;
    if half == 0 {
        return u64::MAX;
    }
    *lines.select_nth_unstable(half - 1).1
}
