//! `anyhook export parquet`: the stored events as Parquet files for other engines.

use std::sync::Arc;

use anyhook_archive::{Archive, ExportCounts};
use anyhook_daemon::{Archiver, source_file};
use anyhook_run::Engine;
use anyhook_store::Store;
use anyhook_store::journal::JournalImporter;

use crate::cli::CommandStatus;
use crate::commands::log::event_log;
use crate::progress::Progress;
use crate::render::{Terminal, counted};

/// Export the stored events as Parquet files, for DuckDB, ClickHouse, Spark and others
///
/// Writes DIR/events/v=1/day=2026-02-23/….parquet. Run it again to add the events since the
/// last time: each event is exported once, also when an export is interrupted.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook export parquet --to ~/anyhook-archive\n  anyhook export parquet --store postgres://anyhook@db/anyhook --to s3://bucket/anyhook\n\nS3 needs AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; AWS_ENDPOINT names another server."
)]
pub(super) struct ParquetArgs {
    /// The folder or bucket to export to
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    to: String,
    /// The store: a file or postgres://… [default: this machine's]
    #[arg(long, value_name = "PATH|URL")]
    store: Option<String>,
}

pub(super) fn run(args: &ParquetArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let progress = Progress::start("Exporting", "");
    let store = open_store(args.store.as_deref())?;
    while store.upgrade_step()?.is_some() {}
    let archive = Archive::open(&args.to, &*store)?;
    let ExportCounts { events, files, .. } = archive.export(&*store)?;
    drop(progress);
    terminal.note(&format!(
        "Exported {} in {} to {}",
        counted(events, "event"),
        counted(files, "file"),
        archive.place_name()
    ));
    Ok(CommandStatus::Success)
}

/// The named store, or this machine's with all that its journal has.
fn open_store(named: Option<&str>) -> anyhow::Result<Arc<dyn Store>> {
    if let Some(address) = event_log::named_store(named) {
        return Ok(anyhook_store::open(&address)?);
    }
    let engine = Engine::from_env();
    let state = &engine.dirs.state;
    event_log::create_private_folder(state)?;
    let store = anyhook_store::open(&event_log::store_address(None, state))?;
    let source = source_file(&state.join(event_log::JOURNAL_ID_FILE))?;
    JournalImporter::new(engine.journal.folder(), source).import_all(&*store)?;
    Ok(store)
}

/// Exports to one place, for a daemon.
pub(crate) struct ParquetArchiver {
    place: String,
}

impl ParquetArchiver {
    /// Fails at once if the place cannot be an archive of this store.
    pub(crate) fn new(place: &str, store: &dyn Store) -> anyhow::Result<Self> {
        Archive::open(place, store)?;
        Ok(Self {
            place: place.to_owned(),
        })
    }
}

impl Archiver for ParquetArchiver {
    fn archive(&self, store: &dyn Store) -> Result<i64, String> {
        let export = || Archive::open(&self.place, store)?.export(store);
        let done = export().map_err(|error| error.to_string())?;
        Ok(done.exported_seq)
    }
}
