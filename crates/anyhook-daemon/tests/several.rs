//! More than one daemon: two on one database, and one that ships to another.

#![cfg(test)]

mod support;

use std::time::Duration;

use anyhook_daemon::{JournalShipper, ShipError};
use anyhook_store::journal::BatchLimit;
use anyhook_testkit::postgres;
use serde_json::json;
use support::{Call, Running, Sse, TOKEN, append, record};

#[test]
fn two_daemons_on_one_database_see_each_other_live() {
    let Some(address) = postgres::create_database() else {
        return;
    };
    let start = || {
        let store = anyhook_store::open(&address).unwrap();
        Running::on(tempfile::tempdir().unwrap(), store, |_| {})
    };
    let (one, two) = (start(), start());
    let mut on_one = Sse::open(one.address, "/stream", None);
    let mut on_two = Sse::open(two.address, "/stream", None);
    let next = |stream: &mut Sse| {
        let (seq, event) = stream.next().unwrap();
        (seq, event["id"].as_str().unwrap().to_owned())
    };
    append(&one.journal, &record("from-one"));
    let seen = next(&mut on_two);
    assert_eq!(seen.1, "from-one");
    assert_eq!(
        next(&mut on_one),
        seen,
        "the same event has the same number everywhere"
    );
    Call::new("POST", "/ingest")
        .token()
        .json(&json!(record("from-two")))
        .send(two.address);
    assert_eq!(next(&mut on_one).1, "from-two");
    // What both are given is kept once.
    for daemon in [&one, &two] {
        Call::new("POST", "/ingest")
            .token()
            .json(&json!(record("both")))
            .send(daemon.address);
    }
    assert_eq!(one.get("/stats").json()["events"], 3);
    // A stream that began at one daemon goes on at the other.
    let mut moved = Sse::open(one.address, "/stream", Some(&seen.0));
    assert_eq!(next(&mut moved).1, "from-two");
}

fn ship(from: &std::path::Path, to: &Running) -> JournalShipper {
    JournalShipper {
        journal: from.join("journal"),
        state: from.join("shipped.json"),
        to: format!("http://{}", to.address),
        token: TOKEN.to_owned(),
        machine: Some("laptop".to_owned()),
        batch: BatchLimit {
            lines: 10,
            bytes: 1 << 20,
        },
    }
}

#[test]
fn a_journal_is_shipped_once() {
    let central = Running::start();
    let dir = tempfile::tempdir().unwrap();
    let ship = ship(dir.path(), &central);
    assert_eq!(ship.ship_once().unwrap().batches, 0);
    for n in 0..25 {
        append(&ship.journal, &record(&format!("e{n}")));
    }
    let sent = ship.ship_once().unwrap();
    assert_eq!((sent.batches, sent.events.new), (3, 25));
    assert_eq!(ship.ship_once().unwrap().batches, 0);
    let current = ship.journal.join("events.jsonl");
    append(&ship.journal, &record("late"));
    std::fs::rename(
        &current,
        ship.journal.join("events-20260101T000000Z-1.jsonl"),
    )
    .unwrap();
    append(&ship.journal, &record("next"));
    assert_eq!(ship.ship_once().unwrap().events.new, 2);
    // The acknowledgement was lost, or the state: sent again, kept once.
    std::fs::remove_file(&ship.state).unwrap();
    let again = ship.ship_once().unwrap();
    assert_eq!((again.events.new, again.events.duplicate), (0, 27));
    assert_eq!(
        central.get("/events?machine=laptop&limit=1000").json()["events"]
            .as_array()
            .unwrap()
            .len(),
        27
    );
}

#[test]
fn shipping_waits_for_a_server_that_is_away() {
    let mut central = Running::start();
    let dir = tempfile::tempdir().unwrap();
    let ship = ship(dir.path(), &central);
    append(&ship.journal, &record("a"));
    let address = central.address;
    central.stop();
    let mut pauses = Vec::new();
    let mut back = None;
    ship.follow(
        |pause| {
            pauses.push(pause);
            if pauses.len() == 4 {
                let store = central.store.clone();
                back = Some(Running::on(tempfile::tempdir().unwrap(), store, |config| {
                    config.listen = address;
                }));
            }
            pauses.len() < 5
        },
        |_| {},
    )
    .unwrap();
    assert!(central.store.event("a").unwrap().is_some());
    // Each pause is between half and the whole of a doubled one; then all was well.
    for (n, pause) in (0..4).zip(&pauses) {
        let whole = Duration::from_millis(500 << n);
        assert!((whole / 2..=whole).contains(pause), "{pauses:?}");
    }
    assert_eq!(pauses[4], Duration::from_secs(1));
}

#[test]
fn shipping_ends_where_it_is_refused() {
    let central = Running::with(|config| config.limits.body_bytes = 4096);
    let dir = tempfile::tempdir().unwrap();
    let mut ship = ship(dir.path(), &central);
    for n in 0..30 {
        append(&ship.journal, &record(&format!("e{n}")));
    }
    // Too much at once is sent in smaller parts.
    ship.batch.lines = 30;
    assert_eq!(ship.ship_once().unwrap().events.new, 30);
    append(&ship.journal, &record("more"));
    ship.token = "wrong".to_owned();
    for done in [ship.ship_once().map(drop), ship.follow(|_| true, |_| {})] {
        assert!(matches!(done, Err(ShipError::Untrusted { .. })), "{done:?}");
    }
}
