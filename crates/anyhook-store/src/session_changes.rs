//! What events add to the sessions that they belong to.

use crate::query::EventSummary;

/// Events of one session that came, or that are deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SessionCounts {
    pub events: i64,
    pub tools: i64,
    pub denials: i64,
    pub asks: i64,
}

impl SessionCounts {
    pub(crate) fn add(&mut self, unified: &str, decision: &str, events: i64) {
        let only = |holds: bool| if holds { events } else { 0 };
        self.events += events;
        self.tools += only(unified == "BEFORE_TOOL");
        self.denials += only(decision == "deny");
        self.asks += only(decision == "ask");
    }
}

#[derive(Debug)]
pub(crate) struct SessionChange {
    pub first_us: i64,
    /// Time and number of the last event.
    pub last: (i64, i64),
    pub counts: SessionCounts,
    pub cwd: Option<String>,
    pub machine: Option<String>,
}

impl Default for SessionChange {
    fn default() -> Self {
        Self {
            first_us: i64::MAX,
            last: (i64::MIN, 0),
            counts: SessionCounts::default(),
            cwd: None,
            machine: None,
        }
    }
}

impl SessionChange {
    pub(crate) fn add(&mut self, seq: i64, event: &EventSummary) {
        self.first_us = self.first_us.min(event.time_us);
        self.last = self.last.max((event.time_us, seq));
        let decision = event.decision.as_deref().unwrap_or_default();
        self.counts.add(&event.unified, decision, 1);
        self.cwd = self.cwd.take().max(event.cwd.clone());
        self.machine = self.machine.take().max(event.machine.clone());
    }
}
