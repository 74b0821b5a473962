//! Storing: once, whole or not at all, and in order.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhook_store::journal::{BatchLimit, JournalImporter};
use anyhook_store::{EventFilter, EventRow, JournalPosition, Retention};
use serde_json::{Value, json};

use crate::Opener;
use crate::fixtures::{all, append, denied, line, record};

pub(crate) fn the_same_id_is_stored_once(opener: Opener) {
    let store = opener();
    let done = store
        .ingest(&[
            record("a", 1),
            denied(record("b", 2), "x"),
            denied(record("b", 2), "x"),
            record("", 3),
        ])
        .unwrap();
    assert_eq!((done.new, done.duplicate, done.refused), (2, 1, 1));
    let done = store.ingest(&[record("b", 9), record("c", 3)]).unwrap();
    assert_eq!((done.new, done.duplicate, done.refused), (1, 1, 0));
    assert_eq!(all(&*store, EventFilter::default()), ["c", "b", "a"]);
    assert_eq!(
        store.stats(&EventFilter::default(), 10).unwrap().by_hook[0].runs,
        1
    );
}

pub(crate) fn the_journal_is_imported_once(opener: Opener) {
    let dir = tempfile::tempdir().unwrap();
    let small = BatchLimit {
        lines: 3,
        bytes: 1 << 20,
    };
    let tail = || JournalImporter::new(dir.path(), "m1").with_limit(small);
    assert_eq!(tail().import_all(&*opener()).unwrap().new, 0);
    for n in 0..10 {
        append(
            dir.path(),
            "events.jsonl",
            &line(&record(&format!("e{n}"), n)),
        );
    }
    let mut first = tail();
    assert_eq!(first.import_all(&*opener()).unwrap().new, 10);
    append(dir.path(), "events.jsonl", &line(&record("e10", 10)));
    assert_eq!(first.import_all(&*opener()).unwrap().new, 1);
    // Another process resumes at the committed position: it does not even see duplicates.
    let again = tail().import_all(&*opener()).unwrap();
    assert_eq!((again.new, again.duplicate), (0, 0));
    append(dir.path(), "events.jsonl", &line(&record("e11", 11)));
    let again = tail().import_all(&*opener()).unwrap();
    assert_eq!((again.new, again.duplicate), (1, 0));
    // Positions belong to one journal; its neighbour starts at the beginning.
    let neighbour = JournalImporter::new(dir.path(), "m2")
        .import_all(&*opener())
        .unwrap();
    assert_eq!((neighbour.new, neighbour.duplicate), (0, 12));
}

