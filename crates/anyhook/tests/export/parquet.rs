//! `anyhook export parquet`.

use std::path::{Path, PathBuf};

use crate::sessions::{anyhook, record_sessions};
use crate::support::journal;

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_of(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_journal_of_this_machine_becomes_files_by_day() {
    let scratch = record_sessions();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("archive");
    let export = || {
        anyhook(
            &scratch,
            &["export", "parquet", "--to", folder.to_str().unwrap()],
        )
    };
    let first = export();
    assert_eq!(first.exit, Some(0), "{}", first.stderr);
    let events = journal(&scratch).len();
    let expected = format!("Exported {events} events in ");
    assert!(first.stderr.contains(&expected), "{}", first.stderr);
    let files = files_of(&folder.join("events/v=1"));
    assert!(!files.is_empty());
    for file in &files {
        let day = file.parent().unwrap().file_name().unwrap();
        assert!(day.to_str().unwrap().starts_with("day=20"), "{day:?}");
        let bytes = std::fs::read(file).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
    let again = export();
    assert!(
        again.stderr.contains("Exported 0 events"),
        "{}",
        again.stderr
    );
    assert_eq!(files_of(&folder.join("events/v=1")), files);
}

#[test]
fn a_place_that_is_none_is_explained() {
    let scratch = record_sessions();
    for place in ["gs://bucket/x", "s3://", ""] {
        let output = anyhook(&scratch, &["export", "parquet", "--to", place]);
        assert_eq!(output.exit, Some(1), "{place}: {}", output.stderr);
        assert!(
            output.stderr.contains("use a folder or s3://bucket/prefix"),
            "{}",
            output.stderr
        );
    }
}
