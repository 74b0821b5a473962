//! `anyhook log`: what agents did, newest first, or one event in full.

pub mod asked;
pub mod place;
pub mod show;

use crate::cli::Verdict;
use crate::render::Terminal;
use asked::Asked;
use place::Place;

/// Show what agents did and what hooks decided, newest first
///
/// Reads this machine's store when a daemon has made one, else the journal.
/// With an id (its end will do): that event in full.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook log --decision deny --since 2h\n  anyhook log --text 'rm -rf'\n  \
                  anyhook log 4f1c09aa\n  anyhook log --json | jq -r .record.event.data.tool_input.command"
)]
pub struct Args {
    /// The event with this id, in full
    id: Option<String>,
    #[command(flatten)]
    asked: Asked,
    /// So many events
    #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
    /// Print JSON, one event per line
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let place = Place::find(args.asked.store.as_deref())?;
    if let Some(id) = &args.id {
        let event = place.event(id)?;
        if args.json {
            terminal.line(&show::json(&event)?);
        } else {
            show::full(&event, terminal)?;
        }
        return Ok(Verdict::Good);
    }
    let filter = args.asked.filter();
    if args.json {
        for event in place.details(&filter, args.limit)? {
            terminal.line(&show::json(&event)?);
        }
        return Ok(Verdict::Good);
    }
    let events = place.newest(&filter, args.limit)?;
    for event in &events {
        terminal.line(&show::line(event, terminal));
    }
    if events.is_empty() {
        terminal.note("No such event is on record.");
    }
    Ok(Verdict::Good)
}
