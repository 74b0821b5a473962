//! Many writers, one journal.

#![cfg(test)]

use std::collections::HashSet;
use std::io::Write;

use anyhook_model::{HookEvent, Record};
use anyhook_run::record::journal::Journal;

fn record(id: String, size: usize) -> Record {
    let mut event = HookEvent::default();
    event
        .data
        .insert("prompt".to_owned(), "x".repeat(size).into());
    Record {
        id,
        event,
        ..Record::default()
    }
}

/// The ids in all files, each line whole.
fn ids(journal: &Journal) -> Vec<String> {
    let mut files = journal.rotated();
    files.push(journal.folder().join("events.jsonl"));
    let text: String = files
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    text.lines()
        .map(|line| serde_json::from_str::<Record>(line).expect(line).id)
        .collect()
}

#[test]
fn no_line_is_lost_or_split_while_the_file_turns() {
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::new(state.path()).with_rotate_size(40_000);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let journal = &journal;
            scope.spawn(move || {
                for n in 0..50 {
                    let size = if n % 10 == 0 { 30_000 } else { 100 };
                    journal
                        .append(&record(format!("{writer}-{n}"), size))
                        .unwrap();
                }
            });
        }
    });
    let ids = ids(&journal);
    assert_eq!(ids.len(), 400);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 400);
    assert!(journal.rotated().len() > 5);
}

#[test]
fn a_file_that_stays_open_is_let_go_when_others_turn_it() {
    let state = tempfile::tempdir().unwrap();
    let daemons = [(); 2].map(|()| {
        Journal::new(state.path())
            .with_rotate_size(40_000)
            .keep_open()
    });
    let run = Journal::new(state.path()).with_rotate_size(40_000);
    let all: Vec<_> = daemons.iter().chain([&run]).collect();
    std::thread::scope(|scope| {
        for (writer, journal) in all.iter().cycle().take(9).enumerate() {
            scope.spawn(move || {
                for n in 0..100 {
                    journal
                        .append(&record(format!("{writer}-{n}"), 1000))
                        .unwrap();
                }
            });
        }
    });
    let ids = ids(&run);
    assert_eq!(ids.len(), 900);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 900);
    assert!(run.rotated().len() > 5);
    // What is gone is not written to for long.
    let current = run.folder().join("events.jsonl");
    std::fs::remove_file(&current).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    daemons[0].append(&record("late".to_owned(), 1)).unwrap();
    assert!(std::fs::read_to_string(&current).unwrap().contains("late"));
    std::fs::rename(run.folder(), state.path().join("away")).unwrap();
    std::fs::write(run.folder(), "").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    for _ in 0..2 {
        let lost = daemons[0].append(&record("lost".to_owned(), 1));
        assert!(lost.is_err(), "there is no place to write to");
    }
}

#[test]
fn a_line_cut_by_a_full_disk_does_not_take_the_next_with_it() {
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::new(state.path());
    journal.append(&record("first".to_owned(), 1)).unwrap();
    let path = journal.folder().join("events.jsonl");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"{\"v\":1,\"id\":\"hal").unwrap();
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    file.set_modified(earlier).unwrap();
    journal.append(&record("second".to_owned(), 1)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let whole: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Record>(line).ok())
        .map(|record| record.id)
        .collect();
    assert_eq!(whole, ["first", "second"]);
}

#[cfg(unix)]
#[test]
fn without_a_place_to_write_it_is_an_error_and_no_more() {
    let journal = Journal::new(std::path::Path::new("/dev/null/nowhere"));
    assert!(journal.append(&record("lost".to_owned(), 1)).is_err());
    if std::path::Path::new("/dev/full").exists() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("journal");
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.join("events.jsonl")).unwrap();
        let journal = Journal::new(state.path());
        assert!(journal.append(&record("lost".to_owned(), 1)).is_err());
    }
}

#[test]
fn secrets_do_not_reach_the_disk() {
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::new(state.path());
    let mut record = record("one".to_owned(), 1);
    let token = ["gh", "p_", &"a1".repeat(18)].concat();
    record.response.reason = Some(format!("uses {token}"));
    record.event.metadata.insert(
        "native".to_owned(),
        serde_json::json!({"env": [{"k": token}]}),
    );
    journal.append(&record).unwrap();
    let text = std::fs::read_to_string(journal.folder().join("events.jsonl")).unwrap();
    assert!(!text.contains(&token), "{text}");
    assert_eq!(text.matches("[redacted:github-token]").count(), 2);
}
