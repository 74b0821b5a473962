//! The thread that copies stored events to an archive, from which retention learns what it
//! may delete.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhook_store::{Retention, Store};

use crate::app::App;

const ARCHIVE_INTERVAL: Duration = Duration::from_secs(60 * 60);
const ARCHIVE_RETRY_DELAY: Duration = Duration::from_secs(5 * 60);

/// Copies every event of a store that is not in the archive yet; returns the number of the
/// last event in the archive.
pub trait Archiver: Send + Sync {
    fn archive(&self, store: &dyn Store) -> Result<i64, String>;
}

/// The archive of this daemon, if it has one.
#[derive(Clone, Default)]
pub struct ArchiveConfig(pub Option<Arc<dyn Archiver>>);

impl std::fmt::Debug for ArchiveConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ArchiveConfig({})", self.0.is_some())
    }
}

/// The number of the last event in the archive.
#[derive(Debug, Default)]
pub(crate) struct ArchivedSeq(AtomicI64);

/// What may be deleted now: with an archive, only what is in it.
pub(crate) fn current_retention(app: &App) -> Retention {
    let mut retention = app.config.retention;
    if app.config.archive.0.is_some() {
        retention.exported_seq = Some(app.archived_seq.0.load(Ordering::Acquire));
    }
    retention
}

/// Runs until the process ends: an interrupted export is continued by the next one.
pub(crate) fn start(app: &App) -> std::io::Result<()> {
    let Some(archiver) = app.config.archive.0.clone() else {
        return Ok(());
    };
    let app = Arc::downgrade(app);
    std::thread::Builder::new()
        .name("anyhook-archive".to_owned())
        .spawn(move || {
            while let Some(app) = app.upgrade() {
                let delay = match archiver.archive(&*app.store) {
                    Ok(seq) => {
                        app.archived_seq.0.store(seq, Ordering::Release);
                        app.metrics.record_archived(seq);
                        ARCHIVE_INTERVAL
                    }
                    Err(why) => {
                        app.metrics.record_archive_failure(why);
                        ARCHIVE_RETRY_DELAY
                    }
                };
                drop(app);
                std::thread::sleep(delay);
            }
        })?;
    Ok(())
}
