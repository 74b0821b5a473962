//! What statistics are made of.

use crate::query::{AgentStats, EventFilter, HookStats, NameCount, Stats, Timeline};

pub(crate) const MAX_BUCKETS: usize = 500;
pub(crate) const MAX_HOOKS: usize = 200;

impl Stats {
    pub(crate) fn from_parts(
        by_agent: Vec<AgentStats>,
        by_hook: Vec<HookStats>,
        by_event: Vec<NameCount>,
        sessions: i64,
        over_time: Timeline,
    ) -> Self {
        let sum = |part: fn(&AgentStats) -> i64| by_agent.iter().map(part).sum();
        Self {
            events: sum(|agent| agent.events),
            denials: sum(|agent| agent.denials),
            asks: sum(|agent| agent.asks),
            failures: sum(|agent| agent.failures),
            sessions,
            by_agent,
            by_hook,
            by_event,
            over_time,
        }
    }
}

/// The smallest round width that needs at most `buckets`, for events between `first` and
/// `last` or the times of the filter.
pub(crate) fn bucket_seconds(filter: &EventFilter, first: i64, last: i64, buckets: usize) -> i64 {
    const ROUND_WIDTHS_SECONDS: [i64; 14] = [
        1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800,
    ];
    let from = filter.since_us.unwrap_or(first).max(0);
    let until = filter.until_us.unwrap_or(last).max(from);
    let buckets = i64::try_from(buckets.clamp(1, MAX_BUCKETS)).unwrap_or(1);
    let wanted = until.saturating_sub(from) / 1_000_000 / buckets + 1;
    ROUND_WIDTHS_SECONDS
        .into_iter()
        .find(|seconds| *seconds >= wanted)
        .unwrap_or_else(|| whole_days(wanted))
}

fn whole_days(seconds: i64) -> i64 {
    const DAY_SECONDS: i64 = 86_400;
    (seconds / DAY_SECONDS + 1) * DAY_SECONDS
}
