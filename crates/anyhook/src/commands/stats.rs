//! `anyhook stats`: counts, denials, durations, tokens and cost.

use anyhook_export::usage::UsageSummary;
use anyhook_run::Engine;
use anyhook_store::{Latency, Stats};
use serde::Serialize;

use crate::cli::CommandStatus;
use crate::commands::log::event_log::EventLog;
use crate::commands::log::filter_args::FilterArgs;
use crate::commands::log::format::{cost_text, duration, no_events};
use crate::commands::usage_log::UsageLog;
use crate::render::{Terminal, colour, counted};
use crate::table::{self, Cell};

/// Time buckets in the JSON output.
const BUCKET_COUNT: usize = 60;

/// The newest days with calls of models that are shown.
const MAX_DAYS: usize = 14;

/// Show counts, denials, durations, tokens and cost
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
    let filter = args.filter.to_filter();
    let stats = log.stats(&filter, BUCKET_COUNT)?;
    let usage = if args.filter.store.is_none() {
        let usage = UsageLog::open(&Engine::from_env())?;
        usage.collect()?;
        usage.summary(&filter)
    } else {
        // Another machine's store has no tokens.
        None
    };
    if args.json {
        return terminal.json(&StatsWithUsage { stats, usage });
    }
    if stats.events == 0 {
        terminal.note(no_events(&filter));
        return Ok(CommandStatus::Success);
    }
    terminal.line(&format!(
        "{} in {}: {} denied, {} asked, {}\n",
        terminal.bold(&counted(stats.events, "event")),
        counted(stats.sessions, "session"),
        stats.denials,
        stats.asks,
        counted(stats.failures, "anyhook failure"),
    ));
    print_agents(&stats, terminal);
    print_hooks(&stats, args.limit, terminal);
    print_events(&stats, terminal);
    if let Some(usage) = usage {
        print_usage(&usage, terminal);
    }
    Ok(CommandStatus::Success)
}

#[derive(Serialize)]
struct StatsWithUsage {
    #[serde(flatten)]
    stats: Stats,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageSummary>,
}

fn print_usage(usage: &UsageSummary, terminal: &Terminal) {
    if usage.by_model.is_empty() {
        return;
    }
    terminal.line("");
    let titles = [
        "agent", "model", "calls", "input", "cached", "output", "cost",
    ];
    let rows = usage.by_model.iter().map(|row| {
        [
            Cell::painted(colour::CYAN, &row.agent),
            (&row.model).into(),
            row.sums.calls.to_string().into(),
            row.sums.input_tokens.to_string().into(),
            row.sums.cache_read_tokens.to_string().into(),
            row.sums.output_tokens.to_string().into(),
            cost_text(&row.sums).into(),
        ]
    });
    table::print(terminal, titles, rows);
    terminal.line("");
    let days = usage.by_day.iter().rev().take(MAX_DAYS).rev().map(|day| {
        [
            (&day.date).into(),
            day.sums.calls.to_string().into(),
            day.sums.input_tokens.to_string().into(),
            day.sums.output_tokens.to_string().into(),
            Cell::from(cost_text(&day.sums)),
        ]
    });
    table::print(
        terminal,
        ["day (UTC)", "calls", "input", "output", "cost"],
        days,
    );
    terminal.line(&format!(
        "\nCost: {} (prices of {}; `prices.toml` in the configuration folder changes them)",
        terminal.bold(&cost_text(&usage.sums)),
        usage.prices_date
    ));
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
