//! `anyhook stats`: counts, denials and durations, by agent, hook and event.

use anyhook_store::{Latency, Stats};

use crate::cli::CommandStatus;
use crate::commands::log::event_log::EventLog;
use crate::commands::log::filter_args::FilterArgs;
use crate::commands::log::format::{NO_EVENTS, duration};
use crate::render::{Terminal, colour};
use crate::table::{self, Cell};

/// Time buckets in the JSON output.
const BUCKET_COUNT: usize = 60;

/// Show counts, denials and durations, by agent, hook and event
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook stats --since 7d\n  anyhook stats --agent codex --json"
)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of hooks to show, slowest first
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT")]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &StatsArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let log = EventLog::open(args.filter.store.as_deref())?;
    if let Some(lacking) = log.incomplete() {
        terminal.note(&lacking);
    }
    let stats = log.stats(&args.filter.to_filter(), BUCKET_COUNT)?;
    if args.json {
        return terminal.json(&stats);
    }
    if stats.events == 0 {
        terminal.note(NO_EVENTS);
        return Ok(CommandStatus::Success);
    }
    terminal.line(&format!(
        "{} events in {} sessions: {} denied, {} asked, {} anyhook failures\n",
        terminal.bold(&stats.events.to_string()),
        stats.sessions,
        stats.denials,
        stats.asks,
        stats.failures
    ));
    print_agents(&stats, terminal);
    print_hooks(&stats, args.limit, terminal);
    print_events(&stats, terminal);
    Ok(CommandStatus::Success)
}

fn print_agents(stats: &Stats, terminal: &Terminal) {
    let titles = [
        "agent", "events", "denied", "asked", "p50", "p95", "p99", "max",
    ];
    let rows = stats.by_agent.iter().map(|agent| {
        let [p50, p95, p99, max] = latency_cells(agent.duration_ms);
        [
            Cell::painted(colour::CYAN, &agent.agent),
            agent.events.to_string().into(),
            alarm_cell(colour::RED, agent.denials),
            agent.asks.to_string().into(),
            p50,
            p95,
            p99,
            max,
        ]
    });
    table::print(terminal, titles, rows);
}

fn print_hooks(stats: &Stats, limit: usize, terminal: &Terminal) {
    if stats.by_hook.is_empty() {
        return;
    }
    terminal.line("");
    let titles = [
        "hook", "agent", "runs", "denied", "failed", "p50", "p95", "p99", "max", "manifest",
    ];
    let rows = stats.by_hook.iter().take(limit).map(|hook| {
        let [p50, p95, p99, max] = latency_cells(hook.duration_ms);
        [
            Cell::painted(colour::BOLD, &hook.hook),
            Cell::painted(colour::CYAN, &hook.agent),
            hook.runs.to_string().into(),
            alarm_cell(colour::RED, hook.denials),
            alarm_cell(colour::YELLOW, hook.troubles),
            p50,
            p95,
            p99,
            max,
            Cell::painted(colour::DIM, &hook.manifest),
        ]
    });
    table::print(terminal, titles, rows);
}

fn print_events(stats: &Stats, terminal: &Terminal) {
    terminal.line("");
    let rows = stats.by_event.iter().map(|event| {
        [
            (&event.name).into(),
            event.count.to_string().into(),
            alarm_cell(colour::RED, event.denials),
        ]
    });
    table::print(terminal, ["event", "count", "denied"], rows);
}

/// A count that is coloured unless it is zero.
fn alarm_cell(colour: &'static str, count: i64) -> Cell {
    Cell::painted(
        if count > 0 { colour } else { colour::PLAIN },
        count.to_string(),
    )
}

fn latency_cells(latency: Latency) -> [Cell; 4] {
    [latency.p50, latency.p95, latency.p99, latency.max].map(|ms| duration(ms).into())
}
