//! Fills a store with made-up events and measures how its queries grow with them.
//!
//! `cargo xtask bench store [--events N] [--store ADDRESS]` runs it. Every figure is a ratio
//! within one run: to the same query at a tenth of the events (or 100,000), to fetching one
//! event by its id, and to plain SQL over the same rows.
//!
//! A copy of the store is kept at each size, and all copies are measured in turn, so that a
//! busy machine slows them alike. `--only fill` generates (and goes on where it was stopped),
//! `--only measure` measures what was generated.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a benchmark reports to the person who runs it, and ends when it fails"
)]

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhook_model::{Decision, HookEvent, HookResponse, HookRun, Record, RunOutcome};
use anyhook_store::{EventFilter, EventRow, PageQuery, Store, open, rfc3339_micros};
use serde_json::{Map, json};

const BATCH_EVENTS: u64 = 1000;
/// Sums are written once for each batch: larger ones fill a store faster.
const FILL_EVENTS: u64 = 40_000;
const MIDDLE_STEP: u64 = 1_000_000;
const SESSION_EVENTS: u64 = 140;
const DAYS: u64 = 90;
/// Of each query, the best of these counts.
const RUNS: usize = 9;
/// A query that took longer at all sizes together is not measured again.
const MAX_QUERY_TIME: Duration = Duration::from_secs(5);

struct Options {
    events: u64,
    store: String,
    /// `fill` or `measure`; both if empty.
    only: String,
}

fn main() {
    let options = options();
    let steps = checkpoints(options.events);
    if options.only != "measure" {
        generate(&options, &steps);
    }
    if options.only == "fill" {
        return;
    }
    let mut stores: Vec<(u64, Arc<dyn Store>)> = Vec::new();
    for step in steps {
        let address = copy_address(&options, step);
        let store = open(&address).unwrap();
        set_begin(&*store);
        while store.maintain_step().unwrap() {}
        // Fewer where the generation was stopped.
        let stored = stored_events(&*store);
        let bytes = file_bytes(&address) / stored.max(1);
        println!("{stored} events: {bytes} bytes an event");
        stores.push((stored, store));
    }
    let steps: Vec<u64> = stores.iter().map(|(stored, _)| *stored).collect();
    let curves = measure_in_turn(&stores, options.events);
    report(&steps, &curves);
    for (step, store) in &stores {
        compare_with_exact(&**store, *step);
    }
    if is_postgres(&options.store) {
        postgres_sizes(&options.store);
        postgres_row_inserts(&options.store, options.events);
    } else {
        sqlite_baselines(&options.store, &curves);
        raw_inserts(options.events.min(20_000));
    }
}

/// Numbers may have gaps where the generation was stopped.
fn stored_events(store: &dyn Store) -> u64 {
    let all = store.stats(&EventFilter::default(), 1).unwrap();
    all.events.cast_unsigned()
}

fn is_postgres(store: &str) -> bool {
    store.starts_with("postgres")
}

/// Fills the store up to each step, and keeps a copy of it there.
fn generate(options: &Options, steps: &[u64]) {
    let mut spent = Duration::ZERO;
    for step in steps {
        let store = open(&options.store).unwrap();
        let stored = stored_events(&*store);
        set_begin(&*store);
        if stored >= *step {
            continue;
        }
        spent += fill(&*store, stored, *step, options.events);
        drop(store);
        println!("{step} events: {:.0} s in the store", spent.as_secs_f64());
        let copy = copy_address(options, *step);
        if copy != options.store {
            copy_store(&options.store, &copy);
        }
    }
}

/// The store itself, or the copy of it that has this many events.
fn copy_address(options: &Options, step: u64) -> String {
    if step == options.events {
        return options.store.clone();
    }
    if !is_postgres(&options.store) {
        return format!("{}-{step}", options.store);
    }
    let (place, arguments) = options
        .store
        .split_once('?')
        .unwrap_or((options.store.as_str(), ""));
    format!("{place}_{step}?{arguments}")
}

fn database_name(address: &str) -> &str {
    let place = address.split_once('?').map_or(address, |(place, _)| place);
    place.rsplit_once('/').unwrap().1
}

