//! A process that is killed while it writes: nothing is lost, nothing is there twice, and
//! the sums are those of counting every event.
//!
//! A round kills a process up to twelve times on each database; `ANYHOOK_KILL_ROUNDS` sets the
//! number of rounds of each test.

#![cfg(test)]
#![allow(dead_code, reason = "shares the fixtures of the suite")]

#[path = "suite/fixtures.rs"]
mod fixtures;
#[path = "suite/sums.rs"]
mod sums;

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhook_store::journal::{BatchLimit, JournalImporter};
use anyhook_store::{EventRow, Retention, Store, open};

/// Opens the same database at every call.
type Opener<'a> = &'a dyn Fn() -> Arc<dyn Store>;

const WORK: &str = "ANYHOOK_KILL_TEST_WORK";
const FOLDER: &str = "ANYHOOK_KILL_TEST_FOLDER";
const EVENTS: u32 = 1500;

fn rounds() -> u64 {
    let wanted = std::env::var("ANYHOOK_KILL_ROUNDS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A file `address` names a store elsewhere.
fn store_in(folder: &Path) -> Arc<dyn Store> {
    let file = folder.join("store.db").to_str().unwrap().to_owned();
    open(&std::fs::read_to_string(folder.join("address")).unwrap_or(file)).unwrap()
}

/// Runs a round on SQLite, and one on PostgreSQL where that is installed.
fn on_each_database(round: impl Fn(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    round(dir.path());
    if let Some(address) = anyhook_testkit::postgres::create_database() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("address"), address).unwrap();
        round(dir.path());
    }
}

/// What the killed process does, again and again until it is done or dead.
#[test]
#[ignore = "runs in the processes that the other tests start"]
fn work() {
    let (Ok(work), Ok(folder)) = (std::env::var(WORK), std::env::var(FOLDER)) else {
        return;
    };
    let folder = Path::new(&folder);
    let store = store_in(folder);
    match work.as_str() {
        "ingest" => {
            let limit = BatchLimit {
                lines: 40,
                ..BatchLimit::default()
            };
            let mut importer = JournalImporter::new(folder.join("journal"), "m").with_limit(limit);
            importer.import_all(&*store).unwrap();
        }
        "upgrade" => while store.upgrade_step().unwrap().is_some() {},
        "retain" => {
            let keep = Retention {
                max_bytes: Some(60_000),
                ..Retention::default()
            };
            while store.retain_step(&keep).unwrap() > 0 {}
            while store.maintain_step().unwrap() {}
        }
        other => panic!("unknown work `{other}`"),
    }
}

/// Starts the work until it ends by itself, killing it each time but the last; returns how
/// often it was killed.
fn kill_until_done(work: &str, folder: &Path, seed: u64, mut check: impl FnMut()) -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut killed = 0;
    loop {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "work", "--ignored", "--nocapture"])
            .env(WORK, work)
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::thread::sleep(Duration::from_millis(15 + state % 120));
        let is_done = child.try_wait().unwrap().is_some();
        if !is_done && killed < 12 {
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
            check();
            continue;
        }
        assert!(child.wait().unwrap().success(), "{work}");
        check();
        return killed;
    }
}

fn ids(store: &dyn Store) -> Vec<String> {
    let rows = fixtures::every_record(store);
    rows.iter()
        .map(|body| EventRow::from_line(body).unwrap().summary.id)
        .collect()
}

fn assert_each_once(store: &dyn Store, expected: usize) {
    let ids = ids(store);
    let different: HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (expected, expected));
}

#[test]
fn killed_while_it_ingests() {
    for round in 0..rounds() {
        on_each_database(|path| {
            for record in sums::records(EVENTS) {
                let line = fixtures::line(&record);
                fixtures::append(&path.join("journal"), "events.jsonl", &line);
            }
            kill_until_done("ingest", path, round + 1, || {
                let ids = ids(&*store_in(path));
                let different: HashSet<_> = ids.iter().collect();
                assert_eq!(ids.len(), different.len());
            });
            let store = store_in(path);
            assert_each_once(&*store, EVENTS as usize);
            sums::assert_sums_equal_a_recount(&*store);
        });
    }
}

