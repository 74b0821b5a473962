//! Counters for Prometheus, in its text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use anyhook_store::{IngestCounts, UpgradeProgress};
use anyhook_util::sync::lock;
use serde::Serialize;

use crate::app::App;

/// Upper bounds of the latency histogram.
const LATENCY_BOUNDS_SECONDS: [f64; 10] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];

const ANSWERED_HOOKS: (&str, &str, u16) = ("POST", "/hooks/{agent}", 200);

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    /// Answered hook calls, which are most requests: counted without a lock.
    answered_hooks: AtomicU64,
    agents: BTreeMap<String, AgentMetrics>,
    ingested: [AtomicU64; 3],
    store_failures: AtomicU64,
    refused_connections: AtomicU64,
    pub connections: AtomicI64,
    pub streams: AtomicI64,
    /// Bytes of the journal that the store does not have yet.
    store_lag_bytes: AtomicU64,
    /// What `store_lag_bytes` was when it began to shrink.
    catch_up_bytes: AtomicU64,
    /// Events of an older version's layout that are not moved yet.
    upgrade_left: AtomicU64,
    upgrade_done: AtomicU64,
    archived_seq: AtomicI64,
    archive_failures: AtomicU64,
    archive_failure: Mutex<Option<String>>,
    store_failure: Mutex<Option<String>>,
}

/// What the store lacks yet.
#[derive(Debug, Serialize)]
pub(crate) struct StoreHealth {
    /// Of the journal, not stored yet.
    behind_bytes: u64,
    /// What it was when catching up began; 0 when nothing is left.
    catch_up_bytes: u64,
    /// Events that are still in the layout of an older version.
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade: Option<UpgradeProgress>,
    failures: u64,
    /// Why nothing can be stored now. What agents did is in the journal meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// Why the last export to the archive failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive_failure: Option<String>,
}

#[derive(Debug, Default)]
struct AgentMetrics {
    decisions: [AtomicU64; 4],
    buckets: [AtomicU64; LATENCY_BOUNDS_SECONDS.len()],
    micros: AtomicU64,
}

const DECISIONS: [&str; 4] = ["none", "allow", "ask", "deny"];

/// Adds one to a gauge for as long as it lives.
pub(crate) struct GaugeGuard {
    app: App,
    gauge: fn(&Metrics) -> &AtomicI64,
}