fn copy_store(from: &str, to: &str) {
    if is_postgres(from) {
        let (from, to_name) = (database_name(from), database_name(to));
        let server = to.replacen(&format!("/{to_name}"), "/postgres", 1);
        let mut client = postgres::Client::connect(&server, postgres::NoTls).unwrap();
        let drop = format!("DROP DATABASE IF EXISTS {to_name}");
        client.batch_execute(&drop).unwrap();
        let create = format!("CREATE DATABASE {to_name} TEMPLATE {from}");
        client.batch_execute(&create).unwrap();
        return;
    }
    let raw = rusqlite::Connection::open(from).unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    std::fs::copy(from, to).unwrap();
}

fn options() -> Options {
    let mut arguments = std::env::args().skip(1);
    let mut options = Options {
        events: 1_000_000,
        store: String::new(),
        only: String::new(),
    };
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--events" => options.events = value.replace('_', "").parse().unwrap(),
            "--store" => options.store = value,
            "--only" => options.only = value,
            other => panic!("unknown option `{other}`"),
        }
    }
    assert!(!options.store.is_empty(), "--store is missing");
    options
}

/// A million (or a tenth of all, if that is less), and all; 100,000 if that is less than a tenth.
fn checkpoints(events: u64) -> Vec<u64> {
    let mut steps = vec![100_000, (events / 10).min(MIDDLE_STEP), events];
    steps.retain(|step| (10_000..=events).contains(step));
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// The time that the store took; the events are made by another thread meanwhile.
fn fill(store: &dyn Store, from: u64, until: u64, all: u64) -> Duration {
    let mut spent = Duration::ZERO;
    let (sender, batches) = std::sync::mpsc::sync_channel::<Vec<EventRow>>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for batch in (from..until).step_by(FILL_EVENTS as usize) {
                let numbers = batch..(batch + FILL_EVENTS).min(until);
                let rows = numbers.map(|n| EventRow::from_record(&record(n, all)).unwrap());
                if sender.send(rows.collect()).is_err() {
                    return;
                }
            }
        });
        for rows in batches {
            let begun = Instant::now();
            let done = store.insert(&rows, None).unwrap();
            assert_eq!(done.new, rows.len() as u64);
            while store.maintain_step().unwrap() {}
            spent += begun.elapsed();
        }
    });
    spent
}

/// Numbers that look random and are the same in every run.
fn mixed(n: u64, salt: u64) -> u64 {
    let mut x = n.wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn hex(n: u64, salt: u64) -> String {
    format!("{:016x}", mixed(n, salt))
}

fn uuid(n: u64, salt: u64) -> String {
    let (a, b) = (hex(n, salt), hex(n, salt + 1));
    format!(
        "{}-{}-4{}-8{}-{}{}",
        &a[..8],
        &a[8..12],
        &a[13..16],
        &b[1..4],
        &b[4..],
        &a[12..16]
    )
    .chars()
    .take(36)
    .collect()
}

/// As anyhook numbers its events: a UUID of version 7.
fn event_id(n: u64, all: u64) -> String {
    let (millis, rest) = (time_us(n, all) / 1000, uuid(n, 20));
    let time = format!("{millis:012x}");
    format!("{}-{}-7{}", &time[..8], &time[8..], &rest[15..])
}

static BEGIN: OnceLock<u64> = OnceLock::new();

/// What was generated on another day goes on from there.
fn set_begin(store: &dyn Store) {
    if let Some(first) = store.after(0, 1).unwrap().first() {
        BEGIN.get_or_init(|| first.summary.time_us.cast_unsigned());
    }
}

/// The last 90 days, from midnight to midnight.
fn begin_us() -> u64 {
    *BEGIN.get_or_init(|| {
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        (now / 86_400 - DAYS) * 86_400_000_000
    })
}

fn time_us(n: u64, all: u64) -> u64 {
    begin_us() + (u128::from(n) * u128::from(DAYS * 86_400_000_000) / u128::from(all)) as u64
}

/// In whole microseconds, as anyhook measures.
fn duration(n: u64, salt: u64) -> f64 {
    let unit = (mixed(n, salt) >> 11) as f64 / (1_u64 << 53) as f64;
    (300.0 * (unit * 6.0).exp()).round() / 1e3
}

const AGENTS: [&str; 7] = [
    "claude-code",
    "claude-code",
    "claude-code",
    "codex",
    "cursor",
    "gemini-cli",
    "kiro",
];

fn agent(n: u64) -> &'static str {
    AGENTS[(mixed(n / SESSION_EVENTS, 1) % 7) as usize]
}

