//! What only the embedded store guarantees: its files, its version, its address.

use anyhook_store::{SqliteStore, open};

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
        "the store was written by a newer anyhook (schema 99, this one supports 4); update anyhook or use another store"
    );
    let version: i64 = raw
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
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
    assert!(open(dir.path().join("no/such/folder.db").to_str().unwrap()).is_err());
}
