//! Counters for Prometheus, in its text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhook_store::Ingested;

/// Upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];

#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    agents: BTreeMap<String, AgentMetrics>,
    ingested: [AtomicU64; 3],
    store_failures: AtomicU64,
    refused_connections: AtomicU64,
    pub connections: AtomicI64,
    pub streams: AtomicI64,
    /// Bytes of the journal.
    pub behind: AtomicU64,
}

#[derive(Debug, Default)]
struct AgentMetrics {
    decisions: [AtomicU64; 4],
    buckets: [AtomicU64; BOUNDS.len()],
    micros: AtomicU64,
}

const DECISIONS: [&str; 4] = ["none", "allow", "ask", "deny"];

/// Counts one for as long as it lives.
#[derive(Debug)]
pub(crate) struct Held<T: AsRef<AtomicI64>>(T);

impl<T: AsRef<AtomicI64>> Held<T> {
    pub fn new(gauge: T) -> Self {
        gauge.as_ref().fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl<T: AsRef<AtomicI64>> Drop for Held<T> {
    fn drop(&mut self) {
        self.0.as_ref().fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub fn new(agents: Vec<String>) -> Self {
        Self {
            requests: Mutex::default(),
            agents: agents
                .into_iter()
                .map(|agent| (agent, AgentMetrics::default()))
                .collect(),
            ingested: Default::default(),
            store_failures: AtomicU64::default(),
            refused_connections: AtomicU64::default(),
            connections: AtomicI64::default(),
            streams: AtomicI64::default(),
            behind: AtomicU64::default(),
        }
    }

    pub fn requested(&self, method: &'static str, route: &'static str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method, route, status)).or_default() += 1;
    }

    pub fn hooked(&self, agent: &str, decision: &str, took: Duration) {
        let Some(metrics) = self.agents.get(agent) else {
            return;
        };
        for (name, count) in DECISIONS.iter().zip(&metrics.decisions) {
            if *name == decision {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        for (bound, bucket) in BOUNDS.iter().zip(&metrics.buckets) {
            if took.as_secs_f64() <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        metrics.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub fn ingested(&self, done: Ingested) {
        for (count, more) in self
            .ingested
            .iter()
            .zip([done.new, done.duplicate, done.refused])
        {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub fn store_failed(&self) {
        self.store_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub fn connection_refused(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn render(&self, last_seq: i64) -> String {
        let mut text = Text::default();
        text.head(
            "anyhook_http_requests_total",
            "counter",
            "Requests by route and status.",
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((method, route, status), count) in &*requests {
            text.line(format_args!(
                "anyhook_http_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
            ));
        }
        drop(requests);
        self.render_hooks(&mut text);
        text.head(
            "anyhook_ingested_events_total",
            "counter",
            "Events offered to the store.",
        );
        for (result, count) in ["new", "duplicate", "refused"].iter().zip(&self.ingested) {
            text.line(format_args!(
                "anyhook_ingested_events_total{{result=\"{result}\"}} {}",
                count.load(Ordering::Relaxed)
            ));
        }
        let failures = self.store_failures.load(Ordering::Relaxed);
        text.one(
            "anyhook_store_failures_total",
            "counter",
            "Questions that the store did not answer.",
            failures,
        );
        let refused = self.refused_connections.load(Ordering::Relaxed);
        text.one(
            "anyhook_refused_connections_total",
            "counter",
            "Connections over the limit.",
            refused,
        );
        let connections = self.connections.load(Ordering::Relaxed);
        text.one(
            "anyhook_connections",
            "gauge",
            "Open connections.",
            connections,
        );
        let streams = self.streams.load(Ordering::Relaxed);
        text.one("anyhook_streams", "gauge", "Open streams.", streams);
        let behind = self.behind.load(Ordering::Relaxed);
        text.one(
            "anyhook_store_behind_bytes",
            "gauge",
            "Journal that the store does not have yet.",
            behind,
        );
        text.one(
            "anyhook_store_last_seq",
            "gauge",
            "Number of the latest event.",
            last_seq,
        );
        text.0
    }

    fn render_hooks(&self, text: &mut Text) {
        text.head(
            "anyhook_hook_requests_total",
            "counter",
            "Hook calls by agent and decision.",
        );
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (agent, metrics) in &self.agents {
            for (decision, counter) in DECISIONS.iter().zip(&metrics.decisions) {
                text.line(format_args!(
                    "anyhook_hook_requests_total{{agent=\"{agent}\",decision=\"{decision}\"}} {}",
                    count(counter)
                ));
            }
        }
        text.head(
            "anyhook_hook_duration_seconds",
            "histogram",
            "From request to answer.",
        );
        for (agent, metrics) in &self.agents {
            for (bound, bucket) in BOUNDS.iter().zip(&metrics.buckets) {
                text.line(format_args!(
                    "anyhook_hook_duration_seconds_bucket{{agent=\"{agent}\",le=\"{bound}\"}} {}",
                    count(bucket)
                ));
            }
            let total: u64 = metrics.decisions.iter().map(count).sum();
            let seconds = Duration::from_micros(count(&metrics.micros)).as_secs_f64();
            text.line(format_args!(
                "anyhook_hook_duration_seconds_bucket{{agent=\"{agent}\",le=\"+Inf\"}} {total}"
            ));
            text.line(format_args!(
                "anyhook_hook_duration_seconds_sum{{agent=\"{agent}\"}} {seconds}"
            ));
            text.line(format_args!(
                "anyhook_hook_duration_seconds_count{{agent=\"{agent}\"}} {total}"
            ));
        }
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}
