//! A store that does not answer delays no call that does not need it.

#![cfg(test)]

mod support;

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhook_store::{
    EventDetail, EventFilter, EventRow, IngestCounts, JournalPosition, Page, PageQuery, ResultRow,
    Retention, SessionDetail, SessionSummary, Statement, Stats, Store, StoreError, WakeFn,
    WatchGuard,
};
use serde_json::json;
use support::{Call, Running, Sse};

/// A store whose every operation hangs while `hangs` is set.
struct HangingStore {
    store: Arc<dyn Store>,
    hangs: Arc<AtomicBool>,
    /// Statistics of [`ENDLESS`] that are being made.
    endless: Arc<AtomicUsize>,
}

/// A text whose statistics the database never finishes.
const ENDLESS: &str = "endless";

impl HangingStore {
    fn wait(&self) {
        while self.hangs.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Store for HangingStore {
    fn select(&self, statement: &Statement) -> Result<Vec<ResultRow>, StoreError> {
        self.wait();
        self.store.select(statement)
    }

    fn execute(&self, statement: &Statement) -> Result<u64, StoreError> {
        self.wait();
        self.store.execute(statement)
    }

    fn insert(
        &self,
        rows: &[EventRow],
        position: Option<&JournalPosition>,
    ) -> Result<IngestCounts, StoreError> {
        self.wait();
        self.store.insert(rows, position)
    }

    fn watch(&self, wake: WakeFn) -> Result<WatchGuard, StoreError> {
        self.store.watch(wake)
    }

    fn rows(&self, query: &PageQuery) -> Result<Page<EventRow>, StoreError> {
        self.wait();
        self.store.rows(query)
    }

    fn after(&self, seq: i64, limit: usize) -> Result<Vec<EventRow>, StoreError> {
        self.wait();
        self.store.after(seq, limit)
    }

    fn event(&self, id: &str) -> Result<Option<EventDetail>, StoreError> {
        self.wait();
        self.store.event(id)
    }

    fn sessions(&self, query: &PageQuery) -> Result<Page<SessionSummary>, StoreError> {
        self.wait();
        self.store.sessions(query)
    }

    fn session(&self, id: &str, agent: Option<&str>) -> Result<Option<SessionDetail>, StoreError> {
        self.wait();
        self.store.session(id, agent)
    }

    fn stats(&self, filter: &EventFilter, buckets: usize) -> Result<Stats, StoreError> {
        self.wait();
        if filter.text.as_deref() == Some(ENDLESS) {
            let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 1000 \
                           FROM n) SELECT COUNT(*) FROM n";
            self.endless.fetch_add(1, Ordering::SeqCst);
            let ended = self.store.select(&Statement::new(endless));
            self.endless.fetch_sub(1, Ordering::SeqCst);
            ended?;
        }
        self.store.stats(filter, buckets)
    }

    fn stored_bytes(&self) -> Result<u64, StoreError> {
        self.wait();
        self.store.stored_bytes()
    }

    fn retain_step(&self, retention: &Retention) -> Result<u64, StoreError> {
        self.wait();
        self.store.retain_step(retention)
    }
}

#[test]
fn a_store_that_hangs_delays_only_who_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = anyhook_store::open(dir.path().join("store.db").to_str().unwrap()).unwrap();
    let hangs = Arc::new(AtomicBool::new(false));
    let store: Arc<dyn Store> = Arc::new(HangingStore {
        store,
        hangs: hangs.clone(),
        endless: Arc::default(),
    });
    let mut daemon = Running::on(dir, store, |config| {
        config.limits.store_timeout = Duration::from_millis(400);
        config.limits.ingest_timeout = Duration::from_millis(400);
        config.limits.store_reads = 4;
        config.limits.hooks = 8;
    });
    let hook = json!({"session_id": "s"});
    assert_eq!(daemon.post("/hooks/claude", &hook).status, 200);
    daemon.until_stored(1);
    let mut stream = Sse::open(daemon.address, "/stream", Some("0"));
    assert!(stream.next().is_some());

