//! [`Stats`] counted in memory, from events or from sums of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::query::{AgentStats, EventFilter, HookStats, NameCount, Stats, TimeBucket, Timeline};
use crate::rollup::{HookSums, NumberedRun, RunEffect};
use crate::row::{EventRow, RunRow, rfc3339_micros, saturating_i64};
use crate::sketch::DurationSketch;
use crate::stats::{MAX_HOOKS, bucket_seconds};
use crate::store::MAX_NAMES;

#[derive(Debug, Default)]
pub(crate) struct StatsCounter {
    agents: BTreeMap<String, (AgentStats, DurationSketch)>,
    /// By agent, name and content; with the manifest that was seen last.
    hooks: BTreeMap<[String; 3], (String, HookSums)>,
    events: BTreeMap<String, NameCount>,
    sessions: BTreeSet<(String, String)>,
    /// Events and denials by second.
    seconds: BTreeMap<i64, (i64, i64)>,
    /// The first and last event.
    range_us: Option<(i64, i64)>,
}

/// Events of the same kind.
pub(crate) struct CountedEvents<'a> {
    pub agent: &'a str,
    pub event: &'a str,
    pub kind: &'a str,
    pub decision: &'a str,
    pub count: i64,
}

impl CountedEvents<'_> {
    fn denials(&self) -> i64 {
        if self.decision == "deny" {
            self.count
        } else {
            0
        }
    }
}

impl StatsCounter {
    pub(crate) fn add(&mut self, row: &EventRow) {
        let event = &row.summary;
        let counted = CountedEvents {
            agent: &event.agent,
            event: &event.event,
            kind: &event.kind,
            decision: event.decision.as_deref().unwrap_or_default(),
            count: 1,
        };
        let mut sketch = DurationSketch::default();
        sketch.add(event.duration_ms);
        self.add_events(&counted, &sketch);
        self.add_time(event.time_us.div_euclid(1_000_000), &counted);
        let (first, last) = self.range_us.unwrap_or((event.time_us, event.time_us));
        self.range_us = Some((first.min(event.time_us), last.max(event.time_us)));
        for run in row.runs.iter().filter(|run| run.has_run()) {
            let mut sums = HookSums::default();
            sums.add(NumberedRun {
                hook: 0,
                effect: RunEffect::from_run(run),
                duration_ms: run.duration_ms,
            });
            self.add_hook(&event.agent, run, &sums);
        }
        if let Some(session) = &event.session_id {
            self.sessions.insert((event.agent.clone(), session.clone()));
        }
    }

    pub(crate) fn add_events(&mut self, events: &CountedEvents<'_>, durations: &DurationSketch) {
        let count = events.count;
        let only = |holds: bool| if holds { count } else { 0 };
        if !self.agents.contains_key(events.agent) {
            self.agents
                .insert(events.agent.to_owned(), Default::default());
        }
        if let Some((agent, sketch)) = self.agents.get_mut(events.agent) {
            agent.events += count;
            agent.denials += events.denials();
            agent.asks += only(events.decision == "ask");
            agent.failures += only(events.kind == "failure");
            sketch.merge(durations);
        }
        if !self.events.contains_key(events.event) {
            self.events
                .insert(events.event.to_owned(), NameCount::default());
        }
        if let Some(name) = self.events.get_mut(events.event) {
            name.count += count;
            name.denials += events.denials();
        }
    }

    pub(crate) fn add_time(&mut self, second: i64, events: &CountedEvents<'_>) {
        let (count, denials) = self.seconds.entry(second).or_default();
        *count += events.count;
        *denials += events.denials();
    }

    pub(crate) fn add_hook(&mut self, agent: &str, run: &RunRow, sums: &HookSums) {
        let key = [agent, &run.hook, &run.content].map(str::to_owned);
        let (manifest, all) = self.hooks.entry(key).or_default();
        manifest.clone_from(&run.manifest);
        all.merge(sums);
    }

    /// Of the events that were added one by one.
    pub(crate) fn into_stats(self, filter: &EventFilter, buckets: usize) -> Stats {
        let sessions = saturating_i64(self.sessions.len());
        let width = self
            .range_us
            .map(|(first, last)| bucket_seconds(filter, first, last, buckets));
        self.finish(sessions, width)
    }

    /// `width`: of a bucket of the timeline, in seconds.
    pub(crate) fn finish(self, sessions: i64, width: Option<i64>) -> Stats {
        let agents = self.agents.into_iter();
        let mut by_agent: Vec<_> = agents
            .map(|(agent, (stats, durations))| AgentStats {
                agent,
                duration_ms: durations.latency(),
                ..stats
            })
            .collect();
        by_agent.sort_by_key(|agent| Reverse(agent.events));
        let hooks = self.hooks.into_iter();
        let mut by_hook: Vec<_> = hooks
            .map(|([agent, hook, _], (manifest, sums))| HookStats {
                agent,
                hook,
                manifest,
                runs: sums.runs,
                denials: sums.denials,
                troubles: sums.troubles,
                duration_ms: sums.sketch.latency(),
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
        let over_time = width.map_or_else(Timeline::default, |width| {
            timeline(&self.seconds, width.max(1))
        });
        Stats::from_parts(by_agent, by_hook, by_event, sessions, over_time)
    }
}

fn timeline(times: &BTreeMap<i64, (i64, i64)>, seconds: i64) -> Timeline {
    let mut counts: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for (second, (more_events, more_denials)) in times {
        let (events, denials) = counts.entry(second.div_euclid(seconds)).or_default();
        *events += more_events;
        *denials += more_denials;
    }
    let buckets = counts
        .into_iter()
        .map(|(bucket, (events, denials))| TimeBucket {
            start: rfc3339_micros(bucket.saturating_mul(seconds).saturating_mul(1_000_000)),
            events,
            denials,
        })
        .collect();
    Timeline { seconds, buckets }
}
