//! `anyhook export`: the recorded events for other systems.

mod lines;

use anyhook_export::ContentLevel;
use clap::Subcommand;

use crate::cli::CommandStatus;
use crate::commands::log::filter_args::parse_time;
use crate::render::Terminal;

/// Export the recorded events to other systems
///
/// Reads the journal of this machine. What it exports is redacted like the journal.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook export jsonl --since 1d > events.jsonl\n  anyhook export ocsf --follow --cursor siem >> /var/log/anyhook.ocsf"
)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Subcommand)]
enum ExportCommand {
    Jsonl(lines::JsonlArgs),
    Ocsf(lines::OcsfArgs),
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
        ExportCommand::Jsonl(args) => lines::export_jsonl(args, terminal),
        ExportCommand::Ocsf(args) => lines::export_ocsf(args, terminal),
    }
}

fn parse_content(word: &str) -> Result<ContentLevel, String> {
    word.parse()
}
