//! Writers that turn the journal's file, and a reader that is slower than they are.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhook_model::{HookEvent, Record};
use anyhook_run::record::journal::Journal;
use anyhook_store::journal::{BatchLimit, JournalImporter};
use anyhook_store::{IngestCounts, SqliteStore};

const WRITERS: usize = 4;
const LINES: usize = 1500;

#[test]
fn every_line_is_taken_once() {
    let state = tempfile::tempdir().unwrap();
    // So many files that some turn at every moment, and none is thrown away.
    let journal = Journal::new(state.path())
        .with_rotate_size(40_000)
        .keep_open();
    let store = SqliteStore::open(&state.path().join("store.db")).unwrap();
    let limit = BatchLimit {
        lines: 7,
        ..BatchLimit::default()
    };
    let mut tail = JournalImporter::new(journal.folder(), "here").with_limit(limit);
    let mut all = IngestCounts::default();
    let running = AtomicUsize::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (journal, running) = (&journal, &running);
            scope.spawn(move || {
                for n in 0..LINES {
                    journal.append(&record(format!("{writer}-{n}"))).unwrap();
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            all += tail.import_all(&store).unwrap();
        }
    });
    all += tail.import_all(&store).unwrap();
    assert!((5..64).contains(&journal.rotated().len()));
    assert_eq!(all.new, (WRITERS * LINES) as u64);
    assert_eq!((all.duplicate, all.refused), (0, 0));
}

fn record(id: String) -> Record {
    Record {
        v: 1,
        id,
        time: "2026-03-01T10:00:00Z".to_owned(),
        agent: "claude-code".to_owned(),
        event: HookEvent {
            event: "agent_stop".to_owned(),
            ..HookEvent::default()
        },
        ..Record::default()
    }
}
