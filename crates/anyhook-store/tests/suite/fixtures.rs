//! Records and journals for the tests.

use std::io::Write;
use std::path::Path;

use anyhook_model::{Decision, HookEvent, HookResponse, HookRun, Record, RunOutcome};
use anyhook_store::{EventFilter, Latency, PageQuery, Stats, Store};
use serde_json::{Map, Value, json};

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn record(id: &str, second: u32) -> Record {
    Record {
        v: 1,
        id: id.to_owned(),
        time: format!("2026-03-01T10:{:02}:{:02}.5Z", second / 60, second % 60),
        agent: "claude-code".to_owned(),
        event: HookEvent {
            event: "before_tool_execute".to_owned(),
            source: "claude-code".to_owned(),
            native_event: "PreToolUse".to_owned(),
            session_id: Some("s1".to_owned()),
            cwd: Some("/p".to_owned()),
            data: object(
                json!({"tool_name": "shell", "tool_input": {"command": format!("echo {id}")}}),
            ),
            ..HookEvent::default()
        },
        duration_ms: f64::from(second),
        ..Record::default()
    }
}

pub(crate) fn denied(mut record: Record, reason: &str) -> Record {
    record.decision = Some(Decision::Deny);
    record.response = HookResponse::deny(reason);
    record.hooks = vec![HookRun {
        hook: "guard".to_owned(),
        manifest: "/p/.anyhook/hooks.yaml".to_owned(),
        outcome: RunOutcome::Deny,
        exit: Some(2),
        duration_ms: 3.5,
        message: Some(reason.to_owned()),
        ..HookRun::default()
    }];
    record
}

pub(crate) fn all(store: &dyn Store, filter: EventFilter) -> Vec<String> {
    let query = PageQuery {
        filter,
        limit: 1000,
        ..PageQuery::default()
    };
    let page = store.events(&query).unwrap();
    page.items.into_iter().map(|item| item.id).collect()
}

pub(crate) fn append(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(name))
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

pub(crate) fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap() + "\n"
}

/// The records of all events, oldest first.
pub(crate) fn every_record(store: &dyn Store) -> Vec<String> {
    let mut records = Vec::new();
    let mut last = 0;
    loop {
        let rows = store.after(last, 500).unwrap();
        let Some(newest) = rows.last() else {
            return records;
        };
        last = newest.summary.seq;
        records.extend(rows.into_iter().map(|row| row.body));
    }
}

/// Within one percent.
pub(crate) fn is_near(found: f64, exact: f64) -> bool {
    (found - exact).abs() <= exact.abs() / 100.0
}

/// Both say the same; PostgreSQL's percentiles are exact.
pub(crate) fn assert_same_stats(one: &Stats, other: &Stats, what: &str) {
    // Percentiles that are not exact may change the order.
    let sorted = |stats: &Stats| {
        let mut stats = stats.clone();
        stats
            .by_hook
            .sort_by_key(|hook| [&hook.agent, &hook.hook, &hook.manifest].map(String::clone));
        stats
    };
    let (one, other) = (&sorted(one), &sorted(other));
    let latencies = |stats: &Stats| -> Vec<f64> {
        let agents = stats.by_agent.iter().map(|agent| agent.duration_ms);
        let hooks = stats.by_hook.iter().map(|hook| hook.duration_ms);
        let all = agents.chain(hooks);
        all.flat_map(|latency| [latency.p50, latency.p95, latency.p99, latency.max])
            .collect()
    };
    for (found, exact) in latencies(one).into_iter().zip(latencies(other)) {
        assert!(is_near(found, exact), "{what}: {found}, {exact}");
    }
    let counts = |stats: &Stats| {
        let mut stats = stats.clone();
        for agent in &mut stats.by_agent {
            agent.duration_ms = Latency::default();
        }
        for hook in &mut stats.by_hook {
            hook.duration_ms = Latency::default();
        }
        stats
    };
    assert_eq!(counts(one), counts(other), "{what}");
}
