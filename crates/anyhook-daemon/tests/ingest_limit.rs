//! What others send at the same time is limited by its bytes, not by memory.

#![cfg(test)]

mod support;

use std::io::Write;
use std::net::TcpStream;

use support::{Call, Reply, Running, record};

fn ingest(body: &[u8]) -> Call {
    Call::new("POST", "/ingest")
        .token()
        .body("application/x-ndjson", body)
}

#[test]
fn a_sender_without_room_is_told_to_come_back() {
    let daemon = Running::with(|config| {
        config.limits.body_bytes = 64 * 1024;
        config.limits.ingest_bytes = 64 * 1024;
        config.limits.body_timeout = std::time::Duration::from_secs(300);
    });
    let line = serde_json::to_string(&record("one")).unwrap() + "\n";
    let mut large = line.clone().into_bytes();
    large.resize(60 * 1024, b'\n');
    let bytes = ingest(&large).bytes();
    // Announces its body, sends the first half, and waits.
    let (begin, rest) = bytes.split_at(bytes.len() / 2);
    let mut slow = TcpStream::connect(daemon.address).unwrap();
    slow.write_all(begin).unwrap();
    let second = serde_json::to_string(&record("two")).unwrap() + "\n";
    let mut more = second.into_bytes();
    more.resize(30 * 1024, b'\n');
    support::eventually(|| ingest(&more).send(daemon.address).status == 429);
    let refused = ingest(&more).send(daemon.address);
    assert_eq!(refused.status, 429);
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    // The first one ends, and there is room again.
    slow.write_all(rest).unwrap();
    assert_eq!(Reply::read(&mut slow).unwrap().status, 200);
    assert_eq!(ingest(&more).send(daemon.address).status, 200);
    let stored = |id: &str| daemon.store.event(id).unwrap().is_some();
    assert!(stored("one") && stored("two"));
}
