//! What only the embedded store promises: its file, its version, its address.

#![allow(clippy::unwrap_used, reason = "tests")]

use anyhook_store::{SqliteStore, open};

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let _store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
    let files: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert!(files.len() > 1, "the write-ahead log is beside it");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteStore::open(&path).err().unwrap().to_string();
    assert_eq!(
        error,
        "the store was written by a newer anyhook (schema 99, this one knows 1): update anyhook, or name another store"
    );
    let version: i64 = raw
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
}

#[test]
fn addresses_that_mean_nothing() {
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
    assert!(open(dir.path().join("no/such/folder.db").to_str().unwrap()).is_err());
}