    hangs.store(true, Ordering::SeqCst);
    // Many more than there are threads for them.
    let address = daemon.address;
    let begun = Instant::now();
    let readers: Vec<_> = (0..200)
        .map(|number| {
            let path = ["/events", "/sessions", "/events/x", "/ingest"][number % 4];
            std::thread::spawn(move || match path {
                "/ingest" => Call::new("POST", path)
                    .token()
                    .json(&json!([]))
                    .send(address),
                _ => Call::new("GET", path).token().send(address),
            })
        })
        .collect();
    for _ in 0..20 {
        let begun = Instant::now();
        assert_eq!(daemon.post("/hooks/claude", &hook).status, 200);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
    for reader in readers {
        let reply = reader.join().unwrap();
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (504, "store_timeout")
        );
        assert!(
            reply.body.contains("did not answer within"),
            "{}",
            reply.body
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    let metrics = daemon.get("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(
        metrics.body.contains("anyhook_streams 1"),
        "{}",
        metrics.body
    );
    let challenge = Call::new("POST", "/challenge").header("x-anyhook-nonce", &"a".repeat(32));
    assert_eq!(challenge.send(address).status, 200);

    // When it answers again, nothing is missing and the open stream goes on.
    hangs.store(false, Ordering::SeqCst);
    daemon.until_stored(21);
    for _ in 0..20 {
        assert!(stream.next().is_some());
    }
    assert_eq!(
        daemon.get("/events").json()["events"]
            .as_array()
            .unwrap()
            .len(),
        21
    );

    // It also ends while the store hangs; what is not stored is in the journal.
    hangs.store(true, Ordering::SeqCst);
    assert_eq!(daemon.post("/hooks/claude", &hook).status, 200);
    let begun = Instant::now();
    daemon.stop();
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    hangs.store(false, Ordering::SeqCst);
}

/// A tab of the page that is closed leaves nothing running in the database.
#[test]
fn a_request_that_is_abandoned_ends_its_query() {
    let dir = tempfile::tempdir().unwrap();
    let store = anyhook_store::open(dir.path().join("store.db").to_str().unwrap()).unwrap();
    let running: Arc<AtomicUsize> = Arc::default();
    let store: Arc<dyn Store> = Arc::new(HangingStore {
        store,
        hangs: Arc::default(),
        endless: running.clone(),
    });
    let daemon = Running::on(dir, store, |config| {
        config.limits.store_timeout = Duration::from_secs(300);
        config.limits.store_reads = 8;
    });
    let question = Call::new("GET", &format!("/stats?text={ENDLESS}")).token();
    let tabs: Vec<_> = (0..8)
        .map(|_| {
            let mut tab = TcpStream::connect(daemon.address).unwrap();
            tab.write_all(&question.bytes()).unwrap();
            tab
        })
        .collect();
    support::eventually(|| running.load(Ordering::SeqCst) == 8);
    drop(tabs);
    support::eventually(|| running.load(Ordering::SeqCst) == 0);
    // Their places are free again.
    assert_eq!(daemon.get("/stats").status, 200);
}

#[test]
fn a_thousand_streams_get_every_event_once() {
    let daemon = Running::start();
    let mut streams: Vec<_> = (0..1000)
        .map(|number| {
            let path = ["/stream", "/stream?agent=claude", "/stream?text=ls"][number % 3];
            Sse::open(daemon.address, path, None)
        })
        .collect();
    let refused = daemon.get("/stream");
    assert_eq!((refused.status, refused.code().as_str()), (503, "streams"));
    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(
            daemon
                .post("/hooks/claude", &json!({"session_id": "s"}))
                .status,
            200
        );
    }
    for stream in &mut streams {
        for seq in 1..=5 {
            assert_eq!(stream.next().unwrap().0, seq.to_string());
        }
    }
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(daemon.get("/events").status, 200);
}

/// One that resumes far behind what is kept in memory reads the store first.
#[test]
fn a_stream_that_resumes_far_behind_misses_nothing() {
    let daemon = Running::start();
    let _live = Sse::open(daemon.address, "/stream", None);
    let records: Vec<_> = (0..6000)
        .map(|n| support::record(&format!("r{n}")))
        .collect();
    for part in records.chunks(1500) {
        let reply = Call::new("POST", "/ingest")
            .token()
            .json(&json!(part))
            .send(daemon.address);
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    for (after, path) in [(0, "/stream"), (100, "/stream?text=ls"), (5990, "/stream")] {
        let mut stream = Sse::open(daemon.address, path, Some(&after.to_string()));
        for seq in after + 1..=6000 {
            assert_eq!(
                stream.next().unwrap().0,
                seq.to_string(),
                "{path} after {after}"
            );
        }
    }
}

/// As on a disk that hangs: the call gets an error in time, and other projects their hooks.
#[test]
fn a_project_whose_files_hang_delays_no_other() {
    let daemon = Running::with(|config| {
        config.limits.hooks = 8;
        config.limits.hook_start_timeout = Duration::from_millis(300);
    });
    *daemon.host.finds_in.lock().unwrap() = Duration::from_secs(5);
    let address = daemon.address;
    let call = |cwd: &str| Call::new("POST", "/hooks/claude").json(&json!({"cwd": cwd}));
    let hung: Vec<_> = (0..20)
        .map(|_| {
            let call = call("/hangs");
            std::thread::spawn(move || call.send(address))
        })
        .collect();
    for reply in hung {
        let reply = reply.join().unwrap();
        assert_eq!((reply.status, reply.code().as_str()), (503, "busy"));
    }
    *daemon.host.finds_in.lock().unwrap() = Duration::ZERO;
    for _ in 0..20 {
        assert_eq!(call("/other").send(address).status, 200);
    }
    assert_eq!(
        call("/hangs").send(address).status,
        503,
        "its slots are taken"
    );
}
