//! `anyhook export jsonl` and `anyhook export ocsf`: one line per event on stdout.

use std::io::Write;
use std::time::Duration;

use anyhook_export::{
    ContentLevel, JournalCursor, JournalReader, RecordedEvent, StateFile, ocsf::ocsf_event,
};
use anyhook_run::Engine;

use super::{SourceArgs, parse_content};
use crate::cli::CommandStatus;
use crate::commands::ship::host_name;
use crate::progress::Progress;
use crate::render::{Terminal, counted};

const JOURNAL_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Print the recorded events, one JSON object per line
///
/// A line is the whole record: the event, the hooks that ran, and the answer.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook export jsonl --since 7d > events.jsonl\n  anyhook export jsonl --cursor backup >> backup.jsonl"
)]
pub(super) struct JsonlArgs {
    #[command(flatten)]
    source: SourceArgs,
}

/// Print the recorded events for a SIEM, in the Open Cybersecurity Schema Framework
///
/// One JSON object per line, class API Activity (6003), profile Security Control.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook export ocsf --since 1d\n  anyhook export ocsf --follow --cursor siem | nc siem.example.com 6514"
)]
pub(super) struct OcsfArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// How much content to include: metadata, tools (inputs and outputs) or full (prompts too)
    #[arg(long, value_name = "LEVEL", default_value = "metadata", value_parser = parse_content)]
    content: ContentLevel,
}

pub(super) fn export_jsonl(args: &JsonlArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    export_lines(&args.source, terminal, |line, _| Some(line.to_owned()))
}

pub(super) fn export_ocsf(args: &OcsfArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let host = host_name().unwrap_or_else(|| "unknown".to_owned());
    export_lines(&args.source, terminal, |_, event| {
        Some(ocsf_event(event, args.content, &host).to_string())
    })
}

/// Writes what `render` returns for each event. The position is saved after the lines were
/// written: a killed export may repeat some, and loses none.
fn export_lines(
    args: &SourceArgs,
    terminal: &Terminal,
    mut render: impl FnMut(&str, &RecordedEvent<'_>) -> Option<String>,
) -> anyhow::Result<CommandStatus> {
    let engine = Engine::from_env();
    let state = match &args.cursor {
        Some(name) => Some(open_cursor(&engine, name)?),
        None => None,
    };
    let cursor: Option<JournalCursor> = state.as_ref().and_then(StateFile::load);
    let mut reader = JournalReader::new(engine.journal.folder(), cursor.unwrap_or_default());
    let mut unreadable = 0;
    // On a terminal the lines themselves are seen.
    let is_silent = !args.follow && !terminal.is_stdout_terminal();
    let progress = is_silent.then(|| Progress::start("Exporting", "event"));
    loop {
        while let Some(batch) = reader.next_batch()? {
            unreadable += batch.refused;
            let mut out = terminal.buffered();
            for line in &batch.lines {
                let Some(event) = RecordedEvent::parse(line) else {
                    unreadable += 1;
                    continue;
                };
                if !event.is_since(args.since) {
                    continue;
                }
                if let Some(progress) = &progress {
                    progress.advance();
                }
                if let Some(text) = render(line, &event)
                    && writeln!(out, "{text}").is_err()
                {
                    // Nobody reads any more.
                    return Ok(CommandStatus::Success);
                }
            }
            if out.flush().is_err() {
                return Ok(CommandStatus::Success);
            }
            drop(out);
            if let Some(state) = &state {
                state.save(reader.cursor())?;
            }
        }
        if !args.follow {
            break;
        }
        std::thread::sleep(JOURNAL_POLL_INTERVAL);
    }
    drop(progress);
    if unreadable > 0 {
        terminal.note(&format!(
            "warning: skipped {} of the journal that {} no record",
            counted(unreadable, "line"),
            if unreadable == 1 { "is" } else { "are" }
        ));
    }
    Ok(CommandStatus::Success)
}

fn open_cursor(engine: &Engine, name: &str) -> anyhow::Result<StateFile> {
    super::check_cursor_name(name)?;
    let file = format!("lines-{name}.json");
    Ok(StateFile::open(
        engine.dirs.state.join("export").join(file),
    )?)
}