fn record(n: u64, all: u64) -> Record {
    const TOOLS: [&str; 6] = [
        "shell",
        "file_read",
        "file_edit",
        "file_write",
        "search",
        "web_fetch",
    ];
    const WORDS: [&str; 24] = [
        "cargo",
        "test",
        "--workspace",
        "git",
        "status",
        "src/main.rs",
        "npm",
        "run",
        "build",
        "grep",
        "-rn",
        "TODO",
        "python3",
        "manage.py",
        "migrate",
        "docker",
        "compose",
        "up",
        "kubectl",
        "get",
        "pods",
        "ls",
        "-la",
        "make",
    ];
    let session = n / SESSION_EVENTS;
    let agent = agent(n);
    let project = mixed(session, 2) % 12;
    let tool = TOOLS[(mixed(n, 3) % 6) as usize];
    let words = |salt: u64, count: u64| -> String {
        let word = |at| WORDS[(mixed(n, salt + at) % 24) as usize];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    let path = format!(
        "/home/dev/work/project-{project}/src/module_{}/file_{}.rs",
        mixed(n, 40) % 40,
        mixed(n, 41) % 400
    );
    let input = match tool {
        "shell" => json!({"command": words(50, 8), "description": words(70, 4)}),
        "file_read" | "search" => json!({"path": path, "pattern": words(80, 2)}),
        _ => json!({"path": path, "content": words(90, 60)}),
    };
    let is_before = n.is_multiple_of(2);
    let mut data = Map::new();
    data.insert("tool_name".to_owned(), tool.into());
    data.insert(
        "tool_call_id".to_owned(),
        format!("toolu_{}", hex(n / 2, 4)).into(),
    );
    data.insert("tool_input".to_owned(), input);
    if !is_before {
        data.insert(
            "tool_output".to_owned(),
            json!({"text": words(160, 50), "exit_code": mixed(n, 5) % 3}),
        );
    }
    let native = json!({
        "transcript_path": format!("/home/dev/.claude/projects/-home-dev-work-project-{project}/{}.jsonl", uuid(session, 8)),
        "permission_mode": "default",
        "hook_event_name": if is_before { "PreToolUse" } else { "PostToolUse" },
    });
    let mut metadata = Map::new();
    metadata.insert("native".to_owned(), native);
    let decision = match mixed(n, 6) % 220 {
        0 | 1 => Some(Decision::Deny),
        2 => Some(Decision::Ask),
        3..=40 => Some(Decision::Allow),
        _ => None,
    };
    let runs = 1 + u64::from(mixed(n, 7).is_multiple_of(4));
    let hooks = (0..runs).map(|hook| HookRun {
        hook: format!("guard-{}", (mixed(n, 9) + hook) % 5),
        manifest: "/home/dev/.config/anyhook/hooks.yaml".to_owned(),
        content: Some(format!("{:016x}", (mixed(n, 9) + hook) % 5)),
        outcome: match decision {
            Some(Decision::Deny) => RunOutcome::Deny,
            _ => RunOutcome::Allow,
        },
        exit: Some(0),
        duration_ms: duration(n, 10 + hook),
        ..HookRun::default()
    });
    let time = rfc3339_micros(time_us(n, all).cast_signed());
    Record {
        v: 1,
        id: event_id(n, all),
        time: time.clone(),
        agent: agent.to_owned(),
        event: HookEvent {
            event: if is_before {
                "before_tool_execute"
            } else {
                "after_tool_execute"
            }
            .to_owned(),
            source: agent.to_owned(),
            native_event: if is_before {
                "PreToolUse"
            } else {
                "PostToolUse"
            }
            .to_owned(),
            session_id: Some(uuid(session, 30)),
            timestamp: Some(time),
            cwd: Some(format!("/home/dev/work/project-{project}")),
            machine_id: Some("laptop".to_owned()),
            project_id: Some(format!("project-{project}")),
            metadata,
            data,
            ..HookEvent::default()
        },
        decision,
        response: match decision {
            Some(Decision::Deny) => HookResponse::deny("not in this project"),
            _ => HookResponse::default(),
        },
        hooks: hooks.collect(),
        duration_ms: duration(n, 12),
        ..Record::default()
    }
}

type Query<'a> = (&'static str, Box<dyn Fn() + 'a>);

/// Every query of the page and of the command line.
fn queries(store: &Arc<dyn Store>, stored: u64, all: u64) -> Vec<Query<'_>> {
    let text = |text: &str| Some(text.to_owned());
    let none = EventFilter::default;
    let store = &**store;
    let page = |filter: EventFilter| PageQuery {
        filter,
        ..PageQuery::default()
    };
    let events = move |filter: EventFilter| {
        let query = page(filter);
        move || drop(store.events(&query).unwrap())
    };
    let deep = move |part: u64| {
        let cursor = format!("{}.{}", time_us(stored / 100 * part, all), i64::MAX);
        let query = PageQuery {
            cursor: Some(cursor.parse().unwrap()),
            ..PageQuery::default()
        };
        move || drop(store.events(&query).unwrap())
    };
    let stats = move |filter: EventFilter| move || drop(store.stats(&filter, 48).unwrap());
    let sessions = move |filter: EventFilter| {
        let query = PageQuery {
            filter,
            limit: 50,
            ..PageQuery::default()
        };
        move || drop(store.sessions(&query).unwrap())
    };
    let ago = move |days: u64| {
        Some(
            time_us(stored, all)
                .saturating_sub(days * 86_400_000_000)
                .cast_signed(),
        )
    };
    let one = event_id(stored / 2, all);
    let session = uuid(stored / 2 / SESSION_EVENTS, 30);
    vec![
        (
            "one event by id",
            Box::new(move || assert!(store.event(&one).unwrap().is_some())),
        ),
        ("newest page", Box::new(events(none()))),
        ("page at half depth", Box::new(deep(50))),
        ("page at 99 % depth", Box::new(deep(1))),
        (
            "agent",
            Box::new(events(EventFilter {
                agent: text("kiro"),
                ..none()
            })),
        ),
        (
            "agent, none such",
            Box::new(events(EventFilter {
                agent: text("nobody"),
                ..none()
            })),
        ),
        (
            "tool",
            Box::new(events(EventFilter {
                tool: text("search"),
                ..none()
            })),
        ),
        (
            "tool, none such",
            Box::new(events(EventFilter {
                tool: text("nothing"),
                ..none()
            })),
        ),
        (
            "event",
            Box::new(events(EventFilter {
                event: text("AFTER_TOOL"),
                ..none()
            })),
        ),
        (
            "machine, none such",
            Box::new(events(EventFilter {
                machine: text("nowhere"),
                ..none()
            })),
        ),
        (
            "project",
            Box::new(events(EventFilter {
                project_id: text("project-3"),
                ..none()
            })),
        ),
        (
            "decision deny",
            Box::new(events(EventFilter {
                decision: text("deny"),
                ..none()
            })),
        ),
        (
            "agent, tool, decision",
            Box::new(events(EventFilter {
                agent: text("kiro"),
                tool: text("search"),
                decision: text("deny"),
                ..none()
            })),
        ),
        (
            "since 7 days",
            Box::new(events(EventFilter {
                since_us: ago(7),
                ..none()
            })),
        ),
        (
            "text, common",
            Box::new(events(EventFilter {
                text: text("cargo"),
                ..none()
            })),
        ),
        (
            "text, rare",
            Box::new(events(EventFilter {
                text: text(&hex(stored / 4, 4)),
                ..none()
            })),
        ),
        (
            "text, absent",
            Box::new(events(EventFilter {
                text: text("xyzzy-plugh"),
                ..none()
            })),
        ),
        ("sessions", Box::new(sessions(none()))),
        (
            "sessions of an agent",
            Box::new(sessions(EventFilter {
                agent: text("codex"),
                ..none()
            })),
        ),
        (
            "sessions since 7 days",
            Box::new(sessions(EventFilter {
                since_us: ago(7),
                ..none()
            })),
        ),
        (
            "sessions with a denial",
            Box::new(sessions(EventFilter {
                decision: text("deny"),
                ..none()
            })),
        ),
        (
            "one session",
            Box::new(move || assert!(store.session(&session, None).unwrap().is_some())),
        ),
        ("stats of all", Box::new(stats(none()))),
        (
            "stats of an agent",
            Box::new(stats(EventFilter {
                agent: text("codex"),
                ..none()
            })),
        ),
        (
            "stats since 7 days",
            Box::new(stats(EventFilter {
                since_us: ago(7),
                ..none()
            })),
        ),
        (
            "stats since 1 day",
            Box::new(stats(EventFilter {
                since_us: ago(1),
                ..none()
            })),
        ),
        (
            "stream",
            Box::new(move || drop(store.after(stored.cast_signed() - 100, 200).unwrap())),
        ),
        (
            "1000 records (replay)",
            Box::new(move || {
                let query = PageQuery {
                    filter: EventFilter {
                        since_us: ago(7),
                        ..none()
                    },
                    limit: 1000,
                    ..PageQuery::default()
                };
                drop(store.rows(&query).unwrap());
            }),
        ),
    ]
}

