//! What only the shared store guarantees: its partitions, and an index for every query.

#![cfg(test)]
#![allow(dead_code, reason = "shares the fixtures of the suite")]

#[path = "suite/fixtures.rs"]
mod fixtures;
#[path = "suite/sums.rs"]
mod sums;

use std::sync::Arc;

use anyhook_store::{EventFilter, PageQuery, Retention, Store, open};
use anyhook_testkit::postgres::{create_database, server_log};
use postgres::{Client, NoTls};

/// Opens the same database at every call.
type Opener<'a> = &'a dyn Fn() -> Arc<dyn Store>;

fn partitions(address: &str) -> Vec<String> {
    let mut client = Client::connect(address, NoTls).unwrap();
    let sql = "SELECT inhrelid::regclass::text FROM pg_inherits \
               WHERE inhparent = 'anyhook_events'::regclass ORDER BY 1";
    let rows = client.query(sql, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Every query that the page and the command line make, with each kind of filter.
fn ask_everything(store: &dyn Store) {
    let rows = store.after(0, 300).unwrap();
    let some = &rows.last().unwrap().summary;
    store.event(&some.id).unwrap().unwrap();
    store.event("0190a1b2-0000-7000-8000-0123456789ab").unwrap();
    store.session("s3", None).unwrap();
    let mut filters = sums::filters();
    for text in ["no such text", "hook-1", "%_"] {
        filters.push(EventFilter {
            text: Some(text.to_owned()),
            ..EventFilter::default()
        });
    }
    for filter in filters {
        let mut query = PageQuery {
            filter,
            limit: 20,
            ..PageQuery::default()
        };
        store.stats(&query.filter, 60).unwrap();
        store.sessions(&query).unwrap();
        while let Some(next) = store.events(&query).unwrap().next {
            query.cursor = Some(next.parse().unwrap());
        }
    }
}

#[test]
fn every_query_uses_an_index_or_the_sums() {
    let Some(address) = create_database() else {
        return;
    };
    open(&address).unwrap().ingest(&sums::records(700)).unwrap();
    let explained = format!(
        "{address}&options=-c%20session_preload_libraries%3Dauto_explain\
         %20-c%20auto_explain.log_min_duration%3D0"
    );
    let store = open(&explained).unwrap();
    let before = server_log().len();
    ask_everything(&*store);
    let log = server_log();
    let plans = log.get(before..).unwrap();
    assert!(plans.contains("Index Scan"), "no plans in the log");
    // Names, partitions and dictionaries are small tables that are read as a whole.
    let scanned: Vec<&str> = plans
        .lines()
        .filter(|line| line.contains("Seq Scan on"))
        .filter(|line| {
            !["facets", "origins", "hooks ", "parts", "dictionaries"]
                .iter()
                .any(|small| line.contains(&format!("Seq Scan on anyhook_{small}")))
        })
        .collect();
    assert_eq!(scanned, [""; 0]);
    assert!(
        plans.contains("anyhook_search_grams"),
        "no search used its index"
    );
}

#[test]
fn each_day_has_a_partition_and_retention_drops_it() {
    let Some(address) = create_database() else {
        return;
    };
    let store = open(&address).unwrap();
    store.ingest(&sums::records(400)).unwrap();
    let days = ["20260301", "20260302", "20260303", "20260304", "20260305"];
    let names: Vec<String> = days
        .iter()
        .map(|day| format!("anyhook_events_d{day}"))
        .collect();
    assert_eq!(partitions(&address)[..4], names[..4]);
    let third_day_us = anyhook_store::parse_micros("2026-03-03T06:00:00Z").unwrap();
    let now_us = jiff::Timestamp::now().as_microsecond();
    let keep = Retention {
        max_age_s: u64::try_from((now_us - third_day_us) / 1_000_000).ok(),
        ..Retention::default()
    };
    assert!(store.retain(&keep).unwrap() > 100);
    let left = partitions(&address);
    assert_eq!(left.first(), Some(&names[2]), "{left:?}");
    sums::assert_sums_equal_a_recount(&*store);
    // A day that comes back gets a partition again.
    store.ingest(&sums::records(40)).unwrap();
    assert_eq!(partitions(&address)[..4], names[..4]);
    sums::assert_sums_equal_a_recount(&*store);
}

#[test]
fn days_that_are_over_are_compacted() {
    let Some(address) = create_database() else {
        return;
    };
    let store = open(&address).unwrap();
    for batch in sums::records(1000).chunks(90) {
        store.ingest(batch).unwrap();
        while store.maintain_step().unwrap() {}
    }
    let mut client = Client::connect(&address, NoTls).unwrap();
    let sql = "SELECT name, compacted, pending FROM anyhook_parts ORDER BY name";
    let parts: Vec<(String, i64, i64)> = client
        .query(sql, &[])
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let compacted: Vec<i64> = parts.iter().map(|part| part.1).collect();
    assert!(compacted.starts_with(&[6, 6]), "{parts:?}");
    assert!(compacted.ends_with(&[0, 0]), "{parts:?}");
    assert!(parts.iter().all(|part| part.2 < 64), "{parts:?}");
    sums::assert_sums_equal_a_recount(&*store);
    ask_everything(&*store);
}

#[test]
fn times_far_away_share_one_partition() {
    let Some(address) = create_database() else {
        return;
    };
    let store = open(&address).unwrap();
    let records: Vec<_> = (0..60)
        .map(|n| {
            let mut made = fixtures::record(&format!("far-{n}"), 1);
            made.time = format!("{}-01-01T00:00:00Z", 1000 + n * 130);
            made
        })
        .collect();
    store.ingest(&records).unwrap();
    store.ingest(&[fixtures::record("near", 1)]).unwrap();
    assert_eq!(store.ingest(&records).unwrap().duplicate, 60);
    let tables = partitions(&address);
    assert_eq!(tables, ["anyhook_events_d20260301", "anyhook_events_other"]);
    let newest = fixtures::all(&*store, EventFilter::default());
    assert_eq!((newest.len(), newest[0].as_str()), (61, "far-59"));
    assert!(store.event("far-3").unwrap().is_some());
    sums::assert_sums_equal_a_recount(&*store);
}

/// Several daemons fill one database at the same time, with what others send as well.
#[test]
fn several_daemons_store_each_event_once() {
    let Some(address) = create_database() else {
        return;
    };
    let records = sums::records(600);
    std::thread::scope(|scope| {
        for daemon in 0..3 {
            let (address, records) = (&address, &records);
            scope.spawn(move || {
                let store = open(address).unwrap();
                for batch in records[daemon * 50..].chunks(37) {
                    store.ingest(batch).unwrap();
                }
            });
        }
    });
    let store = open(&address).unwrap();
    assert_eq!(fixtures::every_record(&*store).len(), 600);
    sums::assert_sums_equal_a_recount(&*store);
}
