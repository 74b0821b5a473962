//! Queues between processes: nothing is lost, nothing comes twice, one serves.

use std::sync::Mutex;
use std::thread;

use anyhook_run::openhook::Queue;

#[test]
fn lines_come_in_order_and_once() {
    let state = tempfile::tempdir().unwrap();
    let queue = Queue::new(state.path(), &["a", "b"]);
    assert_ne!(queue, Queue::new(state.path(), &["ab"]));
    let mut seen = Vec::new();
    queue.push("one").unwrap();
    queue.push("two\nlines").unwrap();
    queue
        .serve(&mut |line| {
            assert!(queue.is_served());
            if line == "one" {
                queue.push("meanwhile").unwrap();
            }
            seen.push(line.to_owned());
        })
        .unwrap();
    assert_eq!(seen, ["one", "two lines", "meanwhile"]);
    assert!(!queue.is_served());
    queue.serve(&mut |line| panic!("{line}")).unwrap();
}

/// Every writer serves when no other does, as the dispatcher does.
#[test]
fn many_writers_and_no_line_is_left_behind() {
    const WRITERS: usize = 8;
    const LINES: usize = 60;
    let state = tempfile::tempdir().unwrap();
    let queue = Queue::new(state.path(), &["q"]);
    let heard = Mutex::new(Vec::new());
    let working = Mutex::new(());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (queue, heard, working) = (&queue, &heard, &working);
            scope.spawn(move || {
                for line in 0..LINES {
                    queue.push(&format!("{writer} {line}")).unwrap();
                    if queue.is_served() {
                        continue;
                    }
                    queue
                        .serve(&mut |line| {
                            let alone = working.try_lock().expect("one at a time");
                            heard.lock().unwrap().push(line.to_owned());
                            drop(alone);
                        })
                        .unwrap();
                }
            });
        }
    });
    let heard = heard.into_inner().unwrap();
    assert_eq!(heard.len(), WRITERS * LINES);
    for writer in 0..WRITERS {
        let prefix = format!("{writer} ");
        let lines: Vec<usize> = heard
            .iter()
            .filter_map(|line| line.strip_prefix(&prefix)?.parse().ok())
            .collect();
        assert!(lines.iter().copied().eq(0..LINES), "{writer}: {lines:?}");
    }
}
