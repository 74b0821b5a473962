//! `anyhook log`: recorded events, newest first, or one event in full.

pub(crate) mod event_log;
pub(crate) mod filter_args;
pub(crate) mod format;

use anyhook_export::usage::UsageSums;
use anyhook_run::Engine;
use anyhook_store::EventFilter;

use crate::cli::CommandStatus;
use crate::commands::usage_log::UsageLog;
use crate::render::Terminal;
use event_log::EventLog;
use filter_args::FilterArgs;

/// Show what agents did and what hooks decided, newest first
///
/// Reads this machine's store if a daemon has created one, else the journal.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook log --decision deny --since 2h\n  anyhook log --text 'rm -rf'\n  \
                  anyhook log 4f1c09aa\n  anyhook log --json | jq -r .record.event.data.tool_input.command"
)]
pub(crate) struct LogArgs {
    /// Show one event in full, by id or id suffix
    id: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of events to show
    #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
    /// Print JSON, one event per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &LogArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let log = EventLog::open(args.filter.store.as_deref())?;
    if let Some(id) = &args.id {
        let event = log.event(id)?;
        if args.json {
            terminal.line(&format::event_json(&event)?);
        } else {
            let session = event.summary.session_id.clone();
            let usage = args.session_usage(session, Some(&event.summary.agent), terminal);
            format::print_event(&event, usage.as_ref(), terminal)?;
        }
        return Ok(CommandStatus::Success);
    }
    if let Some(lacking) = log.incomplete() {
        terminal.note(&lacking);
    }
    let filter = args.filter.to_filter();
    if args.json {
        for event in log.details(&filter, args.limit)? {
            terminal.line(&format::event_json(&event)?);
        }
        return Ok(CommandStatus::Success);
    }
    let events = log.newest(&filter, args.limit)?;
    for event in &events {
        terminal.line(&format::event_line(event, terminal));
    }
    if events.is_empty() {
        terminal.note(format::no_events(&filter));
    }
    if let Some(usage) = args.session_usage(filter.session, filter.agent.as_deref(), terminal) {
        terminal.note(&format::usage_text(&usage));
    }
    Ok(CommandStatus::Success)
}

impl LogArgs {
    /// What the models of a session of this machine used, if anything is known.
    fn session_usage(
        &self,
        session: Option<String>,
        agent: Option<&str>,
        terminal: &Terminal,
    ) -> Option<UsageSums> {
        let filter = EventFilter {
            session: Some(session?),
            agent: agent.map(str::to_owned),
            ..EventFilter::default()
        };
        if self.filter.store.is_some() {
            // Another machine's store has no tokens.
            return None;
        }
        let summary = UsageLog::open(&Engine::from_env()).and_then(|usage| {
            usage.collect()?;
            Ok(usage.summary(&filter))
        });
        let summary = summary.unwrap_or_else(|error| {
            terminal.note(&format!("tokens and cost: {error:#}"));
            None
        });
        summary
            .map(|summary| summary.sums)
            .filter(|sums| sums.calls > 0)
    }
}