pub(crate) fn rotation_and_torn_lines(opener: Opener) {
    let store = opener();
    let dir = tempfile::tempdir().unwrap();
    let mut tail = JournalImporter::new(dir.path(), "m");
    let whole = line(&record("b", 2));
    let (begun, rest) = whole.split_at(20);
    append(dir.path(), "events.jsonl", &line(&record("a", 1)));
    append(dir.path(), "events.jsonl", begun);
    assert_eq!(tail.import_all(&*store).unwrap().new, 1);
    assert_eq!(
        tail.import_all(&*store).unwrap().new,
        0,
        "a line is taken when it is whole"
    );
    append(dir.path(), "events.jsonl", rest);
    std::fs::rename(
        dir.path().join("events.jsonl"),
        dir.path().join("events-20260301T100000Z-1.jsonl"),
    )
    .unwrap();
    append(
        dir.path(),
        "events.jsonl",
        &format!("{{\"torn\n{}not json\n\n", line(&record("c", 3))),
    );
    let mut bytes = std::fs::OpenOptions::new()
        .append(true)
        .open(dir.path().join("events.jsonl"))
        .unwrap();
    bytes.write_all(b"\xff\xfe\n").unwrap();
    // A writer that had the old file open when it was renamed.
    append(
        dir.path(),
        "events-20260301T100000Z-1.jsonl",
        &line(&record("late", 4)),
    );
    append(dir.path(), "notes.jsonl", &line(&record("foreign", 5)));
    let done = tail.import_all(&*store).unwrap();
    assert_eq!((done.new, done.refused), (3, 3));
    assert_eq!(
        all(&*store, EventFilter::default()),
        ["late", "c", "b", "a"]
    );
    // The old file goes; a new one may get its inode and be longer than the old position.
    for name in ["events-20260301T100000Z-1.jsonl", "events.jsonl"] {
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    for n in 0..40 {
        append(
            dir.path(),
            "events.jsonl",
            &line(&record(&format!("n{n}"), n)),
        );
    }
    let limit = BatchLimit {
        lines: 15,
        ..BatchLimit::default()
    };
    let mut tail = JournalImporter::new(dir.path(), "m").with_limit(limit);
    let size = std::fs::metadata(dir.path().join("events.jsonl"))
        .unwrap()
        .len();
    let (some, left) = tail.import_batches(&*store, 1).unwrap();
    assert_eq!(some.new, 15);
    assert!((1..size).contains(&left), "{left} of {size}");
    let (rest, left) = tail.import_batches(&*store, 9).unwrap();
    assert_eq!((rest.new, left), (25, 0));
}

/// The journal bounds itself by removing its oldest file; what is not imported by then is kept.
pub(crate) fn unread_files_survive_the_journals_own_limit(opener: Opener) {
    let dir = tempfile::tempdir().unwrap();
    let rotated = |n: u32| format!("events-2026030{n:02}T000000Z.jsonl");
    for n in 0..20_u32 {
        for part in 0..5 {
            let made = record(&format!("e{n}-{part}"), n);
            append(dir.path(), &rotated(n), &line(&made));
        }
    }
    append(dir.path(), "events.jsonl", &line(&record("current", 1)));
    let store = opener();
    let limit = BatchLimit {
        lines: 5,
        ..BatchLimit::default()
    };
    let mut importer = JournalImporter::new(dir.path(), "m").with_limit(limit);
    // The store takes two files; then the journal removes ten.
    importer.import_batches(&*store, 2).unwrap();
    assert!(dir.path().join("unread").is_dir());
    for n in 0..10 {
        std::fs::remove_file(dir.path().join(rotated(n))).unwrap();
    }
    // A daemon that starts again knows nothing but the store and the folder.
    let mut importer = JournalImporter::new(dir.path(), "m").with_limit(limit);
    while importer.import_batches(&*store, 3).unwrap().1 > 0 {}
    assert_eq!(all(&*store, EventFilter::default()).len(), 101);
    let kept = std::fs::read_dir(dir.path().join("unread")).unwrap();
    assert_eq!(kept.count(), 0, "what is imported is not kept");
    assert_eq!(importer.import_all(&*store).unwrap().new, 0);
}

/// A query without an end ends when it is cancelled, and the store goes on.
pub(crate) fn a_cancelled_query_ends(opener: Opener) {
    let store = opener();
    store.ingest(&[record("a", 1)]).unwrap();
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 1000 FROM n) \
                   SELECT COUNT(*) FROM n";
    let cancel = anyhook_store::QueryCancel::default();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            cancel.run(|| {
                store
                    .select(&anyhook_store::Statement::new(endless))
                    .is_err()
            })
        });
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel();
        assert!(running.join().unwrap());
    });
    // One that is cancelled before it begins does not run at all.
    assert!(cancel.run(|| {
        store
            .select(&anyhook_store::Statement::new(endless))
            .is_err()
    }));
    assert_eq!(all(&*store, EventFilter::default()), ["a"]);
}

pub(crate) fn a_failed_batch_stores_nothing(opener: Opener) {
    let store = opener();
    let mark = JournalPosition {
        source: "m".to_owned(),
        file: "f".to_owned(),
        pos: 99,
    };
    let mut rows: Vec<_> = (0..5)
        .map(|n| EventRow::from_record(&denied(record(&format!("e{n}"), n), "x")).unwrap())
        .collect();
    // NaN is NULL to SQLite, and a text with NUL is rejected by PostgreSQL: both break the last row.
    rows[4].summary.duration_ms = f64::NAN;
    rows[4].summary.session_id = Some("\0".to_owned());
    assert!(store.insert(&rows, Some(&mark)).is_err());
    assert_eq!(store.journal_position("m", "f").unwrap(), 0);
    assert_eq!(store.last_seq().unwrap(), 0);
    rows.pop();
    store.insert(&rows, Some(&mark)).unwrap();
    assert_eq!(store.journal_position("m", "f").unwrap(), 99);
    let back = JournalPosition { pos: 50, ..mark };
    store.insert(&[], Some(&back)).unwrap();
    assert_eq!(
        store.journal_position("m", "f").unwrap(),
        99,
        "a position never goes back"
    );
}

pub(crate) fn a_watch_is_called_for_new_events(opener: Opener) {
    let store = opener();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let watch = store
        .watch(Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }))
        .unwrap();
    store.ingest(&[record("a", 1)]).unwrap();
    let start = Instant::now();
    while calls.load(Ordering::SeqCst) == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "no call");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(watch);
}

