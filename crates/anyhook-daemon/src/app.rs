//! The state that all request handlers share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhook_store::{QueryCancel, Store, StoreError};
use axum::http::StatusCode;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;

use crate::api_error::ApiError;
use crate::archiving::ArchivedSeq;
use crate::challenge::Challenges;
use crate::config::DaemonConfig;
use crate::host::{HookHost, HostSetup};
use crate::ingest::IngestBudget;
use crate::journal_ingest::JournalWakeup;
use crate::live_feed::LiveFeed;
use crate::metrics::Metrics;
use crate::slots::HookSlots;
use crate::token::AccessKeys;

pub(crate) struct AppState {
    /// Its `listen` is the bound address.
    pub config: DaemonConfig,
    pub store: Arc<dyn Store>,
    pub host: Arc<dyn HookHost>,
    /// As it was at the start.
    pub setup: HostSetup,
    /// Slugs, by slug and by alias.
    pub agents: HashMap<String, String>,
    pub access_keys: AccessKeys,
    pub challenges: Challenges,
    pub metrics: Metrics,
    pub hook_slots: Arc<HookSlots>,
    /// For work that is done on a serving thread. One less than there are [`worker_threads`],
    /// so that one of them never waits for a disk.
    pub inline_slots: Semaphore,
    pub stream_slots: Arc<Semaphore>,
    /// For requests of readers and shippers. Fewer than there are connections: the rest is
    /// for agents.
    pub reader_slots: Semaphore,
    /// For threads that wait for the store, which may hang.
    pub store_slots: Arc<Semaphore>,
    pub ingest_budget: IngestBudget,
    pub live_feed: LiveFeed,
    /// Counts commits of new events.
    pub commits: watch::Sender<u64>,
    pub stop: watch::Sender<bool>,
    pub journal_wakeup: JournalWakeup,
    pub archived_seq: ArchivedSeq,
}

pub(crate) type App = Arc<AppState>;

/// Cancels a query whose caller has gone.
struct CancelOnDrop(QueryCancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The number of serving threads: one per core, one extra, and one that never waits for a
/// disk.
pub(crate) fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(3, |cores| cores.get() + 2)
}

impl AppState {
    pub(crate) fn new(
        config: DaemonConfig,
        store: Arc<dyn Store>,
        host: Arc<dyn HookHost>,
    ) -> std::io::Result<Self> {
        let mut agents = HashMap::new();
        for agent in host.agents() {
            for name in agent.aliases.iter().chain([&agent.slug]) {
                agents.insert(name.clone(), agent.slug.clone());
            }
        }
        let limits = config.limits;
        Ok(Self {
            store,
            agents,
            access_keys: AccessKeys::new(config.token.clone()),
            challenges: Challenges::new()?,
            metrics: Metrics::new(host.agents().into_iter().map(|agent| agent.slug).collect()),
            hook_slots: HookSlots::new(limits.hooks),
            inline_slots: Semaphore::new(worker_threads() - 1),
            stream_slots: Arc::new(Semaphore::new(limits.streams)),
            reader_slots: Semaphore::new(limits.connections - limits.connections / 4),
            store_slots: Arc::new(Semaphore::new(limits.store_reads.max(1))),
            ingest_budget: IngestBudget::new(&limits),
            live_feed: LiveFeed::default(),
            commits: watch::Sender::new(0),
            stop: watch::Sender::new(false),
            journal_wakeup: JournalWakeup::new(),
            archived_seq: ArchivedSeq::default(),
            setup: host.setup(),
            host,
            config,
        })
    }

    /// The slug of an agent, by slug or alias.
    pub(crate) fn slug(&self, name: &str) -> Option<&str> {
        self.agents.get(name).map(String::as_str)
    }

    /// Queries the store on a thread that may block, for at most the usual time.
    pub(crate) async fn query_store<T: Send + 'static>(
        self: &Arc<Self>,
        query: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.query_store_within(self.config.limits.store_timeout, query)
            .await
    }

    /// As [`AppState::query_store`], with a time limit of its own.
    pub(crate) async fn query_store_within<T: Send + 'static>(
        self: &Arc<Self>,
        limit: Duration,
        query: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = self.store.clone();
        let slots = self.store_slots.clone();
        let cancel = QueryCancel::default();
        // Dropped when the answer is here, after the time limit, and when the caller hangs up.
        let _abandon = CancelOnDrop(cancel.clone());
        let run = async {
            let slot = slots.acquire_owned().await;
            let work = move || {
                // Held until the store has answered, even when the caller has gone: a store
                // that hangs keeps this many threads and no others.
                let _slot = slot;
                cancel.run(|| query(&*store))
            };
            tokio::task::spawn_blocking(work).await
        };
        if let Ok(finished) = tokio::time::timeout(limit, run).await {
            return self.store_result(finished);
        }
        self.metrics.record_store_failure();
        Err(store_timeout(limit))
    }

    pub(crate) fn store_result<T>(
        &self,
        finished: Result<Result<T, StoreError>, JoinError>,
    ) -> Result<T, ApiError> {
        match finished {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error @ StoreError::Cursor(_))) => {
                Err(ApiError::bad_request("cursor", error.to_string()))
            }
            Ok(Err(error)) => {
                self.metrics.record_store_failure();
                Err(ApiError::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "store",
                    error.to_string(),
                ))
            }
            Err(_) => Err(ApiError::internal("the query did not finish")),
        }
    }
}

pub(crate) fn store_timeout(limit: Duration) -> ApiError {
    let seconds = limit.as_secs_f64();
    ApiError::new(
        StatusCode::GATEWAY_TIMEOUT,
        "store_timeout",
        format!("the store did not answer within {seconds} seconds; hooks still run"),
    )
}
