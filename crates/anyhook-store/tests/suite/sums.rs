//! Sums that are kept while events come and go are those of counting every event.

use anyhook_model::{Decision, HookRun, Record, RecordKind, RunOutcome};
use anyhook_store::{EventFilter, Retention, Stats, Store, scan};
use serde_json::json;

use crate::Opener;
use crate::fixtures::{append, assert_same_stats, every_record, line, object, record};

const HOUR_US: i64 = 3_600_000_000;
/// 2026-03-01T00:00:00Z.
const BEGIN_US: i64 = 1_772_323_200_000_000;

/// Events of four days: several agents, tools, machines and hooks, some in one burst.
pub(crate) fn records(count: u32) -> Vec<Record> {
    (0..count)
        .map(|n| {
            let mut made = record(&format!("e{n:05}"), 1);
            let spread = i64::from(n) * 7_919 % 96;
            let time_us = BEGIN_US + spread * HOUR_US + i64::from(n % 60) * 61_000_000;
            made.time = anyhook_store::rfc3339_micros(time_us);
            made.agent = ["claude-code", "codex", "gemini-cli"][(n % 3) as usize].to_owned();
            made.duration_ms = f64::from(n * 37 % 1000) / 7.0;
            made.event.session_id = (n % 11 != 0).then(|| format!("s{}", n / 20));
            made.event.machine_id = Some(format!("m{}", n % 4));
            made.event.project_id = (n % 5 == 0).then(|| "p".to_owned());
            if n % 4 == 1 {
                "after_tool_execute".clone_into(&mut made.event.event);
                made.event.data = object(
                    json!({"tool_name": "file_write", "tool_input": {"path": format!("/p/f{n}")}}),
                );
            }
            made.decision = match n % 9 {
                0 => Some(Decision::Deny),
                1 => Some(Decision::Ask),
                2 => Some(Decision::Allow),
                _ => None,
            };
            if n % 13 == 0 {
                made.kind = RecordKind::Failure;
            }
            for hook in 0..n % 3 {
                made.hooks.push(HookRun {
                    hook: format!("hook-{hook}"),
                    manifest: format!("/home/user-{}/hooks.yaml", n % 7 * hook),
                    content: (hook == 0).then(|| "one".to_owned()),
                    outcome: [
                        RunOutcome::Allow,
                        RunOutcome::Deny,
                        RunOutcome::Timeout,
                        RunOutcome::Skipped,
                    ][(n % 4) as usize],
                    duration_ms: f64::from(n * 31 % 400) / 3.0,
                    ..HookRun::default()
                });
            }
            made
        })
        .collect()
}

pub(crate) fn filters() -> Vec<EventFilter> {
    let text = |text: &str| Some(text.to_owned());
    let none = EventFilter::default;
    let at = |hours: i64, more_us: i64| Some(BEGIN_US + hours * HOUR_US + more_us);
    let mut filters = vec![
        none(),
        EventFilter {
            agent: text("codex"),
            ..none()
        },
        EventFilter {
            tool: text("shell"),
            decision: text("deny"),
            ..none()
        },
        EventFilter {
            machine: text("m1"),
            ..none()
        },
        EventFilter {
            project_id: text("p"),
            event: text("BEFORE_TOOL"),
            ..none()
        },
        EventFilter {
            decision: text("none"),
            machine: text("m2"),
            ..none()
        },
        EventFilter {
            session: text("s3"),
            ..none()
        },
        EventFilter {
            text: text("/p/f1"),
            ..none()
        },
        EventFilter {
            text: text("F"),
            agent: text("codex"),
            ..none()
        },
    ];
    for (since_us, until_us) in [
        (at(0, 0), at(24, 0)),
        (at(5, 1), at(77, -1)),
        (at(30, 17_000_000), None),
        (None, at(50, 999)),
        (at(10, 5), at(10, 90_000_000)),
        (at(-400, 3), at(4000, 7)),
        (at(200, 0), None),
    ] {
        for agent in [None, text("claude-code")] {
            for machine in [None, text("m3")] {
                filters.push(EventFilter {
                    agent: agent.clone(),
                    machine,
                    since_us,
                    until_us,
                    ..none()
                });
            }
        }
    }
    filters
}

/// Compares the store's statistics with those of all its records, one by one.
pub(crate) fn assert_sums_equal_a_recount(store: &dyn Store) {
    let dir = tempfile::tempdir().unwrap();
    for record in every_record(store) {
        append(dir.path(), "events.jsonl", &(record + "\n"));
    }
    for filter in filters() {
        for buckets in [5, 60] {
            let counted: Stats = scan::stats(dir.path(), &filter, buckets).unwrap();
            let summed = store.stats(&filter, buckets).unwrap();
            assert_same_stats(&counted, &summed, &format!("{filter:?} {buckets}"));
        }
    }
}

pub(crate) fn sums_equal_a_recount(opener: Opener) {
    let store = opener();
    let records = records(900);
    for batch in records.chunks(70) {
        store.ingest(batch).unwrap();
    }
    store.ingest(&records[100..200]).unwrap();
    assert_sums_equal_a_recount(&*store);
    for part in [4, 3, 2] {
        let keep = Retention {
            max_bytes: Some(store.stored_bytes().unwrap() * (part - 1) / part),
            ..Retention::default()
        };
        assert!(store.retain(&keep).unwrap() > 0);
        assert_sums_equal_a_recount(&*store);
        store.ingest(&records[..50]).unwrap();
    }
    assert_sums_equal_a_recount(&*opener());
}

/// A thousand homes are not a thousand hooks.
pub(crate) fn hooks_are_counted_by_name_and_content(opener: Opener) {
    let store = opener();
    let records: Vec<_> = (0..40_u32)
        .map(|n| {
            let mut made = record(&format!("e{n}"), n);
            made.hooks.push(HookRun {
                hook: "guard".to_owned(),
                manifest: format!("/home/user-{n}/.config/anyhook/hooks.yaml"),
                content: Some(if n < 30 { "old" } else { "new" }.to_owned()),
                ..HookRun::default()
            });
            made
        })
        .collect();
    store.ingest(&records).unwrap();
    let stats = store.stats(&EventFilter::default(), 5).unwrap();
    let mut runs: Vec<_> = stats.by_hook.iter().map(|hook| hook.runs).collect();
    runs.sort_unstable();
    assert_eq!(runs, [10, 30]);
    let dir = tempfile::tempdir().unwrap();
    for record in &records {
        append(dir.path(), "events.jsonl", &line(record));
    }
    let counted = scan::stats(dir.path(), &EventFilter::default(), 5).unwrap();
    assert_eq!(counted.by_hook.len(), 2);
}
