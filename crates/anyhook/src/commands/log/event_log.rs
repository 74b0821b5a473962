//! The recorded events: in a store if there is one, else in the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhook_daemon::source_file;
use anyhook_run::Engine;
use anyhook_store::journal::JournalImporter;
use anyhook_store::{
    EventDetail, EventFilter, EventRow, EventSummary, MAX_PAGE_SIZE, PageQuery, Stats, Store, scan,
};
use anyhook_util::fs::create_private_dir;
use anyhow::{Context, bail};

/// File in the state folder with the id of this machine's journal in a store.
pub(crate) const JOURNAL_ID_FILE: &str = "journal-id";
const STORE_FILE: &str = "store.db";

/// Pages of a store that are searched for an id suffix.
const MAX_SUFFIX_SEARCH_PAGES: usize = 20;

pub(crate) enum EventLog {
    Journal(PathBuf),
    Store(Arc<dyn Store>),
}

impl EventLog {
    /// Opens the named store, else this machine's store (brought up to date), else the journal.
    pub(crate) fn open(named: Option<&str>) -> anyhow::Result<Self> {
        let engine = Engine::from_env();
        let state = &engine.dirs.state;
        let journal = engine.journal.folder().to_owned();
        if let Some(address) = named_store(named) {
            return Ok(Self::Store(anyhook_store::open(&address)?));
        }
        let own = state.join(STORE_FILE);
        if !own.exists() {
            return Ok(Self::Journal(journal));
        }
        let store = anyhook_store::open(&own.to_string_lossy())?;
        // A running daemon does the same; events that it already copied are skipped.
        let source = source_file(&state.join(JOURNAL_ID_FILE))?;
        JournalImporter::new(journal, source).import_all(&*store)?;
        Ok(Self::Store(store))
    }

    /// The newest events, newest first.
    pub(crate) fn newest(
        &self,
        filter: &EventFilter,
        limit: usize,
    ) -> anyhow::Result<Vec<EventSummary>> {
        match self {
            Self::Journal(dir) => {
                let rows = scan::newest(dir, filter, limit)?;
                Ok(rows.into_iter().map(|row| row.summary).collect())
            }
            Self::Store(store) => newest_in_store(&**store, filter, limit),
        }
    }

    /// The newest events with their records, newest first.
    pub(crate) fn details(
        &self,
        filter: &EventFilter,
        limit: usize,
    ) -> anyhow::Result<Vec<EventDetail>> {
        match self {
            Self::Journal(dir) => scan::newest(dir, filter, limit)?
                .iter()
                .map(to_detail)
                .collect(),
            Self::Store(store) => {
                let mut found = Vec::new();
                for summary in self.newest(filter, limit)? {
                    found.extend(store.event(&summary.id)?);
                }
                Ok(found)
            }
        }
    }

    /// One event by id or id suffix.
    pub(crate) fn event(&self, id: &str) -> anyhow::Result<EventDetail> {
        let mut found = Vec::new();
        match self {
            Self::Journal(dir) => scan::for_each(dir, &EventFilter::default(), |row| {
                if row.summary.id.ends_with(id) {
                    found.push(to_detail(&row));
                }
                found.len() < 2
            })?,
            Self::Store(store) => {
                if let Some(event) = store.event(id)? {
                    return Ok(event);
                }
                let limit = MAX_SUFFIX_SEARCH_PAGES * MAX_PAGE_SIZE;
                let events = newest_in_store(&**store, &EventFilter::default(), limit)?;
                for summary in events.iter().filter(|event| event.id.ends_with(id)) {
                    found.extend(store.event(&summary.id)?.map(Ok));
                }
            }
        }
        match (found.pop(), found.pop()) {
            (Some(event), None) => event,
            (Some(_), Some(_)) => bail!("several event ids end with `{id}`; use a longer suffix"),
            (None, _) => bail!("no event has the id `{id}`"),
        }
    }

    pub(crate) fn stats(&self, filter: &EventFilter, buckets: usize) -> anyhow::Result<Stats> {
        Ok(match self {
            Self::Journal(dir) => scan::stats(dir, filter, buckets)?,
            Self::Store(store) => store.stats(filter, buckets)?,
        })
    }
}

fn newest_in_store(
    store: &dyn Store,
    filter: &EventFilter,
    limit: usize,
) -> anyhow::Result<Vec<EventSummary>> {
    let mut query = PageQuery {
        filter: filter.clone(),
        ..PageQuery::default()
    };
    let mut events = Vec::new();
    while events.len() < limit {
        query.limit = MAX_PAGE_SIZE.min(limit - events.len());
        let page = store.events(&query)?;
        events.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next.parse()?),
            None => break,
        }
    }
    Ok(events)
}

pub(crate) fn to_detail(row: &EventRow) -> anyhow::Result<EventDetail> {
    Ok(EventDetail {
        summary: row.summary.clone(),
        record: serde_json::from_str(&row.body)?,
    })
}

/// The store from `--store` or `ANYHOOK_STORE`. The variable keeps an address with a
/// password out of the process list.
pub(crate) fn named_store(option: Option<&str>) -> Option<String> {
    let variable = || anyhook_util::env::ANYHOOK_STORE.text();
    option
        .map(str::to_owned)
        .or_else(variable)
        .filter(|address| !address.is_empty())
}

pub(crate) fn store_address(option: Option<&str>, state: &Path) -> String {
    named_store(option).unwrap_or_else(|| state.join(STORE_FILE).to_string_lossy().into_owned())
}

/// Creates a folder that only the user can read.
pub(crate) fn create_private_folder(folder: &Path) -> anyhow::Result<()> {
    create_private_dir(folder).with_context(|| format!("could not create `{}`", folder.display()))
}
