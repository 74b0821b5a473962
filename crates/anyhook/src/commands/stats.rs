//! `anyhook stats`: counts, denials and durations, by agent and by hook.

use anyhook_store::{Latency, Stats};

use crate::cli::Verdict;
use crate::columns::{self, Cell};
use crate::commands::log::asked::Asked;
use crate::commands::log::place::Place;
use crate::commands::log::show::duration;
use crate::render::Terminal;

const BUCKETS: usize = 60;

/// Show counts, denials and durations, by agent and by hook
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook stats --since 7d\n  anyhook stats --agent codex --json"
)]
pub struct Args {
    #[command(flatten)]
    asked: Asked,
    /// So many hooks, the slowest first
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT")]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let place = Place::find(args.asked.store.as_deref())?;
    let stats = place.stats(&args.asked.filter(), BUCKETS)?;
    if args.json {
        terminal.json(&stats)?;
        return Ok(Verdict::Good);
    }
    if stats.events == 0 {
        terminal.note("No such event is on record.");
        return Ok(Verdict::Good);
    }
    terminal.line(&format!(
        "{} events in {} sessions: {} denied, {} asked, {} failures of our own\n",
        terminal.bold(&stats.events.to_string()),
        stats.sessions,
        stats.denials,
        stats.asks,
        stats.failures
    ));
    agents(&stats, terminal);
    hooks(&stats, args.limit, terminal);
    events(&stats, terminal);
    Ok(Verdict::Good)
}

fn agents(stats: &Stats, terminal: &Terminal) {
    let rows: Vec<Vec<Cell>> = stats
        .by_agent
        .iter()
        .map(|agent| {
            let mut row = vec![
                Cell::painted("36", &agent.agent),
                Cell::plain(agent.events.to_string()),
                denials(agent.denials),
                Cell::plain(agent.asks.to_string()),
            ];
            row.extend(latency(agent.duration_ms));
            row
        })
        .collect();
    let titles = [
        "agent", "events", "denied", "asked", "p50", "p95", "p99", "most",
    ];
    columns::print(terminal, &titles, &rows);
}

fn hooks(stats: &Stats, limit: usize, terminal: &Terminal) {
    if stats.by_hook.is_empty() {
        return;
    }
    terminal.line("");
    let rows: Vec<Vec<Cell>> = stats
        .by_hook
        .iter()
        .take(limit)
        .map(|hook| {
            let mut row = vec![
                Cell::painted("1", &hook.hook),
                Cell::painted("36", &hook.agent),
                Cell::plain(hook.runs.to_string()),
                denials(hook.denials),
                Cell::painted(
                    if hook.troubles > 0 { "33" } else { "" },
                    hook.troubles.to_string(),
                ),
            ];
            row.extend(latency(hook.duration_ms));
            row.push(Cell::painted("2", &hook.manifest));
            row
        })
        .collect();
    let titles = [
        "hook", "agent", "runs", "denied", "trouble", "p50", "p95", "p99", "most", "manifest",
    ];
    columns::print(terminal, &titles, &rows);
}

fn events(stats: &Stats, terminal: &Terminal) {
    terminal.line("");
    let rows: Vec<Vec<Cell>> = stats
        .by_event
        .iter()
        .map(|event| {
            vec![
                Cell::plain(&event.name),
                Cell::plain(event.count.to_string()),
                denials(event.denials),
            ]
        })
        .collect();
    columns::print(terminal, &["event", "count", "denied"], &rows);
}

fn denials(count: i64) -> Cell {
    Cell::painted(if count > 0 { "31" } else { "" }, count.to_string())
}

fn latency(latency: Latency) -> [Cell; 4] {
    [latency.p50, latency.p95, latency.p99, latency.max].map(|ms| Cell::plain(duration(ms)))
}