/// A reader that follows `seq` must see every event although writers race.
pub(crate) fn seq_is_visible_in_order(opener: Opener) {
    let stores: Vec<_> = (0..3).map(|_| opener()).collect();
    let (writers, each) = (3, 60_u32);
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..each {
                    let batch: Vec<_> = (0..3)
                        .map(|part| record(&format!("{number}-{n}-{part}"), n))
                        .collect();
                    store.ingest(&batch).unwrap();
                }
            });
        }
        let reader = opener();
        let mut last = 0;
        let start = Instant::now();
        while seen.len() < (writers * each * 3) as usize {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "{} seen",
                seen.len()
            );
            for row in reader.after(last, 7).unwrap() {
                assert!(row.summary.seq > last);
                last = row.summary.seq;
                seen.push(row.summary.id);
            }
        }
    });
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), (writers * each * 3) as usize);
}

pub(crate) fn hostile_text_is_stored(opener: Opener) {
    let store = opener();
    let mut made = denied(
        record("h", 1),
        "nul \0 quote ' \" <script>alert(1)</script> \u{202e}",
    );
    made.agent = "a\0gent".into();
    made.event.session_id = Some("../../etc\0".to_owned());
    made.event
        .data
        .insert("tool_name".to_owned(), Value::from("\0"));
    made.event.data.insert(
        "tool_input".to_owned(),
        json!({"command": "🦀".repeat(200_000)}),
    );
    made.time = "yesterday".into();
    made.duration_ms = 1e300;
    store.ingest(std::slice::from_ref(&made)).unwrap();
    let found = store.event("h").unwrap().unwrap();
    assert_eq!(found.record, serde_json::to_value(&made).unwrap());
    let filter = EventFilter {
        text: Some("NUL \0 quote '".to_owned()),
        ..EventFilter::default()
    };
    assert_eq!(all(&*store, filter), ["h"]);
    let filter = EventFilter {
        session: Some("../../etc\0".to_owned()),
        ..EventFilter::default()
    };
    assert_eq!(all(&*store, filter), ["h"]);
    assert!(store.event("\0").unwrap().is_none());
}

pub(crate) fn openhook_envelopes(opener: Opener) {
    let store = opener();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openhook");
    let mut cases: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    for path in cases {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let made = anyhook_store::openhook::envelope_record(case["envelope"].as_object().unwrap());
        if let Some(reason) = case["refused"].as_str() {
            assert_eq!(made.unwrap_err(), reason, "{}", path.display());
            continue;
        }
        let made = made.unwrap();
        let done = store.ingest(std::slice::from_ref(&made)).unwrap();
        assert_eq!(done.new, 1, "{}", path.display());
        let kept = store.event(&made.id).unwrap().unwrap().summary;
        let kept = serde_json::to_value(kept).unwrap();
        for (key, value) in case["kept"].as_object().unwrap() {
            assert_eq!(&kept[key], value, "{}: {key}", path.display());
        }
    }
}
pub(crate) fn retention_by_age_and_size(opener: Opener) {
    let store = opener();
    let mut fresh = record("fresh", 0);
    fresh.time = jiff::Timestamp::now().to_string();
    let mut records: Vec<_> = (0..50_u32)
        .map(|n| denied(record(&format!("e{n:02}"), n), "x"))
        .collect();
    records.push(fresh);
    store.ingest(&records).unwrap();
    assert_eq!(store.retain(&Retention::default()).unwrap(), 0);
    let bytes = Retention {
        max_bytes: Some(store.stored_bytes().unwrap() / 5),
        ..Retention::default()
    };
    let gone = store.retain(&bytes).unwrap();
    let left = all(&*store, EventFilter::default());
    assert_eq!(left.len() as u64 + gone, 51);
    assert_eq!(left[..3], ["fresh", "e49", "e48"]);
    assert!((8..=12).contains(&left.len()), "{left:?}");
    let age = Retention {
        max_age_s: Some(3600),
        ..Retention::default()
    };
    store.retain(&age).unwrap();
    assert_eq!(all(&*store, EventFilter::default()), ["fresh"]);
    assert!(
        store
            .stats(&EventFilter::default(), 5)
            .unwrap()
            .by_hook
            .is_empty(),
        "runs go with their event"
    );
    // Numbers are not used again, so a stream can always resume.
    store.ingest(&[record("later", 1)]).unwrap();
    assert_eq!(store.last_seq().unwrap(), 52);
}
