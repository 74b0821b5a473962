//! `anyhook export`: the recorded events for other systems.

mod lines;
pub(crate) mod otlp;
pub(crate) mod parquet;

use anyhook_export::ContentLevel;
use anyhow::bail;
use clap::Subcommand;

use crate::cli::CommandStatus;
use crate::commands::log::filter_args::parse_time;
use crate::render::Terminal;

/// Export the recorded events to other systems
///
/// Reads the journal of this machine; `parquet` reads a store. What it exports is redacted
/// like the journal.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook export otlp --endpoint http://localhost:6006\n  anyhook export jsonl --since 1d > events.jsonl\n  anyhook export ocsf --follow --cursor siem >> /var/log/anyhook.ocsf"
)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Subcommand)]
enum ExportCommand {
    Otlp(otlp::OtlpArgs),
    Jsonl(lines::JsonlArgs),
    Ocsf(lines::OcsfArgs),
    Parquet(parquet::ParquetArgs),
}

/// Which events are exported, and where the export continues.
#[derive(clap::Args)]
struct SourceArgs {
    /// Only events since this time (2026-02-23T10:15:30Z) or this long ago (15m, 2h, 7d)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<i64>,
    /// Keep exporting events as they arrive, until stopped
    #[arg(long)]
    follow: bool,
    /// Continue where the last export with this name stopped, and remember where this one does
    #[arg(long, value_name = "NAME")]
    cursor: Option<String>,
}

pub(crate) fn run(args: &ExportArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    match &args.command {
        ExportCommand::Otlp(args) => otlp::run(args, terminal),
        ExportCommand::Jsonl(args) => lines::export_jsonl(args, terminal),
        ExportCommand::Ocsf(args) => lines::export_ocsf(args, terminal),
        ExportCommand::Parquet(args) => parquet::run(args, terminal),
    }
}

fn parse_content(word: &str) -> Result<ContentLevel, String> {
    word.parse()
}

const MAX_CURSOR_NAME_LENGTH: usize = 64;

/// A cursor's name is part of a file name.
fn check_cursor_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || name.len() > MAX_CURSOR_NAME_LENGTH || !name.chars().all(is_plain) {
        bail!("`{name}` is not a name for a cursor: use letters, digits, `-` and `_`");
    }
    Ok(())
}
