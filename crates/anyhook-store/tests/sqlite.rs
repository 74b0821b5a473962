//! What only the embedded store guarantees: its files, its version, its address.

use anyhook_store::{EventFilter, EventRow, PageQuery, SqliteStore, Store as _, open};

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let _store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
    let files: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert!(files.len() > 1, "the write-ahead log is in the same folder");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
}

#[test]
fn a_newer_schema_is_rejected_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteStore::open(&path).err().unwrap().to_string();
    assert_eq!(
        error,
        "the store was written by a newer anyhook (schema 99, this one supports 5); update anyhook or use another store"
    );
    let version: i64 = raw
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
}

/// Events of a store without the index of identifiers are found by three characters, until
/// they are in it.
#[test]
fn older_events_get_their_identifiers_in_steps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let line = |n: u64| {
        let id = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            r#"{{"v":1,"id":"e{n}","time":"2026-03-01T10:00:00Z","kind":"event","agent":"codex","event":{{"event":"before_prompt","source":"codex","data":{{"prompt":"commit {id:016x}"}}}},"duration_ms":1}}"#
        )
    };
    let ingest = |numbers: std::ops::Range<u64>| {
        let rows: Vec<_> = numbers
            .filter_map(|n| EventRow::from_line(&line(n)))
            .collect();
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(store.insert(&rows, None).unwrap().new, rows.len() as u64);
    };
    ingest(1..1300);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP TABLE anyhook_identifiers; PRAGMA user_version = 4; \
         DELETE FROM anyhook_totals WHERE name = 'identifiers_from'",
    )
    .unwrap();
    ingest(1300..1500);
    let known_from = || -> i64 {
        let sql = "SELECT value FROM anyhook_totals WHERE name = 'identifiers_from'";
        raw.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(known_from(), 1300);
    let store = SqliteStore::open(&path).unwrap();
    loop {
        for n in [1_u64, 2, 499, 500, 777, 1299, 1300, 1499] {
            let query = PageQuery {
                filter: EventFilter {
                    text: Some(format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
                    ..EventFilter::default()
                },
                ..PageQuery::default()
            };
            let found = store.events(&query).unwrap().items;
            let ids: Vec<_> = found.iter().map(|event| event.id.as_str()).collect();
            assert_eq!(ids, [format!("e{n}")], "known from {}", known_from());
        }
        if !store.maintain_step().unwrap() {
            break;
        }
    }
    assert_eq!(known_from(), 1);
}

#[test]
fn invalid_addresses_are_rejected_without_their_password() {
    for (address, shown) in [
        ("", "``"),
        ("mysql://root:secret@host/db", "`mysql://…@host/db`"),
        ("postgres://me:secret@host:x/db", "`postgres://…@host:x/db`"),
    ] {
        let error = open(address).err().unwrap().to_string();
        assert!(error.contains(shown), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, why) in [("no/such/folder.db", "No such file"), ("", "s a directory")] {
        let path = dir.path().join(name);
        let error = open(path.to_str().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with("the store `"), "{error}");
        assert!(cfg!(windows) || error.contains(why), "{error}");
    }
}