/// Counts and percentiles of the store against those of every duration that was recorded.
fn compare_with_exact(store: &dyn Store, stored: u64) {
    let mut durations: HashMap<&str, Vec<f64>> = HashMap::new();
    for n in 0..stored {
        durations.entry(agent(n)).or_default().push(duration(n, 12));
    }
    let stats = store.stats(&EventFilter::default(), 48).unwrap();
    assert_eq!(stats.events.cast_unsigned(), stored);
    assert_eq!(stats.by_agent.len(), durations.len());
    let mut worst = 0.0_f64;
    for found in &stats.by_agent {
        let exact = durations.get_mut(found.agent.as_str()).unwrap();
        assert_eq!(found.events.cast_unsigned(), exact.len() as u64);
        exact.sort_unstable_by(f64::total_cmp);
        let latency = found.duration_ms;
        for (percent, found) in [(50, latency.p50), (95, latency.p95), (99, latency.p99)] {
            let rank = (exact.len() * percent).div_ceil(100).max(1);
            let exact = exact[rank - 1];
            worst = worst.max((found - exact).abs() / exact);
        }
    }
    println!(
        "{stored} durations: counts are equal, percentiles are within {:.2} %",
        worst * 100.0
    );
}

/// The best of several runs of each query at each size, in milliseconds.
fn measure_in_turn(stores: &[(u64, Arc<dyn Store>)], all: u64) -> Vec<(String, Vec<f64>)> {
    let sets: Vec<Vec<Query<'_>>> = stores
        .iter()
        .map(|(stored, store)| queries(store, *stored, all))
        .collect();
    let names = sets.first().into_iter().flatten().map(|(name, _)| *name);
    let mut curves: Vec<(String, Vec<f64>)> = names
        .map(|name| (name.to_owned(), vec![f64::MAX; sets.len()]))
        .collect();
    for (at, (_, best)) in curves.iter_mut().enumerate() {
        // A slow query is not repeated as often.
        let begun = Instant::now();
        for _ in 0..RUNS {
            for (set, best) in sets.iter().zip(best.iter_mut()) {
                let begun = Instant::now();
                set[at].1();
                *best = best.min(begun.elapsed().as_secs_f64() * 1e3);
            }
            if begun.elapsed() > MAX_QUERY_TIME {
                break;
            }
        }
    }
    curves
}

