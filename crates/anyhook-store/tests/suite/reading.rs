//! What is asked of the store.

use anyhook_model::{Decision, HookRun, RecordKind, RunOutcome};
use anyhook_store::journal::JournalImporter;
use anyhook_store::{EventFilter, PageQuery, Retention, parse_micros, scan};
use serde_json::json;

use crate::Opener;
use crate::fixtures::{all, append, assert_same_stats, denied, is_near, line, object, record};

pub(crate) fn a_record_is_returned_whole(opener: Opener) {
    let mut made = denied(record("r1", 5), "No `rm` here");
    made.extra.insert("later".to_owned(), json!({"kept": true}));
    opener().ingest(std::slice::from_ref(&made)).unwrap();
    let found = opener().event("r1").unwrap().unwrap();
    assert_eq!(found.record, serde_json::to_value(&made).unwrap());
    let summary = serde_json::to_value(&found.summary).unwrap();
    assert_eq!(
        summary,
        json!({
            "seq": 1, "id": "r1", "time": "2026-03-01T10:00:05.5Z", "kind": "event",
            "agent": "claude-code", "event": "before_tool_execute", "type": "BEFORE_TOOL",
            "native_event": "PreToolUse", "session_id": "s1", "cwd": "/p", "tool": "shell",
            "detail": "echo r1", "decision": "deny", "reason": "No `rm` here",
            "duration_ms": 5.0, "hooks": 1, "failed": 0
        })
    );
    assert!(opener().event("r2").unwrap().is_none());
}

