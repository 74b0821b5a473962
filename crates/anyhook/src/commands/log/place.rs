//! Where the record is: in a store when there is one, else in the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhook_daemon::source_file;
use anyhook_run::Engine;
use anyhook_store::journal::Tail;
use anyhook_store::{
    EventDetail, EventFilter, EventRow, EventSummary, PAGE_MAX, PageQuery, Stats, Store, scan,
};
use anyhow::{Context, bail};

/// The name of this machine's journal in a store, in the folder for state.
pub const SOURCE_FILE: &str = "journal-id";
const STORE_FILE: &str = "store.db";

/// A short id is looked for in so many pages.
const PAGES: usize = 20;

pub enum Place {
    Journal(PathBuf),
    Store(Arc<dyn Store>),
}

impl Place {
    /// A store that was named; else this machine's own, brought up to date; else the journal.
    pub fn find(named: Option<&str>) -> anyhow::Result<Self> {
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
        // A daemon that runs does the same; whoever comes second finds nothing to do.
        let source = source_file(&state.join(SOURCE_FILE))?;
        Tail::new(journal, source).pump(&*store)?;
        Ok(Self::Store(store))
    }

    /// The newest events, newest first.
    pub fn newest(&self, filter: &EventFilter, limit: usize) -> anyhow::Result<Vec<EventSummary>> {
        match self {
            Self::Journal(dir) => {
                let rows = scan::newest(dir, filter, limit)?;
                Ok(rows.iter().map(|row| row.summary(0)).collect())
            }
            Self::Store(store) => {
                let mut found = Vec::new();
                each_page(&**store, filter, limit, |page| found.extend(page))?;
                Ok(found)
            }
        }
    }

    /// The newest events with their records, newest first.
    pub fn details(&self, filter: &EventFilter, limit: usize) -> anyhow::Result<Vec<EventDetail>> {
        match self {
            Self::Journal(dir) => scan::newest(dir, filter, limit)?
                .iter()
                .map(detail)
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

    /// One event by its id, or by the end of its id.
    pub fn event(&self, id: &str) -> anyhow::Result<EventDetail> {
        let mut found = Vec::new();
        match self {
            Self::Journal(dir) => scan::each(dir, &EventFilter::default(), |row| {
                if row.id.ends_with(id) {
                    found.push(detail(&row));
                }
                found.len() < 2
            })?,
            Self::Store(store) => {
                if let Some(event) = store.event(id)? {
                    return Ok(event);
                }
                let mut ids = Vec::new();
                let limit = PAGES * PAGE_MAX;
                each_page(&**store, &EventFilter::default(), limit, |page| {
                    ids.extend(
                        page.into_iter()
                            .map(|item| item.id)
                            .filter(|it| it.ends_with(id)),
                    );
                })?;
                for id in ids {
                    found.extend(store.event(&id)?.map(Ok));
                }
            }
        }
        match (found.pop(), found.pop()) {
            (Some(event), None) => event,
            (Some(_), Some(_)) => bail!("several events end with `{id}`; give more of it"),
            (None, _) => bail!("no event has the id `{id}`"),
        }
    }

    pub fn stats(&self, filter: &EventFilter, buckets: usize) -> anyhow::Result<Stats> {
        Ok(match self {
            Self::Journal(dir) => scan::stats(dir, filter, buckets)?,
            Self::Store(store) => store.stats(filter, buckets)?,
        })
    }
}

fn each_page(
    store: &dyn Store,
    filter: &EventFilter,
    limit: usize,
    mut take: impl FnMut(Vec<EventSummary>),
) -> anyhow::Result<()> {
    let mut query = PageQuery {
        filter: filter.clone(),
        ..PageQuery::default()
    };
    let mut left = limit;
    while left > 0 {
        query.limit = left.min(PAGE_MAX);
        let page = store.events(&query)?;
        left -= page.items.len().min(left);
        take(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next.parse()?),
            None => break,
        }
    }
    Ok(())
}

pub fn detail(row: &EventRow) -> anyhow::Result<EventDetail> {
    Ok(EventDetail {
        summary: row.summary(0),
        record: serde_json::from_str(&row.body)?,
    })
}

/// By the option, or by `ANYHOOK_STORE`: an address with a password is better
/// off where no list of processes shows it.
pub fn named_store(option: Option<&str>) -> Option<String> {
    let variable = || std::env::var("ANYHOOK_STORE").ok();
    option
        .map(str::to_owned)
        .or_else(variable)
        .filter(|address| !address.is_empty())
}

pub fn store_address(option: Option<&str>, state: &Path) -> String {
    named_store(option).unwrap_or_else(|| state.join(STORE_FILE).to_string_lossy().into_owned())
}

/// A folder that only the user can look into.
pub fn private_folder(folder: &Path) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .with_context(|| format!("`{}` cannot be made", folder.display()))
}
