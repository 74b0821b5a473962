//! The recorded events: in a store if there is one, else in the journal.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhook_daemon::source_file;
use anyhook_run::Engine;
use anyhook_store::journal::JournalImporter;
use anyhook_store::{
    EventDetail, EventFilter, EventRow, EventSummary, MAX_PAGE_SIZE, PageQuery, Stats, Store, scan,
};
use anyhook_util::fs::create_private_dir;
use anyhow::{Context, bail};

use crate::progress::Progress;

/// File in the state folder with the id of this machine's journal in a store.
pub(crate) const JOURNAL_ID_FILE: &str = "journal-id";
const STORE_FILE: &str = "store.db";

/// How long a command works on what the store lacks before it answers.
const MAX_CATCH_UP_TIME: Duration = Duration::from_secs(5);

/// Pages of a store that are searched for an id suffix.
const MAX_SUFFIX_SEARCH_PAGES: usize = 20;

pub(crate) enum EventLog {
    Journal(PathBuf),
    Store(Arc<dyn Store>),
    /// A store that lacks a large part of the journal, or is being upgraded.
    CatchingUp {
        store: Arc<dyn Store>,
        journal: PathBuf,
        left_bytes: u64,
        left_events: u64,
    },
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
        let mut importer = JournalImporter::new(journal, source);
        let begun = Instant::now();
        let _progress = Progress::start("Importing the journal", "");
        let mut left = 1;
        while left > 0 && begun.elapsed() < MAX_CATCH_UP_TIME {
            left = importer.import_batches(&*store, 1)?.1;
        }
        while begun.elapsed() < MAX_CATCH_UP_TIME && store.upgrade_step()?.is_some() {}
        let left_events = store
            .upgrade_progress()?
            .map_or(0, |progress| progress.left);
        Ok(if left > 0 || left_events > 0 {
            Self::CatchingUp {
                store,
                journal: importer.dir().to_owned(),
                left_bytes: left,
                left_events,
            }
        } else {
            Self::Store(store)
        })
    }

    /// What the answers lack, if they lack something.
    pub(crate) fn incomplete(&self) -> Option<String> {
        let Self::CatchingUp {
            left_bytes,
            left_events,
            ..
        } = self
        else {
            return None;
        };
        let mut lacks = Vec::new();
        if *left_bytes > 0 {
            lacks.push(format!("{} MB of the journal", left_bytes / 1_000_000 + 1));
        }
        if *left_events > 0 {
            lacks.push(format!("{left_events} events of an older version"));
        }
        Some(format!(
            "The store does not have {} yet; `anyhook serve` adds it in the background, and so does every run of this command.",
            lacks.join(" and ")
        ))
    }

    /// The newest events with their records, newest first.
    fn newest_rows(&self, filter: &EventFilter, limit: usize) -> anyhow::Result<Vec<EventRow>> {
        match self {
            Self::Journal(dir) => Ok(scan::newest(dir, filter, limit)?),
            Self::Store(store) => newest_in_store(&**store, filter, limit),
            Self::CatchingUp { store, journal, .. } => {
                // The journal has what the store lacks, and its newest part is at hand.
                let mut rows = newest_in_store(&**store, filter, limit)?;
                let known: HashSet<String> =
                    rows.iter().map(|row| row.summary.id.clone()).collect();
                let mut newer = scan::newest(journal, filter, limit)?;
                newer.retain(|row| !known.contains(&row.summary.id));
                rows.extend(newer);
                rows.sort_by_key(|row| Reverse(row.summary.time_us));
                rows.truncate(limit);
                Ok(rows)
            }
        }
    }

    /// The newest events, newest first.
    pub(crate) fn newest(
        &self,
        filter: &EventFilter,
        limit: usize,
    ) -> anyhow::Result<Vec<EventSummary>> {
        let rows = self.newest_rows(filter, limit)?;
        Ok(rows.into_iter().map(|row| row.summary).collect())
    }

    /// The newest events with their records, newest first.
    pub(crate) fn details(
        &self,
        filter: &EventFilter,
        limit: usize,
    ) -> anyhow::Result<Vec<EventDetail>> {
        let rows = self.newest_rows(filter, limit)?.into_iter();
        Ok(rows.map(EventRow::into_detail).collect::<Result<_, _>>()?)
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
            Self::Store(store) | Self::CatchingUp { store, .. } => {
                if let Some(event) = store.event(id)? {
                    return Ok(event);
                }
                let limit = MAX_SUFFIX_SEARCH_PAGES * MAX_PAGE_SIZE;
                let events = self.newest_rows(&EventFilter::default(), limit)?;
                let ends = |row: &EventRow| row.summary.id.ends_with(id);
                for row in events.into_iter().filter(ends) {
                    found.push(Ok(row.into_detail()?));
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
            Self::Store(store) | Self::CatchingUp { store, .. } => store.stats(filter, buckets)?,
        })
    }
}

fn newest_in_store(
    store: &dyn Store,
    filter: &EventFilter,
    limit: usize,
) -> anyhow::Result<Vec<EventRow>> {
    let mut query = PageQuery {
        filter: filter.clone(),
        ..PageQuery::default()
    };
    let mut events = Vec::new();
    while events.len() < limit {
        query.limit = MAX_PAGE_SIZE.min(limit - events.len());
        let page = store.rows(&query)?;
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

/// This machine's store, if a daemon has created one.
pub(crate) fn own_store(state: &Path) -> Option<String> {
    let path = state.join(STORE_FILE);
    path.exists().then(|| path.to_string_lossy().into_owned())
}

pub(crate) fn store_address(option: Option<&str>, state: &Path) -> String {
    named_store(option).unwrap_or_else(|| state.join(STORE_FILE).to_string_lossy().into_owned())
}

/// Creates a folder that only the user can read.
pub(crate) fn create_private_folder(folder: &Path) -> anyhow::Result<()> {
    create_private_dir(folder).with_context(|| format!("could not create `{}`", folder.display()))
}
