//! Counts, denials and latencies over a set of events, by SQL.

use crate::error::Result;
use crate::query::{
    AgentStats, EventFilter, HookStats, Latency, NameCount, Stats, TimeBucket, Timeline,
};
use crate::row::rfc3339_micros;
use crate::sql::{LATENCY_COLUMNS, ResultRow, Statement, count_if};
use crate::store::{Store, count_by, select_all, select_int};

pub(crate) const MAX_BUCKETS: usize = 500;
pub(crate) const MAX_HOOKS: usize = 200;

pub(crate) fn query_stats<S: Store + ?Sized>(
    store: &S,
    filter: &EventFilter,
    buckets: usize,
) -> Result<Stats> {
    Ok(Stats::from_parts(
        query_agents(store, filter)?,
        query_hooks(store, filter)?,
        count_by(store, "event", filter)?,
        count_sessions(store, filter)?,
        query_timeline(store, filter, buckets)?,
    ))
}

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

fn query_agents<S: Store + ?Sized>(store: &S, filter: &EventFilter) -> Result<Vec<AgentStats>> {
    let [denials, asks, failures] =
        ["decision = 'deny'", "decision = 'ask'", "kind = 'failure'"].map(count_if);
    let sql = format!(
        "SELECT agent, COUNT(*), {denials}, {asks}, {failures}, {LATENCY_COLUMNS} \
         FROM (SELECT e.agent, e.decision, e.kind, e.duration_ms, \
         ROW_NUMBER() OVER (PARTITION BY e.agent ORDER BY e.duration_ms) AS rn, \
         COUNT(*) OVER (PARTITION BY e.agent) AS n FROM anyhook_events e WHERE 1 = 1"
    );
    let mut statement = Statement::new(store.dialect(), sql);
    statement.filter(filter);
    statement.push(") t GROUP BY agent ORDER BY COUNT(*) DESC, agent");
    select_all(store, &statement, |row| {
        Ok(AgentStats {
            agent: row.text()?,
            events: row.int()?,
            denials: row.int()?,
            asks: row.int()?,
            failures: row.int()?,
            duration_ms: read_latency(row)?,
        })
    })
}

/// Hooks that a policy refused or an earlier deny skipped never ran: they have no latency.
fn query_hooks<S: Store + ?Sized>(store: &S, filter: &EventFilter) -> Result<Vec<HookStats>> {
    let [denials, troubles] = [
        "outcome = 'deny'",
        "outcome IN ('error', 'timeout', 'warn')",
    ]
    .map(count_if);
    let sql = format!(
        "SELECT agent, hook, (ARRAY_AGG(manifest ORDER BY seq DESC))[1], COUNT(*), {denials}, \
         {troubles}, {LATENCY_COLUMNS} \
         FROM (SELECT e.seq, e.agent, r.hook, r.manifest, r.outcome, r.duration_ms, \
         COALESCE(NULLIF(r.content, ''), r.manifest) AS content, \
         ROW_NUMBER() OVER (PARTITION BY e.agent, r.hook, COALESCE(NULLIF(r.content, ''), r.manifest) \
         ORDER BY r.duration_ms) AS rn, COUNT(*) OVER \
         (PARTITION BY e.agent, r.hook, COALESCE(NULLIF(r.content, ''), r.manifest)) AS n \
         FROM anyhook_runs r JOIN anyhook_events e ON e.seq = r.seq \
         WHERE r.outcome NOT IN ('skipped', 'refused', 'started')"
    );
    let mut statement = Statement::new(store.dialect(), sql);
    statement.filter(filter).push(
        ") t GROUP BY agent, hook, content \
         ORDER BY MAX(CASE WHEN rn = (n * 95 + 99) / 100 THEN duration_ms END) DESC, agent, hook, content LIMIT ",
    );
    statement.size(MAX_HOOKS);
    select_all(store, &statement, |row| {
        Ok(HookStats {
            agent: row.text()?,
            hook: row.text()?,
            manifest: row.text()?,
            runs: row.int()?,
            denials: row.int()?,
            troubles: row.int()?,
            duration_ms: read_latency(row)?,
        })
    })
}

fn count_sessions<S: Store + ?Sized>(store: &S, filter: &EventFilter) -> Result<i64> {
    let sql = "SELECT COUNT(*) FROM (SELECT DISTINCT e.agent, e.session_id FROM anyhook_events e \
         WHERE e.session_id IS NOT NULL";
    let mut statement = Statement::new(store.dialect(), sql);
    statement.filter(filter).push(") t");
    select_int(store, &statement)
}

fn query_timeline<S: Store + ?Sized>(
    store: &S,
    filter: &EventFilter,
    buckets: usize,
) -> Result<Timeline> {
    let sql = "SELECT COUNT(*), MIN(e.time_us), MAX(e.time_us) FROM anyhook_events e WHERE 1 = 1";
    let mut range = Statement::new(store.dialect(), sql);
    range.filter(filter);
    let ranges = select_all(store, &range, |row| {
        Ok((row.int()?, row.int()?, row.int()?))
    })?;
    let Some((1.., first, last)) = ranges.first().copied() else {
        return Ok(Timeline::default());
    };
    let seconds = bucket_seconds(filter, first, last, buckets);
    let width_us = seconds.saturating_mul(1_000_000);
    let denials = count_if("e.decision = 'deny'");
    let sql = format!(
        "SELECT e.time_us / {width_us} AS bucket, COUNT(*), {denials} \
         FROM anyhook_events e WHERE 1 = 1"
    );
    let mut statement = Statement::new(store.dialect(), sql);
    statement.filter(filter).push(" GROUP BY 1 ORDER BY 1");
    let buckets = select_all(store, &statement, |row| {
        Ok(TimeBucket {
            start: rfc3339_micros(row.int()?.saturating_mul(width_us)),
            events: row.int()?,
            denials: row.int()?,
        })
    })?;
    Ok(Timeline { seconds, buckets })
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

fn read_latency(row: &mut ResultRow) -> Result<Latency> {
    Ok(Latency {
        p50: row.real()?,
        p95: row.real()?,
        p99: row.real()?,
        max: row.real()?,
    })
}
