//! [`Stats`] counted in memory. The databases count the same in SQL, and a test compares them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::query::{
    AgentStats, EventFilter, HookStats, Latency, NameCount, Stats, TimeBucket, Timeline,
};
use crate::row::{EventRow, rfc3339_micros, saturating_i64};
use crate::stats::{MAX_HOOKS, bucket_seconds};

const MAX_NAMES: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct StatsCounter {
    agents: BTreeMap<String, (AgentStats, Vec<f64>)>,
    /// By agent, hook and manifest.
    hooks: BTreeMap<[String; 3], (HookStats, Vec<f64>)>,
    events: BTreeMap<String, NameCount>,
    sessions: BTreeSet<(String, String)>,
    /// Time, and whether it was denied.
    times: Vec<(i64, bool)>,
}

impl StatsCounter {
    pub(crate) fn add(&mut self, row: &EventRow) {
        let event = &row.summary;
        let is_denied = event.decision.as_deref() == Some("deny");
        let (agent, durations) = self.agents.entry(event.agent.clone()).or_default();
        agent.events += 1;
        agent.denials += i64::from(is_denied);
        agent.asks += i64::from(event.decision.as_deref() == Some("ask"));
        agent.failures += i64::from(event.kind == "failure");
        durations.push(event.duration_ms);
        for run in &row.runs {
            // These never ran, so they have no latency.
            if matches!(run.outcome.as_str(), "skipped" | "refused" | "started") {
                continue;
            }
            let key = [&event.agent, &run.hook, &run.manifest].map(String::clone);
            let (hook, durations) = self.hooks.entry(key).or_default();
            hook.runs += 1;
            hook.denials += i64::from(run.outcome == "deny");
            let is_trouble = matches!(run.outcome.as_str(), "error" | "timeout" | "warn");
            hook.troubles += i64::from(is_trouble);
            durations.push(run.duration_ms);
        }
        let counted = self.events.entry(event.event.clone()).or_default();
        counted.count += 1;
        counted.denials += i64::from(is_denied);
        if let Some(session) = &event.session_id {
            self.sessions.insert((event.agent.clone(), session.clone()));
        }
        self.times.push((event.time_us, is_denied));
    }

    pub(crate) fn into_stats(self, filter: &EventFilter, buckets: usize) -> Stats {
        let agents = self.agents.into_iter();
        let mut by_agent: Vec<_> = agents
            .map(|(agent, (stats, durations))| AgentStats {
                agent,
                duration_ms: latency(durations),
                ..stats
            })
            .collect();
        by_agent.sort_by_key(|agent| Reverse(agent.events));
        let hooks = self.hooks.into_iter();
        let mut by_hook: Vec<_> = hooks
            .map(|([agent, hook, manifest], (stats, durations))| HookStats {
                agent,
                hook,
                manifest,
                duration_ms: latency(durations),
                ..stats
            })
            .collect();
        by_hook.sort_by(|one, other| other.duration_ms.p95.total_cmp(&one.duration_ms.p95));
        by_hook.truncate(MAX_HOOKS);
        let events = self.events.into_iter();
        let mut by_event: Vec<_> = events
            .map(|(name, counted)| NameCount { name, ..counted })
            .collect();
        by_event.sort_by_key(|event| Reverse(event.count));
        by_event.truncate(MAX_NAMES);
        Stats::from_parts(
            by_agent,
            by_hook,
            by_event,
            saturating_i64(self.sessions.len()),
            timeline(&self.times, filter, buckets),
        )
    }
}

fn timeline(times: &[(i64, bool)], filter: &EventFilter, buckets: usize) -> Timeline {
    let first = times.iter().map(|(time, _)| *time).min();
    let last = times.iter().map(|(time, _)| *time).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Timeline::default();
    };
    let seconds = bucket_seconds(filter, first, last, buckets);
    let width_us = seconds.saturating_mul(1_000_000).max(1);
    let mut counts: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for (time, is_denied) in times {
        let (events, denials) = counts.entry(time / width_us).or_default();
        *events += 1;
        *denials += i64::from(*is_denied);
    }
    let buckets = counts
        .into_iter()
        .map(|(bucket, (events, denials))| TimeBucket {
            start: rfc3339_micros(bucket.saturating_mul(width_us)),
            events,
            denials,
        })
        .collect();
    Timeline { seconds, buckets }
}

/// Nearest rank, as in the SQL statements.
fn latency(mut durations: Vec<f64>) -> Latency {
    durations.sort_by(f64::total_cmp);
    let rank = |percent: usize| {
        let rank = (durations.len() * percent).div_ceil(100);
        let duration = durations.get(rank.saturating_sub(1));
        duration.copied().unwrap_or_default()
    };
    Latency {
        p50: rank(50),
        p95: rank(95),
        p99: rank(99),
        max: rank(100),
    }
}
