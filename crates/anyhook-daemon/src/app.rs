//! What every handler shares.

use std::collections::HashMap;
use std::sync::Arc;

use anyhook_store::{Store, StoreError};
use axum::http::StatusCode;
use tokio::sync::{Semaphore, watch};

use crate::config::{Config, Limits};
use crate::host::HookHost;
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::tail::Nudge;
use crate::token::Keys;

pub(crate) struct Shared {
    pub store: Arc<dyn Store>,
    pub host: Arc<dyn HookHost>,
    /// Slug by slug or alias.
    pub agents: HashMap<String, String>,
    pub keys: Keys,
    pub hosts: Vec<String>,
    pub loopback: bool,
    pub require_token: bool,
    /// Where links point to.
    pub base: String,
    /// Whether hooks write a journal that we read.
    pub has_journal: bool,
    pub limits: Limits,
    pub metrics: Metrics,
    pub hook_slots: Arc<Semaphore>,
    /// For work that is done where others wait; one of the [`workers`] stays free of it.
    pub at_once: Semaphore,
    pub stream_slots: Arc<Semaphore>,
    /// Counts commits of new events.
    pub commits: watch::Sender<u64>,
    pub stop: watch::Sender<bool>,
    pub nudge: Arc<Nudge>,
}

pub(crate) type App = Arc<Shared>;

/// Threads that serve: one for each core, one to spare, and one that never waits
/// for a disk.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(3, |cores| cores.get() + 2)
}

impl Shared {
    pub fn new(
        config: &Config,
        base: String,
        store: Arc<dyn Store>,
        host: Arc<dyn HookHost>,
    ) -> Self {
        let mut agents = HashMap::new();
        for agent in host.agents() {
            for name in agent.aliases.iter().chain([&agent.slug]) {
                agents.insert(name.clone(), agent.slug.clone());
            }
        }
        Self {
            store,
            agents,
            keys: Keys::new(config.token.clone()),
            hosts: config.hosts.clone(),
            loopback: config.listen.ip().is_loopback(),
            require_token: config.require_token,
            base,
            has_journal: config.journal.is_some(),
            limits: config.limits,
            metrics: Metrics::new(host.agents().into_iter().map(|agent| agent.slug).collect()),
            hook_slots: Arc::new(Semaphore::new(config.limits.hooks.max(1))),
            at_once: Semaphore::new(workers() - 1),
            stream_slots: Arc::new(Semaphore::new(config.limits.streams)),
            commits: watch::Sender::new(0),
            stop: watch::Sender::new(false),
            nudge: Arc::default(),
            host,
        }
    }

    /// The slug that a caller means.
    pub fn slug(&self, name: &str) -> Option<&str> {
        self.agents.get(name).map(String::as_str)
    }

    /// Asks the store on a thread that may block.
    pub async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let store = self.store.clone();
        let answered = tokio::task::spawn_blocking(move || question(&*store)).await;
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error @ StoreError::Cursor(_))) => {
                Err(Refusal::bad("cursor", error.to_string()))
            }
            Ok(Err(error)) => {
                self.metrics.store_failed();
                Err(Refusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "store",
                    error.to_string(),
                ))
            }
            Err(_) => Err(Refusal::internal("the question was not answered")),
        }
    }
}