fn report(steps: &[u64], curves: &[(String, Vec<f64>)]) {
    let one = curves
        .first()
        .and_then(|(_, curve)| curve.last())
        .copied()
        .unwrap_or(1.0);
    print!("\n{:<26}", "ms");
    for step in steps {
        print!("{step:>12}");
    }
    println!("{:>10}{:>12}", "growth", "x one event");
    for (name, curve) in curves {
        print!("{name:<26}");
        for took in curve {
            print!("{took:>12.3}");
        }
        let last = curve.last().copied().unwrap_or_default();
        let before = curve.iter().rev().nth(1).copied().unwrap_or(last);
        println!("{:>10.2}{:>12.1}", last / before, last / one);
    }
}

fn file_bytes(store: &str) -> u64 {
    if is_postgres(store) {
        let mut client = postgres::Client::connect(store, postgres::NoTls).unwrap();
        let sql = "SELECT pg_database_size(current_database())";
        return client
            .query_one(sql, &[])
            .unwrap()
            .get::<_, i64>(0)
            .cast_unsigned();
    }
    ["", "-wal"]
        .iter()
        .filter_map(|end| std::fs::metadata(format!("{store}{end}")).ok())
        .map(|data| data.len())
        .sum()
}

/// The same questions in plain SQL over all rows, and what the search index takes.
fn sqlite_baselines(path: &str, curves: &[(String, Vec<f64>)]) {
    let raw = rusqlite::Connection::open(path).unwrap();
    let run = |sql: &str| {
        let begun = Instant::now();
        let mut statement = raw.prepare(sql).unwrap();
        let mut rows = statement.query([]).unwrap();
        while rows.next().unwrap().is_some() {}
        begun.elapsed().as_secs_f64() * 1e3
    };
    println!("\n{:<26}{:>12}{:>12}", "plain SQL", "ms", "ratio");
    for (name, sql) in [
        (
            "stats of all",
            "SELECT facet, COUNT(*), MAX(duration_ms), AVG(duration_ms) FROM anyhook_events GROUP BY facet",
        ),
        (
            "sessions",
            "SELECT session, MIN(time_us), MAX(time_us), COUNT(*) FROM anyhook_events GROUP BY session ORDER BY 3 DESC LIMIT 50",
        ),
        (
            "tool, none such",
            "SELECT seq FROM anyhook_events NOT INDEXED WHERE facet = -1 ORDER BY time_us DESC LIMIT 100",
        ),
    ] {
        let plain = run(sql);
        let ours = curves.iter().find(|(known, _)| known == name);
        let ours = ours
            .and_then(|(_, curve)| curve.last())
            .copied()
            .unwrap_or_default();
        println!("{name:<26}{plain:>12.1}{:>12.1}", plain / ours);
    }
    let sum = |condition: &str| -> f64 {
        let sql = format!(
            "SELECT COALESCE(SUM(pgsize), 0) FROM dbstat WHERE aggregate = TRUE AND {condition}"
        );
        raw.query_row(&sql, [], |row| row.get(0))
            .unwrap_or(f64::NAN)
    };
    let events: f64 = raw
        .query_row(
            "SELECT value FROM anyhook_totals WHERE name = 'events'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    println!(
        "\nbytes an event: {:.0}, of which search {:.0}, sums {:.0}, indexes of events {:.0}",
        sum("TRUE") / events,
        sum("name LIKE 'anyhook_search%'") / events,
        sum("name LIKE '%rollups'") / events,
        sum("name LIKE 'anyhook_event_%'") / events,
    );
}