impl GaugeGuard {
    pub(crate) fn new(app: App, gauge: fn(&Metrics) -> &AtomicI64) -> Self {
        gauge(&app.metrics).fetch_add(1, Ordering::Relaxed);
        Self { app, gauge }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        (self.gauge)(&self.app.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn new(agents: Vec<String>) -> Self {
        let agents = agents.into_iter();
        Self {
            agents: agents
                .map(|agent| (agent, AgentMetrics::default()))
                .collect(),
            ..Self::default()
        }
    }

    pub(crate) fn record_request(&self, method: &'static str, route: &'static str, status: u16) {
        if (method, route, status) == ANSWERED_HOOKS {
            self.answered_hooks.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut requests = lock(&self.requests);
        *requests.entry((method, route, status)).or_default() += 1;
    }

    pub(crate) fn record_hook_call(&self, agent: &str, decision: &str, took: Duration) {
        let Some(metrics) = self.agents.get(agent) else {
            return;
        };
        for (name, count) in DECISIONS.iter().zip(&metrics.decisions) {
            if *name == decision {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        for (bound, bucket) in LATENCY_BOUNDS_SECONDS.iter().zip(&metrics.buckets) {
            if took.as_secs_f64() <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        metrics.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn record_ingest(&self, done: IngestCounts) {
        for (count, more) in self
            .ingested
            .iter()
            .zip([done.new, done.duplicate, done.refused])
        {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(crate) fn record_lag(&self, left: u64) {
        self.store_lag_bytes.store(left, Ordering::Relaxed);
        if left == 0 {
            self.catch_up_bytes.store(0, Ordering::Relaxed);
        } else {
            self.catch_up_bytes.fetch_max(left, Ordering::Relaxed);
        }
    }

    pub(crate) fn record_upgrade(&self, progress: Option<UpgradeProgress>) {
        let UpgradeProgress { done, left } =
            progress.unwrap_or(UpgradeProgress { done: 0, left: 0 });
        self.upgrade_done.store(done, Ordering::Relaxed);
        self.upgrade_left.store(left, Ordering::Relaxed);
    }

    /// How far the store is behind, for people.
    pub(crate) fn store_health(&self) -> StoreHealth {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let left = load(&self.upgrade_left);
        let done = load(&self.upgrade_done);
        StoreHealth {
            behind_bytes: load(&self.store_lag_bytes),
            catch_up_bytes: load(&self.catch_up_bytes),
            upgrade: (left > 0).then_some(UpgradeProgress { done, left }),
            failures: load(&self.store_failures),
            failure: lock(&self.store_failure).clone(),
            archive_failure: lock(&self.archive_failure).clone(),
        }
    }

    pub(crate) fn record_archived(&self, seq: i64) {
        self.archived_seq.store(seq, Ordering::Relaxed);
        *lock(&self.archive_failure) = None;
    }

    pub(crate) fn record_archive_failure(&self, why: String) {
        self.archive_failures.fetch_add(1, Ordering::Relaxed);
        *lock(&self.archive_failure) = Some(why);
    }

    /// Whether what was just tried in the store has failed, and why.
    pub(crate) fn record_store_state(&self, failure: Option<String>) {
        if failure.is_some() {
            self.record_store_failure();
        }
        *lock(&self.store_failure) = failure;
    }

    pub(crate) fn record_store_failure(&self) {
        self.store_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_refused_connection(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn render(&self, last_seq: Option<i64>) -> String {
        let mut requests = lock(&self.requests);
        let answered = self.answered_hooks.swap(0, Ordering::Relaxed);
        if answered > 0 {
            *requests.entry(ANSWERED_HOOKS).or_default() += answered;
        }
        let requests = requests.iter().map(|((method, route, status), count)| {
            let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
            (labels, count.to_string())
        });
        let results = ["new", "duplicate", "refused"];
        let ingested = results.iter().zip(&self.ingested);
        let ingested = ingested.map(|(it, count)| (format!("{{result=\"{it}\"}}"), load(count)));
        let (decisions, durations) = self.hook_samples();
        let single = |value: String| vec![(String::new(), value)];
        let counter = |counter| single(load(counter));
        let gauge = |gauge: &AtomicI64| single(gauge.load(Ordering::Relaxed).to_string());
        let failures = counter(&self.store_failures);
        let refused = counter(&self.refused_connections);
        let lag = counter(&self.store_lag_bytes);
        let metrics: [(&str, &str, Samples); 12] = [
            (
                "http_requests_total",
                "Requests by route and status.",
                requests.collect(),
            ),
            (
                "hook_requests_total",
                "Hook calls by agent and decision.",
                decisions,
            ),
            (
                "hook_duration_seconds",
                "From request to answer.",
                durations,
            ),
            (
                "ingested_events_total",
                "Events offered to the store.",
                ingested.collect(),
            ),
            ("store_failures_total", "Failed store operations.", failures),
            (
                "refused_connections_total",
                "Connections refused because of the limit.",
                refused,
            ),
            ("connections", "Open connections.", gauge(&self.connections)),
            ("streams", "Open streams.", gauge(&self.streams)),
            (
                "store_behind_bytes",
                "Bytes of the journal that the store does not have yet.",
                lag,
            ),
            (
                "archive_failures_total",
                "Failed exports to the archive.",
                counter(&self.archive_failures),
            ),
            (
                "archive_last_seq",
                "Sequence number of the latest event in the archive.",
                gauge(&self.archived_seq),
            ),
            (
                "store_last_seq",
                "Sequence number of the latest event.",
                last_seq.map_or(Vec::new(), |seq| single(seq.to_string())),
            ),
        ];
        let mut text = String::new();
        for (name, help, samples) in metrics {
            let kind = match name.rsplit('_').next() {
                Some("total") => "counter",
                Some("seconds") => "histogram",
                _ => "gauge",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP anyhook_{name} {help}");
            let _ = writeln!(text, "# TYPE anyhook_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "anyhook_{name}{labels} {value}");
            }
        }
        text
    }

    /// Samples of the decisions and of the durations, for each agent.
    fn hook_samples(&self) -> (Samples, Samples) {
        let (mut decisions, mut durations) = (Vec::new(), Vec::new());
        for (agent, metrics) in &self.agents {
            for (decision, count) in DECISIONS.iter().zip(&metrics.decisions) {
                let labels = format!("{{agent=\"{agent}\",decision=\"{decision}\"}}");
                decisions.push((labels, load(count)));
            }
            let bucket = |bound: &str| format!("_bucket{{agent=\"{agent}\",le=\"{bound}\"}}");
            for (bound, count) in LATENCY_BOUNDS_SECONDS.iter().zip(&metrics.buckets) {
                durations.push((bucket(&bound.to_string()), load(count)));
            }
            let counts = metrics.decisions.iter();
            let total: u64 = counts.map(|count| count.load(Ordering::Relaxed)).sum();
            let micros = metrics.micros.load(Ordering::Relaxed);
            let seconds = Duration::from_micros(micros).as_secs_f64();
            durations.push((bucket("+Inf"), total.to_string()));
            durations.push((format!("_sum{{agent=\"{agent}\"}}"), seconds.to_string()));
            durations.push((format!("_count{{agent=\"{agent}\"}}"), total.to_string()));
        }
        (decisions, durations)
    }
}

/// The end of the metric's name with the labels, and the value.
type Samples = Vec<(String, String)>;

fn load(counter: &AtomicU64) -> String {
    counter.load(Ordering::Relaxed).to_string()
}
