//! [`Stats`] counted in memory. The databases count the same in SQL, and a test compares them.

use std::collections::{BTreeMap, BTreeSet};

use crate::query::{AgentStats, Bucket, Count, EventFilter, HookStats, Latency, OverTime, Stats};
use crate::row::{EventRow, rfc3339};
use crate::stats::{BUCKETS_MAX, HOOKS_MAX, width};

const NAMES_MAX: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    agents: BTreeMap<String, Agent>,
    /// By agent, hook and manifest.
    hooks: BTreeMap<(String, String, String), Hook>,
    events: BTreeMap<String, (i64, i64)>,
    sessions: BTreeSet<(String, String)>,
    /// Time, and whether it was denied.
    times: Vec<(i64, bool)>,
}

#[derive(Debug, Default)]
struct Agent {
    denials: i64,
    asks: i64,
    failures: i64,
    durations: Vec<f64>,
}

#[derive(Debug, Default)]
struct Hook {
    denials: i64,
    troubles: i64,
    durations: Vec<f64>,
}

impl Tally {
    pub fn add(&mut self, row: &EventRow) {
        let is_denied = row.decision.as_deref() == Some("deny");
        let agent = self.agents.entry(row.agent.clone()).or_default();
        agent.denials += i64::from(is_denied);
        agent.asks += i64::from(row.decision.as_deref() == Some("ask"));
        agent.failures += i64::from(row.kind == "failure");
        agent.durations.push(row.duration_ms);
        for run in &row.runs {
            // These never ran, so they have no latency.
            if matches!(run.outcome.as_str(), "skipped" | "refused" | "started") {
                continue;
            }
            let key = (row.agent.clone(), run.hook.clone(), run.manifest.clone());
            let hook = self.hooks.entry(key).or_default();
            hook.denials += i64::from(run.outcome == "deny");
            let is_trouble = matches!(run.outcome.as_str(), "error" | "timeout" | "warn");
            hook.troubles += i64::from(is_trouble);
            hook.durations.push(run.duration_ms);
        }
        let event = self.events.entry(row.event.clone()).or_default();
        event.0 += 1;
        event.1 += i64::from(is_denied);
        if let Some(session) = &row.session_id {
            self.sessions.insert((row.agent.clone(), session.clone()));
        }
        self.times.push((row.time_us, is_denied));
    }

    pub fn stats(self, filter: &EventFilter, buckets: usize) -> Stats {
        let mut by_agent: Vec<AgentStats> = self
            .agents
            .into_iter()
            .map(|(agent, mut seen)| AgentStats {
                agent,
                events: count(&seen.durations),
                denials: seen.denials,
                asks: seen.asks,
                failures: seen.failures,
                duration_ms: latency(&mut seen.durations),
            })
            .collect();
        by_agent.sort_by_key(|agent| std::cmp::Reverse(agent.events));
        let mut by_hook: Vec<HookStats> = self
            .hooks
            .into_iter()
            .map(|((agent, hook, manifest), mut seen)| HookStats {
                agent,
                hook,
                manifest,
                runs: count(&seen.durations),
                denials: seen.denials,
                troubles: seen.troubles,
                duration_ms: latency(&mut seen.durations),
            })
            .collect();
        by_hook.sort_by(|one, other| other.duration_ms.p95.total_cmp(&one.duration_ms.p95));
        by_hook.truncate(usize::try_from(HOOKS_MAX).unwrap_or(usize::MAX));
        let mut by_event: Vec<Count> = self
            .events
            .into_iter()
            .map(|(name, (count, denials))| Count {
                name,
                count,
                denials,
            })
            .collect();
        by_event.sort_by_key(|event| std::cmp::Reverse(event.count));
        by_event.truncate(NAMES_MAX);
        let sum = |part: fn(&AgentStats) -> i64| by_agent.iter().map(part).sum();
        Stats {
            events: sum(|agent| agent.events),
            denials: sum(|agent| agent.denials),
            asks: sum(|agent| agent.asks),
            failures: sum(|agent| agent.failures),
            sessions: i64::try_from(self.sessions.len()).unwrap_or(i64::MAX),
            by_hook,
            by_event,
            over_time: over_time(&self.times, filter, buckets.clamp(1, BUCKETS_MAX)),
            by_agent,
        }
    }
}

fn over_time(times: &[(i64, bool)], filter: &EventFilter, buckets: usize) -> OverTime {
    let first = times.iter().map(|(time, _)| *time).min();
    let last = times.iter().map(|(time, _)| *time).max();
    let (Some(first), Some(last)) = (first, last) else {
        return OverTime {
            seconds: 0,
            buckets: Vec::new(),
        };
    };
    let from = filter.since_us.unwrap_or(first).max(0);
    let until = filter.until_us.unwrap_or(last).max(from);
    let span = until.saturating_sub(from);
    let seconds = width(span, i64::try_from(buckets).unwrap_or(1));
    let width_us = seconds.saturating_mul(1_000_000).max(1);
    let mut counts: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for (time, is_denied) in times {
        let bucket = counts.entry(time / width_us).or_default();
        bucket.0 += 1;
        bucket.1 += i64::from(*is_denied);
    }
    let buckets = counts
        .into_iter()
        .map(|(bucket, (events, denials))| Bucket {
            start: rfc3339(bucket.saturating_mul(width_us)),
            events,
            denials,
        })
        .collect();
    OverTime { seconds, buckets }
}

fn count(durations: &[f64]) -> i64 {
    i64::try_from(durations.len()).unwrap_or(i64::MAX)
}

/// Nearest rank, as the databases have it.
fn latency(durations: &mut [f64]) -> Latency {
    durations.sort_by(f64::total_cmp);
    let rank = |percent: usize| {
        let at = (durations.len() * percent).div_ceil(100);
        durations
            .get(at.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    };
    Latency {
        p50: rank(50),
        p95: rank(95),
        p99: rank(99),
        max: rank(100),
    }
}