#[test]
fn killed_while_it_upgrades() {
    for round in 0..rounds() {
        on_each_database(|path| {
            match std::fs::read_to_string(path.join("address")) {
                Ok(address) => write_old_postgres_store(&address),
                Err(_) => write_old_store(&path.join("store.db")),
            }
            kill_until_done("upgrade", path, round + 100, || {
                // While it is upgraded, what is offered again is there already.
                let again = sums::records(3);
                assert_eq!(store_in(path).ingest(&again).unwrap().new, 0);
            });
            let store = store_in(path);
            assert_eq!(store.upgrade_progress().unwrap(), None);
            assert_each_once(&*store, EVENTS as usize);
            assert_eq!(store.last_seq().unwrap(), i64::from(EVENTS));
            let first = store.after(0, 1).unwrap().remove(0).summary;
            assert_eq!((first.seq, first.id.as_str()), (1, "e00000"));
            sums::assert_sums_equal_a_recount(&*store);
            store.ingest(&[fixtures::record("later", 1)]).unwrap();
            assert!(store.last_seq().unwrap() > i64::from(EVENTS));
        });
    }
}

#[test]
fn killed_while_it_deletes() {
    for round in 0..rounds() {
        on_each_database(|path| {
            store_in(path).ingest(&sums::records(EVENTS)).unwrap();
            let before = store_in(path).stored_bytes().unwrap();
            kill_until_done("retain", path, round + 200, || {
                assert!(store_in(path).stored_bytes().unwrap() <= before);
            });
            let store = store_in(path);
            assert!(store.stored_bytes().unwrap() <= 60_000);
            assert!(ids(&*store).len() > 50);
            sums::assert_sums_equal_a_recount(&*store);
        });
    }
}

/// A database as version 3 of the schema had it.
fn write_old_postgres_store(address: &str) {
    let mut old = postgres::Client::connect(address, postgres::NoTls).unwrap();
    old.batch_execute("CREATE TABLE anyhook_schema (version BIGINT NOT NULL)")
        .unwrap();
    for (version, step) in (1_i64..).zip([
        include_str!("../migrations/postgres/001.sql"),
        include_str!("../migrations/postgres/002.sql"),
        include_str!("../migrations/postgres/003.sql"),
    ]) {
        old.batch_execute(step).unwrap();
        old.execute(
            "INSERT INTO anyhook_schema (version) VALUES ($1)",
            &[&version],
        )
        .unwrap();
    }
    let mut transaction = old.transaction().unwrap();
    for record in sums::records(EVENTS) {
        let row = EventRow::from_record(&record).unwrap();
        let event = &row.summary;
        transaction
            .execute(
                "INSERT INTO anyhook_events (id, time_us, kind, agent, event, type, duration_ms, \
                 hooks, bytes, text, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10)",
                &[
                    &event.id,
                    &event.time_us,
                    &event.kind,
                    &event.agent,
                    &event.event,
                    &event.unified,
                    &event.duration_ms,
                    &event.hooks,
                    &row.text,
                    &row.body,
                ],
            )
            .unwrap();
    }
    transaction.commit().unwrap();
}

/// A store as version 2 of the schema had it.
fn write_old_store(path: &Path) {
    let mut old = rusqlite::Connection::open(path).unwrap();
    for step in [
        include_str!("../migrations/sqlite/001.sql"),
        include_str!("../migrations/sqlite/002.sql"),
    ] {
        old.execute_batch(step).unwrap();
    }
    old.pragma_update(None, "user_version", 2).unwrap();
    let transaction = old.transaction().unwrap();
    for record in sums::records(EVENTS) {
        let row = EventRow::from_record(&record).unwrap();
        let event = &row.summary;
        transaction
            .execute(
                "INSERT INTO anyhook_events (id, time_us, kind, agent, event, type, duration_ms, \
                 hooks, bytes, text, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                rusqlite::params![
                    event.id,
                    event.time_us,
                    event.kind,
                    event.agent,
                    event.event,
                    event.unified,
                    event.duration_ms,
                    event.hooks,
                    i64::try_from(row.body.len()).unwrap(),
                    row.text,
                    row.body
                ],
            )
            .unwrap();
        for (pos, run) in row.runs.iter().enumerate() {
            transaction
                .execute(
                    "INSERT INTO anyhook_runs (seq, pos, hook, manifest, outcome, duration_ms) \
                     VALUES ((SELECT MAX(seq) FROM anyhook_events), ?1, ?2, ?3, ?4, ?5)",
                    rusqlite::params![
                        i64::try_from(pos).unwrap(),
                        run.hook,
                        run.manifest,
                        run.outcome,
                        run.duration_ms
                    ],
                )
                .unwrap();
        }
    }
    transaction.commit().unwrap();
}
