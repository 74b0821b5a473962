//! Counts, denials and latencies over a set of events.

use crate::backend::Backend;
use crate::error::Result;
use crate::query::{AgentStats, Bucket, EventFilter, HookStats, Latency, OverTime, Stats};
use crate::row::rfc3339;
use crate::sql::{Cells, LATENCY, Statement, count_if};
use crate::store::counts;

pub(crate) const BUCKETS_MAX: usize = 500;
pub(crate) const HOOKS_MAX: i64 = 200;

pub(crate) fn collect<B: Backend + ?Sized>(
    backend: &B,
    filter: &EventFilter,
    buckets: usize,
) -> Result<Stats> {
    let by_agent = agents(backend, filter)?;
    let sum = |part: fn(&AgentStats) -> i64| by_agent.iter().map(part).sum();
    Ok(Stats {
        events: sum(|agent| agent.events),
        denials: sum(|agent| agent.denials),
        asks: sum(|agent| agent.asks),
        failures: sum(|agent| agent.failures),
        sessions: sessions(backend, filter)?,
        by_hook: hooks(backend, filter)?,
        by_event: counts(backend, "event", filter)?,
        over_time: over_time(backend, filter, buckets.clamp(1, BUCKETS_MAX))?,
        by_agent,
    })
}

fn agents<B: Backend + ?Sized>(backend: &B, filter: &EventFilter) -> Result<Vec<AgentStats>> {
    let mut statement = Statement::new(backend.dialect(), "SELECT agent, COUNT(*), ");
    for condition in ["decision = 'deny'", "decision = 'ask'", "kind = 'failure'"] {
        statement.push(&count_if(condition)).push(", ");
    }
    statement.push(LATENCY).push(
        " FROM (SELECT e.agent, e.decision, e.kind, e.duration_ms, \
         ROW_NUMBER() OVER (PARTITION BY e.agent ORDER BY e.duration_ms) AS rn, \
         COUNT(*) OVER (PARTITION BY e.agent) AS n FROM anyhook_events e WHERE 1 = 1",
    );
    statement.filter(filter);
    statement.push(") t GROUP BY agent ORDER BY COUNT(*) DESC, agent");
    backend
        .select(&statement)?
        .iter_mut()
        .map(|cells| {
            Ok(AgentStats {
                agent: cells.text()?,
                events: cells.int()?,
                denials: cells.int()?,
                asks: cells.int()?,
                failures: cells.int()?,
                duration_ms: latency(cells)?,
            })
        })
        .collect()
}

/// Hooks that a policy refused or an earlier deny skipped never ran: they have no latency.
fn hooks<B: Backend + ?Sized>(backend: &B, filter: &EventFilter) -> Result<Vec<HookStats>> {
    let mut statement = Statement::new(
        backend.dialect(),
        "SELECT agent, hook, manifest, COUNT(*), ",
    );
    for condition in [
        "outcome = 'deny'",
        "outcome IN ('error', 'timeout', 'warn')",
    ] {
        statement.push(&count_if(condition)).push(", ");
    }
    statement.push(LATENCY).push(
        " FROM (SELECT e.agent, r.hook, r.manifest, r.outcome, r.duration_ms, \
         ROW_NUMBER() OVER (PARTITION BY e.agent, r.hook, r.manifest ORDER BY r.duration_ms) AS rn, \
         COUNT(*) OVER (PARTITION BY e.agent, r.hook, r.manifest) AS n \
         FROM anyhook_runs r JOIN anyhook_events e ON e.seq = r.seq \
         WHERE r.outcome NOT IN ('skipped', 'refused', 'started')",
    );
    statement.filter(filter);
    statement.push(
        ") t GROUP BY agent, hook, manifest \
         ORDER BY MAX(CASE WHEN rn = (n * 95 + 99) / 100 THEN duration_ms END) DESC, agent, hook, manifest LIMIT ",
    );
    statement.int(HOOKS_MAX);
    backend
        .select(&statement)?
        .iter_mut()
        .map(|cells| {
            Ok(HookStats {
                agent: cells.text()?,
                hook: cells.text()?,
                manifest: cells.text()?,
                runs: cells.int()?,
                denials: cells.int()?,
                troubles: cells.int()?,
                duration_ms: latency(cells)?,
            })
        })
        .collect()
}

fn sessions<B: Backend + ?Sized>(backend: &B, filter: &EventFilter) -> Result<i64> {
    let mut statement = Statement::new(
        backend.dialect(),
        "SELECT COUNT(*) FROM (SELECT DISTINCT e.agent, e.session_id FROM anyhook_events e \
         WHERE e.session_id IS NOT NULL",
    );
    statement.filter(filter).push(") t");
    one(backend, &statement)?.map_or(Ok(0), |mut cells| cells.int())
}

fn over_time<B: Backend + ?Sized>(
    backend: &B,
    filter: &EventFilter,
    buckets: usize,
) -> Result<OverTime> {
    let mut range = Statement::new(
        backend.dialect(),
        "SELECT COUNT(*), MIN(e.time_us), MAX(e.time_us) FROM anyhook_events e WHERE 1 = 1",
    );
    range.filter(filter);
    let (count, first, last) = match one(backend, &range)? {
        Some(mut cells) => (cells.int()?, cells.int()?, cells.int()?),
        None => (0, 0, 0),
    };
    if count == 0 {
        return Ok(OverTime {
            seconds: 0,
            buckets: Vec::new(),
        });
    }
    let from = filter.since_us.unwrap_or(first).max(0);
    let until = filter.until_us.unwrap_or(last).max(from);
    let seconds = width(
        until.saturating_sub(from),
        i64::try_from(buckets).unwrap_or(1),
    );
    let width_us = seconds.saturating_mul(1_000_000);
    let mut statement = Statement::new(backend.dialect(), "SELECT e.time_us / ");
    statement
        .push(&width_us.to_string())
        .push(" AS bucket, COUNT(*), ");
    statement.push(&count_if("e.decision = 'deny'"));
    statement.push(" FROM anyhook_events e WHERE 1 = 1");
    statement.filter(filter);
    statement.push(" GROUP BY 1 ORDER BY 1");
    let buckets = backend
        .select(&statement)?
        .iter_mut()
        .map(|cells| {
            Ok(Bucket {
                start: rfc3339(cells.int()?.saturating_mul(width_us)),
                events: cells.int()?,
                denials: cells.int()?,
            })
        })
        .collect::<Result<_>>()?;
    Ok(OverTime { seconds, buckets })
}

/// The smallest round width that needs no more than `buckets`.
pub(crate) fn width(span_us: i64, buckets: i64) -> i64 {
    const ROUND: [i64; 14] = [
        1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800,
    ];
    let wanted = span_us / 1_000_000 / buckets.max(1) + 1;
    ROUND
        .into_iter()
        .find(|seconds| *seconds >= wanted)
        .unwrap_or(wanted)
}

fn latency(cells: &mut Cells) -> Result<Latency> {
    Ok(Latency {
        p50: cells.real()?,
        p95: cells.real()?,
        p99: cells.real()?,
        max: cells.real()?,
    })
}

fn one<B: Backend + ?Sized>(backend: &B, statement: &Statement) -> Result<Option<Cells>> {
    Ok(backend.select(statement)?.into_iter().next())
}