/// What tables and indexes take, and what of it is the search.
fn postgres_sizes(address: &str) {
    let mut client = postgres::Client::connect(address, postgres::NoTls).unwrap();
    let events: i64 = client
        .query_one("SELECT SUM(events)::bigint FROM anyhook_parts", &[])
        .unwrap()
        .get(0);
    let mut sum = |condition: &str| -> f64 {
        let sql = format!(
            "SELECT COALESCE(SUM(pg_table_size(oid)), 0)::bigint FROM pg_class WHERE {condition}"
        );
        client.query_one(&sql, &[]).unwrap().get::<_, i64>(0) as f64 / events as f64
    };
    println!(
        "\nbytes an event: rows {:.0}, indexes {:.0}, search {:.0}, sums {:.0}",
        sum("relname ~ '^anyhook_events_[do0-9a-z]+$' AND relkind = 'r'"),
        sum("relname ~ '^anyhook_events_.*_idx[0-9]*$' AND relkind = 'i'"),
        sum("relname ~ '^anyhook_search' AND relkind IN ('r', 'i')"),
        sum("relname ~ 'rollup' AND relkind IN ('r', 'i')"),
    );
}

/// Ingest against one `INSERT` for each event into a table with the same columns and indexes.
fn postgres_row_inserts(address: &str, all: u64) {
    let events = all.min(20_000);
    let mut client = postgres::Client::connect(address, postgres::NoTls).unwrap();
    client
        .batch_execute("DROP SCHEMA IF EXISTS raw CASCADE; CREATE SCHEMA raw")
        .unwrap();
    let own = format!("{address}&options=-c%20search_path%3Draw,public");
    let store = open(&own).unwrap();
    // As they come: those of a batch are of the same day, which has its partition.
    let rows: Vec<EventRow> = (0..events)
        .map(|n| EventRow::from_record(&record(n, all.max(1_000_000))).unwrap())
        .collect();
    let (first, rows) = rows.split_at(BATCH_EVENTS as usize);
    store.insert(first, None).unwrap();
    let begun = Instant::now();
    for batch in rows.chunks(BATCH_EVENTS as usize) {
        store.insert(batch, None).unwrap();
    }
    let ours = begun.elapsed();
    let part: String = client
        .query_one("SELECT name FROM raw.anyhook_parts LIMIT 1", &[])
        .unwrap()
        .get(0);
    client
        .batch_execute(&format!(
            "CREATE TABLE raw.copy AS SELECT * FROM raw.anyhook_events ORDER BY seq; \
             CREATE TABLE raw.rows (LIKE raw.{part} INCLUDING ALL)"
        ))
        .unwrap();
    let stored = client
        .query("SELECT seq, time_us, duration_ms, session, facet, origin, id, runs, body, text FROM raw.copy", &[])
        .unwrap();
    let insert = client
        .prepare("INSERT INTO raw.rows (seq, time_us, duration_ms, session, facet, origin, id, runs, body, text) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
        .unwrap();
    let begun = Instant::now();
    for batch in stored.chunks(BATCH_EVENTS as usize) {
        let mut transaction = client.transaction().unwrap();
        for row in batch {
            let number = |at| row.get::<_, Option<i64>>(at);
            let bytes = |at| row.get::<_, &[u8]>(at);
            transaction
                .execute(
                    &insert,
                    &[
                        &number(0),
                        &number(1),
                        &row.get::<_, f64>(2),
                        &number(3),
                        &number(4),
                        &number(5),
                        &bytes(6),
                        &bytes(7),
                        &bytes(8),
                        &row.get::<_, &str>(9),
                    ],
                )
                .unwrap();
        }
        transaction.commit().unwrap();
    }
    let plain = stored.len() as f64 / begun.elapsed().as_secs_f64();
    let ours = rows.len() as f64 / ours.as_secs_f64();
    println!(
        "ingest by COPY with sums and search against one INSERT for each event without: {:.2} \
         ({ours:.0} against {plain:.0} events a second)",
        ours / plain
    );
    client.batch_execute("DROP SCHEMA raw CASCADE").unwrap();
}

/// Ingest against inserts of the finished columns into the same tables.
fn raw_inserts(events: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ours.db");
    // As they come: those of a batch are of a few hours.
    let rows: Vec<EventRow> = (0..events)
        .map(|n| EventRow::from_record(&record(n, events.max(1_000_000))).unwrap())
        .collect();
    let store = open(path.to_str().unwrap()).unwrap();
    let begun = Instant::now();
    for batch in rows.chunks(BATCH_EVENTS as usize) {
        store.insert(batch, None).unwrap();
    }
    let ours = begun.elapsed();
    drop(store);
    let source = rusqlite::Connection::open(&path).unwrap();
    let mut read = source
        .prepare("SELECT id, time_us, facet, origin, session, duration_ms, runs, body FROM anyhook_events ORDER BY seq")
        .unwrap();
    let columns: Vec<Vec<rusqlite::types::Value>> = read
        .query_map([], |row| (0..8).map(|column| row.get(column)).collect())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let raw_path = dir.path().join("raw.db");
    drop(open(raw_path.to_str().unwrap()).unwrap());
    let mut raw = rusqlite::Connection::open(&raw_path).unwrap();
    raw.pragma_update(None, "synchronous", "FULL").unwrap();
    let begun = Instant::now();
    for (batch, texts) in columns
        .chunks(BATCH_EVENTS as usize)
        .zip(rows.chunks(BATCH_EVENTS as usize))
    {
        let transaction = raw.transaction().unwrap();
        for (columns, row) in batch.iter().zip(texts) {
            let mut insert = transaction
                .prepare_cached("INSERT INTO anyhook_events (id, time_us, facet, origin, session, duration_ms, runs, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
                .unwrap();
            insert.execute(rusqlite::params_from_iter(columns)).unwrap();
            let mut search = transaction
                .prepare_cached("INSERT INTO anyhook_search (rowid, text) VALUES (?, ?)")
                .unwrap();
            search
                .execute(rusqlite::params![transaction.last_insert_rowid(), row.text])
                .unwrap();
        }
        transaction.commit().unwrap();
    }
    let plain = begun.elapsed();
    println!(
        "ingest against plain inserts into the same tables: {:.2} ({:.0} against {:.0} events a second)",
        plain.as_secs_f64() / ours.as_secs_f64(),
        events as f64 / ours.as_secs_f64(),
        events as f64 / plain.as_secs_f64()
    );
}
