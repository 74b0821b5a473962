//! A store as Parquet files: each event once, whatever happens, and the same to every engine.

#![cfg(test)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the numbers of these tests are small"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhook_archive::Archive;
use anyhook_model::{Decision, HookEvent, HookRun, Record};
use anyhook_store::{EventFilter, Retention, Store, open, rfc3339_micros};
use serde_json::{Value, json};

const WORK: &str = "ANYHOOK_ARCHIVE_TEST_FOLDER";
/// 2026-03-01T00:00:00Z.
const BEGIN_US: i64 = 1_772_323_200_000_000;

fn record(n: i64) -> Record {
    let data = json!({"tool_name": "shell", "tool_input": {"command": format!("echo {n} ä'\"")}});
    let runs = (0..n % 3).map(|hook| HookRun {
        hook: format!("hook-{hook}"),
        manifest: "/p/hooks.yaml".to_owned(),
        duration_ms: 0.25 * (n % 17) as f64,
        ..HookRun::default()
    });
    Record {
        v: 1,
        id: format!("event-{n}"),
        time: rfc3339_micros(BEGIN_US + n * 7_919 % 259_200 * 1_000_000 + n),
        agent: ["claude-code", "codex"][(n % 2) as usize].to_owned(),
        event: HookEvent {
            event: "before_tool_execute".to_owned(),
            session_id: (n % 5 != 0).then(|| format!("s{}", n / 10)),
            data: if n % 4 == 0 {
                serde_json::Map::new()
            } else {
                data.as_object().unwrap().clone()
            },
            ..HookEvent::default()
        },
        decision: (n % 7 == 0).then_some(Decision::Deny),
        hooks: runs.collect(),
        duration_ms: 0.5 * n as f64,
        ..Record::default()
    }
}

fn records(from: i64, until: i64) -> Vec<Record> {
    (from..until).map(record).collect()
}

fn store_in(dir: &Path) -> Arc<dyn Store> {
    open(dir.join("store.db").to_str().unwrap()).unwrap()
}

fn parquet_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(parquet_files(&path));
        } else if path.extension().is_some_and(|end| end == "parquet") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The numbers of all events in an archive.
fn archived_numbers(dir: &Path) -> Vec<i64> {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;
    let mut numbers = Vec::new();
    for path in parquet_files(dir) {
        let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
        for row in file.get_row_iter(None).unwrap() {
            numbers.push(row.unwrap().get_long(1).unwrap());
        }
    }
    numbers.sort_unstable();
    numbers
}

fn export(store: &dyn Store, dir: &Path) -> anyhook_archive::ExportCounts {
    let archive = Archive::open(dir.to_str().unwrap(), store).unwrap();
    archive.export(store).unwrap()
}

#[test]
fn each_event_is_exported_once() {
    let dir = tempfile::tempdir().unwrap();
    let (store, archive) = (store_in(dir.path()), dir.path().join("archive"));
    store.ingest(&records(0, 300)).unwrap();
    let done = export(&*store, &archive);
    assert_eq!((done.events, done.files, done.exported_seq), (300, 3, 300));
    let days: Vec<_> = parquet_files(&archive)
        .iter()
        .map(|path| path.parent().unwrap().file_name().unwrap().to_owned())
        .collect();
    assert_eq!(days, ["day=2026-03-01", "day=2026-03-02", "day=2026-03-03"]);
    assert_eq!(export(&*store, &archive).events, 0);
    store.ingest(&records(300, 310)).unwrap();
    assert_eq!(export(&*store, &archive).events, 10);
    assert_eq!(archived_numbers(&archive), (1..=310).collect::<Vec<_>>());
}

#[test]
fn small_files_of_a_day_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let (store, archive) = (store_in(dir.path()), dir.path().join("archive"));
    let mut merged = 0;
    for round in 0..20 {
        store.ingest(&records(round * 30, round * 30 + 30)).unwrap();
        merged += export(&*store, &archive).merged;
    }
    assert!(merged >= 6, "{merged}");
    let files = parquet_files(&archive);
    assert!(files.len() < 24, "{files:?}");
    assert_eq!(archived_numbers(&archive), (1..=600).collect::<Vec<_>>());
}

#[test]
fn two_exports_to_one_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, archive) = (store_in(dir.path()), dir.path().join("archive"));
    let address = archive.to_str().unwrap();
    let first = Archive::open(address, &*store).unwrap();
    let second = Archive::open(address, &*store).err().unwrap().to_string();
    assert!(second.contains("another export"), "{second}");
    drop(first);
    Archive::open(address, &*store).unwrap();
    // Another store has files of its own.
    let other_dir = tempfile::tempdir().unwrap();
    let other = store_in(other_dir.path());
    store.ingest(&records(0, 5)).unwrap();
    other.ingest(&records(0, 5)).unwrap();
    export(&*store, &archive);
    export(&*other, &archive);
    assert_eq!(archived_numbers(&archive).len(), 10);
}

