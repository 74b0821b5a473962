//! Killed at any moment, under load: every event that was acknowledged is in the store, once.

#![cfg(unix)] // ends processes by signals
#![cfg(test)]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhook_daemon::{Daemon, DaemonConfig, JournalSource};
use anyhook_model::Answer;
use anyhook_store::{EventFilter, PageQuery, Store};
use anyhook_testkit::postgres;
use serde_json::json;
use support::{Call, FakeHost, TOKEN, append, record};

/// Not a test: the process that the tests start and kill.
#[test]
#[ignore = "started by the other tests"]
fn daemon_process() {
    let Ok(dir) = std::env::var("ANYHOOK_TEST_DIR") else {
        return;
    };
    let journal = Path::new(&dir).join("journal");
    let store = anyhook_store::open(&std::env::var("ANYHOOK_TEST_STORE").unwrap()).unwrap();
    let mut config = DaemonConfig::new(TOKEN);
    config.listen = ([127, 0, 0, 1], 0).into();
    config.journal = Some(JournalSource {
        dir: journal.clone(),
        source: "m".to_owned(),
    });
    let host = FakeHost {
        journal: Some(journal),
        answer: Mutex::new(Answer {
            stdout: "ID".to_owned(),
            ..Answer::default()
        }),
        ..FakeHost::default()
    };
    let daemon = Daemon::bind(config, store, Arc::new(host)).unwrap();
    println!("listening {}", daemon.local_addr());
    // Nobody is left behind: its input closes when the test ends, however it ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    daemon.run().unwrap();
}

fn start(dir: &Path, store: &str) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "daemon_process", "--ignored", "--nocapture"])
        .env("ANYHOOK_TEST_DIR", dir)
        .env("ANYHOOK_TEST_STORE", store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .find_map(|line| {
            let line = line.unwrap();
            line.split_once("listening ")
                .map(|(_, address)| address.parse().unwrap())
        })
        .expect("the daemon prints where it listens");
    // Later output is not read; a full pipe must not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address)
}

struct Load {
    dir: PathBuf,
    address: Mutex<Option<SocketAddr>>,
    over: AtomicBool,
    count: AtomicU64,
    acknowledged: Mutex<BTreeSet<String>>,
}

impl Load {
    /// Hooks, ingested batches, and lines that other processes write.
    fn go(&self, way: usize) {
        while !self.over.load(Ordering::Relaxed) {
            let number = self.count.fetch_add(1, Ordering::Relaxed);
            let address = *self.address.lock().unwrap();
            let (Some(address), 0 | 1) = (address, way) else {
                let id = format!("line-{number}");
                append(&self.dir.join("journal"), &record(&id));
                self.acknowledged.lock().unwrap().insert(id);
                std::thread::sleep(Duration::from_millis(2));
                continue;
            };
            if way == 0 {
                let call = Call::new("POST", "/hooks/claude").json(&json!({"session_id": "s"}));
                if let Ok(reply) = call.try_send(address)
                    && reply.status == 200
                {
                    let id = reply.json()["id"].as_str().unwrap().to_owned();
                    self.acknowledged.lock().unwrap().insert(id);
                }
            } else {
                let ids: Vec<_> = (0..5)
                    .map(|part| format!("batch-{number}-{part}"))
                    .collect();
                let batch: Vec<_> = ids.iter().map(|id| record(id)).collect();
                let call = Call::new("POST", "/ingest").token().json(&json!(batch));
                if let Ok(reply) = call.try_send(address)
                    && reply.status == 200
                {
                    self.acknowledged.lock().unwrap().extend(ids);
                }
            }
        }
    }
}

fn stored(store: &dyn Store) -> Vec<String> {
    let mut query = PageQuery {
        limit: 1000,
        ..PageQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = store.events(&query).unwrap();
        found.extend(page.items.into_iter().map(|item| item.id));
        match page.next {
            Some(next) => query.cursor = Some(next.parse().unwrap()),
            None => return found,
        }
    }
}

/// A daemon that has stored nothing new for this long has caught up.
const MAX_STANDSTILL: Duration = Duration::from_secs(60);

fn rounds() -> usize {
    std::env::var("ANYHOOK_TEST_KILLS").map_or(100, |count| count.parse().unwrap())
}

fn kill_rounds(store: &str) {
    let dir = tempfile::tempdir().unwrap();
    let load = Load {
        dir: dir.path().to_owned(),
        address: Mutex::new(None),
        over: AtomicBool::new(false),
        count: AtomicU64::new(0),
        acknowledged: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for way in 0..3 {
            let load = &load;
            scope.spawn(move || load.go(way));
        }
        // Spread over the life of a round without a clock that decides the outcome.
        let mut spread = 7_u64;
        for _ in 0..rounds() {
            let (mut child, address) = start(dir.path(), store);
            *load.address.lock().unwrap() = Some(address);
            spread = spread
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            std::thread::sleep(Duration::from_millis(spread >> 57));
            child.kill().unwrap();
            child.wait().unwrap();
            *load.address.lock().unwrap() = None;
        }
        load.over.store(true, Ordering::Relaxed);
    });
    let acknowledged = load.acknowledged.into_inner().unwrap();
    assert!(
        acknowledged.len() > rounds(),
        "{} acknowledged",
        acknowledged.len()
    );
    for way in ["hook-", "batch-", "line-"] {
        assert!(
            acknowledged.iter().any(|id| id.starts_with(way)),
            "no {way} was acknowledged"
        );
    }
    let (mut child, _) = start(dir.path(), store);
    let reader = anyhook_store::open(store).unwrap();
    // However long a busy machine takes to catch up: it must not stop before the end.
    let (mut stored_before, mut grown_at) = (0, Instant::now());
    loop {
        let found: BTreeSet<_> = stored(&*reader).into_iter().collect();
        if acknowledged.is_subset(&found) {
            break;
        }
        if found.len() > stored_before {
            (stored_before, grown_at) = (found.len(), Instant::now());
        }
        let missing = acknowledged.difference(&found).count();
        let standstill = grown_at.elapsed();
        assert!(standstill < MAX_STANDSTILL, "{missing} events are missing");
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let found = stored(&*reader);
    let once: BTreeSet<_> = found.iter().collect();
    assert_eq!(found.len(), once.len(), "nothing is doubled");
    let counted = reader.stats(&EventFilter::default(), 1).unwrap();
    assert_eq!(counted.events, i64::try_from(found.len()).unwrap());
    let runs: i64 = counted.by_hook.iter().map(|hook| hook.runs).sum();
    assert_eq!(
        runs, counted.events,
        "each event brought its one hook run, once"
    );
}

#[test]
fn on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    kill_rounds(dir.path().join("store.db").to_str().unwrap());
}

#[test]
fn on_postgres() {
    if let Some(address) = postgres::create_database() {
        kill_rounds(&address);
    }
}