pub(crate) fn filters_narrow_the_events(opener: Opener) {
    let store = opener();
    let mut other = record("g", 30);
    other.agent = "gemini-cli".into();
    other.event.native_event = "AfterAgent".into();
    other.event.event = "agent_stop".into();
    other.event.session_id = Some("s2".to_owned());
    other.event.machine_id = Some("laptop".to_owned());
    other.event.data = object(json!({"message": "ÄRGER im Büro 100%_sure"}));
    store
        .ingest(&[record("a", 10), denied(record("d", 20), "Forbidden"), other])
        .unwrap();
    let some = |text: &str| Some(text.to_owned());
    let none = EventFilter::default;
    let cases: Vec<(EventFilter, &[&str])> = vec![
        (none(), &["g", "d", "a"]),
        (
            EventFilter {
                agent: some("gemini-cli"),
                ..none()
            },
            &["g"],
        ),
        (
            EventFilter {
                session: some("s1"),
                ..none()
            },
            &["d", "a"],
        ),
        (
            EventFilter {
                event: some("before_tool_execute"),
                ..none()
            },
            &["d", "a"],
        ),
        (
            EventFilter {
                event: some("AFTER_AGENT"),
                ..none()
            },
            &["g"],
        ),
        (
            EventFilter {
                event: some("AfterAgent"),
                ..none()
            },
            &["g"],
        ),
        (
            EventFilter {
                decision: some("deny"),
                ..none()
            },
            &["d"],
        ),
        (
            EventFilter {
                decision: some("none"),
                ..none()
            },
            &["g", "a"],
        ),
        (
            EventFilter {
                tool: some("shell"),
                ..none()
            },
            &["d", "a"],
        ),
        (
            EventFilter {
                machine: some("laptop"),
                ..none()
            },
            &["g"],
        ),
        (
            EventFilter {
                text: some("forBIDDen"),
                ..none()
            },
            &["d"],
        ),
        (
            EventFilter {
                text: some("ärger im büro 100%_S"),
                ..none()
            },
            &["g"],
        ),
        (
            EventFilter {
                text: some("%"),
                agent: some("claude-code"),
                ..none()
            },
            &[],
        ),
        (
            EventFilter {
                text: some("' OR 1=1 --"),
                ..none()
            },
            &[],
        ),
        (
            EventFilter {
                since_us: anyhook_store::parse_micros("2026-03-01T10:00:20.5Z"),
                until_us: anyhook_store::parse_micros("2026-03-01T10:00:30.5Z"),
                ..none()
            },
            &["d"],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(all(&*store, filter.clone()), expected, "{filter:?}");
        let mut live: Vec<_> = store
            .after(0, 10)
            .unwrap()
            .into_iter()
            .filter(|row| filter.matches(row))
            .map(|row| row.summary.id)
            .collect();
        live.reverse();
        assert_eq!(live, expected, "live: {filter:?}");
    }
}

/// What looks random has an index of its own.
pub(crate) fn identifiers_are_found_whole_and_in_part(opener: Opener) {
    let store = opener();
    let id = |n: u32| {
        let mixed = u64::from(n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        format!("{mixed:016x}")
    };
    let records: Vec<_> = (0..100)
        .map(|n| {
            let mut made = record(&format!("e{n:03}"), n);
            made.event.data = object(json!({
                "tool_call_id": format!("toolu_{}", id(n / 2)),
                // Too many for the index.
                "content": (0..400 * u32::from(n == 7)).map(|k| id(1000 + k)).collect::<String>(),
            }));
            made
        })
        .collect();
    // One after the other, and many at a time.
    for one in &records[..5] {
        store.ingest(std::slice::from_ref(one)).unwrap();
    }
    store.ingest(&records[5..]).unwrap();
    let found = |text: &str| {
        let text = Some(text.to_owned());
        all(
            &*store,
            EventFilter {
                text,
                ..EventFilter::default()
            },
        )
    };
    for n in (0..100).step_by(2) {
        let (one, other) = (format!("e{n:03}"), format!("e{:03}", n + 1));
        let id = id(n / 2);
        for part in [
            &id[..],
            &id[3..],
            &id[..12],
            &id[2..12],
            &format!("toolu_{id}"),
        ] {
            assert_eq!(found(part), [other.clone(), one.clone()], "{part}");
        }
    }
    assert_eq!(found(&id(1200)), ["e007"]);
    assert!(found("0123456789abcdef0").is_empty());
    // What is deleted is found no more, and what is left is.
    let keep = Retention {
        max_bytes: Some(store.stored_bytes().unwrap() / 2),
        ..Retention::default()
    };
    assert!(store.retain(&keep).unwrap() > 20);
    assert!(found(&id(0)).is_empty());
    assert_eq!(found(&id(49)), ["e099", "e098"]);
}

pub(crate) fn pages_have_no_gap_and_no_overlap(opener: Opener) {
    let store = opener();
    // Many share one moment, as events of a burst do.
    let records: Vec<_> = (0..25_u32)
        .map(|n| record(&format!("e{n:02}"), n / 7))
        .collect();
    store.ingest(&records).unwrap();
    let mut query = PageQuery {
        limit: 4,
        ..PageQuery::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = store.events(&query).unwrap();
        seen.extend(page.items.into_iter().map(|item| item.id));
        let Some(next) = page.next else { break };
        query.cursor = Some(next.parse().unwrap());
    }
    let mut expected: Vec<_> = records.iter().map(|record| record.id.clone()).collect();
    expected.reverse();
    assert_eq!(seen, expected);
    assert!("1.x".parse::<anyhook_store::PageCursor>().is_err());
}

pub(crate) fn sessions_are_summarized(opener: Opener) {
    let store = opener();
    let mut records = vec![
        record("a", 10),
        denied(record("b", 20), "x"),
        record("c", 30),
    ];
    records[2].event.session_id = Some("s2".to_owned());
    let mut twin = record("t", 5);
    twin.agent = "codex".into();
    records.push(twin);
    store.ingest(&records).unwrap();
    let query = PageQuery {
        limit: 2,
        ..PageQuery::default()
    };
    let page = store.sessions(&query).unwrap();
    let names: Vec<_> = page
        .items
        .iter()
        .map(|item| item.session_id.as_str())
        .collect();
    assert_eq!(names, ["s2", "s1"]);
    assert_eq!(
        (
            page.items[1].events,
            page.items[1].denials,
            page.items[1].tools
        ),
        (2, 1, 2)
    );
    let query = PageQuery {
        cursor: Some(page.next.unwrap().parse().unwrap()),
        ..query
    };
    let page = store.sessions(&query).unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(page.items[0].agent, "codex");
    assert!(page.next.is_none());
    let latest = store.session("s1", None).unwrap().unwrap();
    assert_eq!(
        (latest.summary.agent.as_str(), latest.summary.events),
        ("claude-code", 2)
    );
    assert_eq!(latest.by_tool[0].name, "shell");
    assert_eq!((latest.by_tool[0].count, latest.by_tool[0].denials), (2, 1));
    let twin = store.session("s1", Some("codex")).unwrap().unwrap();
    assert_eq!(twin.summary.events, 1);
    assert!(store.session("s9", None).unwrap().is_none());
}

pub(crate) fn stats_count_and_rank(opener: Opener) {
    let store = opener();
    assert_eq!(store.stats(&EventFilter::default(), 10).unwrap().events, 0);
    let mut records: Vec<_> = (1..=100_u32)
        .map(|n| {
            let mut record = denied(record(&format!("e{n}"), n), "no");
            record.hooks[0].duration_ms = f64::from(n) / 10.0;
            record.decision = (n > 90).then_some(Decision::Deny);
            record
        })
        .collect();
    records[0].kind = RecordKind::Failure;
    records[1].hooks[0].outcome = RunOutcome::Skipped;
    records[2].hooks[0].outcome = RunOutcome::Timeout;
    store.ingest(&records).unwrap();
    let stats = store.stats(&EventFilter::default(), 10).unwrap();
    assert_eq!(
        (stats.events, stats.denials, stats.failures, stats.sessions),
        (100, 10, 1, 1)
    );
    let agent = &stats.by_agent[0];
    for (rank, exact) in [
        (agent.duration_ms.p50, 50.0),
        (agent.duration_ms.p95, 95.0),
        (agent.duration_ms.p99, 99.0),
    ] {
        assert!(is_near(rank, exact), "{rank}, exactly {exact}");
    }
    let hook = &stats.by_hook[0];
    assert_eq!((hook.runs, hook.denials, hook.troubles), (99, 98, 1));
    assert_eq!(hook.duration_ms.max.to_string(), "10");
    let counted: i64 = stats
        .over_time
        .buckets
        .iter()
        .map(|bucket| bucket.events)
        .sum();
    let denied: i64 = stats
        .over_time
        .buckets
        .iter()
        .map(|bucket| bucket.denials)
        .sum();
    assert_eq!((counted, denied), (100, 10));
    assert!(stats.over_time.buckets.len() <= 11, "{:?}", stats.over_time);
    let narrow = EventFilter {
        decision: Some("deny".to_owned()),
        ..EventFilter::default()
    };
    assert_eq!(store.stats(&narrow, 10).unwrap().events, 10);
}

/// The journal asked directly and the store that took it say the same.
pub(crate) fn journal_and_store_agree(open: Opener) {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..60_u32 {
        let mut record = record(&format!("e{n}"), n * 7);
        record.duration_ms = f64::from(n * 37 % 50) + 0.25;
        if n % 4 == 0 {
            record = denied(record, &format!("no {n}"));
            record.hooks[0].duration_ms = f64::from(n % 9);
        }
        if n % 5 == 0 {
            "codex".clone_into(&mut record.agent);
            "agent_stop".clone_into(&mut record.event.event);
            "Stop".clone_into(&mut record.event.native_event);
            record.event.session_id = Some(format!("s{}", n % 3));
            record.event.machine_id = Some("m".to_owned());
        }
        if n % 7 == 0 {
            let skipped = HookRun {
                outcome: RunOutcome::Skipped,
                ..HookRun::default()
            };
            record.hooks.push(skipped);
            record.decision = Some(Decision::Ask);
        }
        if n % 11 == 0 {
            record.kind = RecordKind::Failure;
            record.event.session_id = None;
        }
        let file = match n {
            0..20 => "events-20260301T100000000-1-0.jsonl",
            20..40 => "events-20260301T110000000-1-0.jsonl",
            _ => "events.jsonl",
        };
        append(dir.path(), file, &line(&record));
        append(dir.path(), file, "not a record\n");
    }
    let store = open();
    JournalImporter::new(dir.path(), "m")
        .import_all(&*store)
        .unwrap();
    let text = |text: &str| Some(text.to_owned());
    let filters = [
        EventFilter::default(),
        EventFilter {
            agent: text("codex"),
            ..EventFilter::default()
        },
        EventFilter {
            event: text("STOP"),
            ..EventFilter::default()
        },
        EventFilter {
            event: text("PreToolUse"),
            ..EventFilter::default()
        },
        EventFilter {
            decision: text("none"),
            ..EventFilter::default()
        },
        EventFilter {
            decision: text("deny"),
            session: text("s1"),
            ..EventFilter::default()
        },
        EventFilter {
            tool: text("shell"),
            machine: text("m"),
            ..EventFilter::default()
        },
        EventFilter {
            text: text("ECHO e1"),
            ..EventFilter::default()
        },
        EventFilter {
            since_us: parse_micros("2026-03-01T10:02:00Z"),
            until_us: parse_micros("2026-03-01T10:04:00Z"),
            ..EventFilter::default()
        },
        EventFilter {
            agent: text("nobody"),
            ..EventFilter::default()
        },
    ];
    for filter in filters {
        let counted = scan::stats(dir.path(), &filter, 12).unwrap();
        let stored = store.stats(&filter, 12).unwrap();
        assert_same_stats(&counted, &stored, &format!("{filter:?}"));
        let query = PageQuery {
            filter: filter.clone(),
            limit: 25,
            ..PageQuery::default()
        };
        let mut stored = store.events(&query).unwrap().items;
        for item in &mut stored {
            item.seq = 0;
        }
        let newest = scan::newest(dir.path(), &filter, 25).unwrap();
        let found: Vec<_> = newest.iter().map(|row| row.summary.clone()).collect();
        assert_eq!(found, stored, "{filter:?}");
    }
}