#[test]
fn invalid_places_and_damaged_states_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    for address in ["", "ftp://x/y", "s3://"] {
        let error = Archive::open(address, &*store).err().unwrap().to_string();
        assert!(error.contains("use a folder or s3://"), "{error}");
    }
    let archive = dir.path().join("archive");
    export(&*store, &archive);
    let state = std::fs::read_dir(archive.join("_anyhook")).unwrap();
    assert!(state.count() >= 1);
    let path = archive
        .join("_anyhook")
        .join(format!("{}.json", store.store_id().unwrap()));
    for text in ["{", "{\"v\": 99, \"exported\": 1}"] {
        std::fs::write(&path, text).unwrap();
        let open = Archive::open(archive.to_str().unwrap(), &*store).unwrap();
        let error = open.export(&*store).unwrap_err().to_string();
        assert!(error.contains("newer anyhook or is damaged"), "{error}");
    }
}

/// Only what is exported is deleted.
#[test]
fn retention_waits_for_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let (store, archive) = (store_in(dir.path()), dir.path().join("archive"));
    store.ingest(&records(0, 100)).unwrap();
    let exported = export(&*store, &archive).exported_seq;
    store.ingest(&records(100, 150)).unwrap();
    let keep = Retention {
        max_age_s: Some(1),
        exported_seq: Some(exported),
        ..Retention::default()
    };
    while store.retain_step(&keep).unwrap() > 0 {}
    let left = store.stats(&EventFilter::default(), 5).unwrap().events;
    assert!((50..=150).contains(&left), "{left}");
    export(&*store, &archive);
    assert_eq!(archived_numbers(&archive), (1..=150).collect::<Vec<_>>());
}

#[test]
#[ignore = "runs in the processes that another test starts"]
fn work() {
    if let Ok(folder) = std::env::var(WORK) {
        let folder = Path::new(&folder);
        export(&*store_in(folder), &folder.join("archive"));
    }
}

/// `ANYHOOK_KILL_ROUNDS` sets the number of rounds.
#[test]
fn killed_while_it_exports() {
    let rounds = std::env::var("ANYHOOK_KILL_ROUNDS").ok();
    let rounds: u64 = rounds.and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..rounds {
        let dir = tempfile::tempdir().unwrap();
        let store = store_in(dir.path());
        for part in 0..24 {
            store.ingest(&records(part * 50, part * 50 + 50)).unwrap();
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "work", "--ignored", "--nocapture"])
                .env(WORK, dir.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            std::thread::sleep(Duration::from_millis(state % 60));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let archive = dir.path().join("archive");
        export(&*store, &archive);
        assert_eq!(archived_numbers(&archive), (1..=1200).collect::<Vec<_>>());
    }
}

/// What the store itself says of its events.
fn expected(store: &dyn Store) -> Value {
    let rows = store.after(0, 10_000).unwrap();
    let count = |test: &dyn Fn(&anyhook_store::EventRow) -> bool| {
        rows.iter().filter(|row| test(row)).count() as f64
    };
    let totals = json!([
        rows.len() as f64,
        rows.iter().map(|row| row.summary.seq as f64).sum::<f64>(),
        rows.len() as f64,
        rows.iter().map(|row| row.summary.duration_ms).sum::<f64>(),
        count(&|row| row.summary.decision.as_deref() == Some("deny")),
        count(&|row| row.summary.tool.is_some()),
        count(&|row| row.summary.session_id.is_some()),
    ]);
    let mut days = std::collections::BTreeMap::<String, f64>::new();
    let mut hooks = std::collections::BTreeMap::<String, (f64, f64)>::new();
    for row in &rows {
        *days
            .entry(row.summary.time.get(..10).unwrap().to_owned())
            .or_default() += 1.0;
        for run in &row.runs {
            let (count, sum) = hooks.entry(run.hook.clone()).or_default();
            *count += 1.0;
            *sum += run.duration_ms;
        }
    }
    let times = rows.iter().map(|row| row.summary.time_us as f64);
    let days: Vec<Value> = days.into_iter().map(|(day, n)| json!([day, n])).collect();
    let hooks: Vec<Value> = hooks
        .into_iter()
        .map(|(hook, (n, sum))| json!([hook, n, sum]))
        .collect();
    json!([
        [totals],
        days,
        hooks,
        [[
            times.clone().fold(f64::MAX, f64::min),
            times.fold(0.0, f64::max)
        ]]
    ])
}

/// The engine's answers, if its package is installed for `ANYHOOK_TEST_PYTHON` or `python3`.
fn read_by(engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (store, archive) = (store_in(dir.path()), dir.path().join("archive"));
    for part in 0..12 {
        store
            .ingest(&records(part * 100, part * 100 + 100))
            .unwrap();
        export(&*store, &archive);
    }
    let python = std::env::var("ANYHOOK_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_back.py");
    let output = Command::new(python)
        .arg(script)
        .arg(engine)
        .arg(&archive)
        .stderr(Stdio::piped())
        .output();
    let Ok(output) = output else {
        println!("skipped: {engine}: Python is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    let found: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{text}\n{why}"));
    if let Some(missing) = found.get("missing") {
        println!("skipped: {engine}: the Python package {missing} is not installed");
        return;
    }
    assert_eq!(found, expected(&*store));
}

#[test]
fn duckdb_reads_the_same() {
    read_by("duckdb");
}

#[test]
fn clickhouse_reads_the_same() {
    read_by("chdb");
}

#[test]
fn spark_reads_the_same() {
    read_by("pyspark");
}
