//! Tokens and cost of this machine: brings the record up to date and sums it up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhook_export::ExportError;
use anyhook_export::usage::{
    CollectorSetup, NamedTranscript, PriceTable, UsageCollector, UsageLedger, UsageSummary,
    summarize_usage,
};
use anyhook_model::spend::USAGE_FOLDER;
use anyhook_run::Engine;
use anyhook_store::EventFilter;
use anyhow::anyhow;

/// In the configuration folder.
const PRICES_FILE: &str = "prices.toml";
/// A guard that has begun this process waits no longer.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct UsageLog {
    folder: PathBuf,
    journal: PathBuf,
    home: Option<PathBuf>,
    pub(crate) prices: PriceTable,
}

impl UsageLog {
    pub(crate) fn open(engine: &Engine) -> anyhow::Result<Self> {
        let prices = PriceTable::load(&engine.dirs.config.join(PRICES_FILE));
        Ok(Self {
            folder: engine.dirs.state.join(USAGE_FOLDER),
            journal: engine.journal.folder().to_owned(),
            home: engine.dirs.home.clone(),
            prices: prices.map_err(|why| anyhow!(why))?,
        })
    }

    /// Reads what agents wrote since the last time. If another process is doing that,
    /// there is nothing to do.
    pub(crate) fn collect(&self) -> Result<(), ExportError> {
        self.collect_with(None)
    }

    /// Reads one more transcript, of which another process may not know: it waits for that
    /// process.
    pub(crate) fn collect_with(&self, named: Option<NamedTranscript>) -> Result<(), ExportError> {
        let started = Instant::now();
        let mut collector = self.open_collector();
        while named.is_some()
            && matches!(collector, Err(ExportError::Locked { .. }))
            && started.elapsed() < MAX_LOCK_WAIT
        {
            std::thread::sleep(LOCK_POLL_INTERVAL);
            collector = self.open_collector();
        }
        match collector {
            Ok(mut collector) => collector
                .collect(jiff::Timestamp::now().as_microsecond(), named)
                .map(|_| ()),
            Err(ExportError::Locked { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn open_collector(&self) -> Result<UsageCollector, ExportError> {
        UsageCollector::open(CollectorSetup {
            folder: self.folder.clone(),
            journal: self.journal.clone(),
            prices: self.prices.clone(),
            home: self.home.clone(),
        })
    }

    pub(crate) fn ledger(&self) -> UsageLedger {
        UsageLedger::new(&self.folder)
    }

    /// The sums of what a filter selects; `None` if it selects by something that a call of
    /// a model does not have.
    pub(crate) fn summary(&self, filter: &EventFilter) -> Option<UsageSummary> {
        if !filter.selects_model_calls() {
            return None;
        }
        let is_wanted = |agent: &str, session: &str| {
            filter.agent.as_deref().is_none_or(|wanted| wanted == agent)
                && filter
                    .session
                    .as_deref()
                    .is_none_or(|wanted| wanted == session)
        };
        let times = (filter.since_us, filter.until_us);
        Some(summarize_usage(
            &self.ledger(),
            &self.prices,
            times,
            is_wanted,
        ))
    }
}
