//! `anyhook tail`: the last events, and those that come.

use std::time::Duration;

use anyhook_run::Engine;
use anyhook_store::scan::Follow;
use anyhook_store::{EventDetail, PAGE_MAX};

use crate::cli::Verdict;
use crate::commands::log::asked::Asked;
use crate::commands::log::{place, show};
use crate::render::Terminal;

const LOOK: Duration = Duration::from_millis(200);

/// Show the last events, and with -f those that come
///
/// Reads the journal, so it needs no daemon; with `--store` it follows that store.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook tail -f\n  anyhook tail -f --decision deny --json")]
pub struct Args {
    /// Go on as events come
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    asked: Asked,
    /// So many events to begin with
    #[arg(short = 'n', long, default_value_t = 10, value_name = "COUNT")]
    limit: usize,
    /// Print JSON, one event per line
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    match place::named_store(args.asked.store.as_deref()) {
        Some(address) => stored(args, &address, terminal)?,
        None => journal(args, terminal)?,
    }
    Ok(Verdict::Good)
}

fn journal(args: &Args, terminal: &Terminal) -> anyhow::Result<()> {
    let dir = Engine::from_env().journal.folder().to_owned();
    let (mut rows, mut follow) = Follow::after_newest(&dir, &args.asked.filter(), args.limit)?;
    rows.reverse();
    loop {
        for row in &rows {
            if !tell(args, &place::detail(row)?, terminal)? {
                return Ok(());
            }
        }
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(LOOK);
        rows = follow.poll()?;
    }
}

fn stored(args: &Args, address: &str, terminal: &Terminal) -> anyhow::Result<()> {
    let filter = args.asked.filter();
    let store = anyhook_store::open(address)?;
    let mut last = store.last_seq()?;
    let mut events = place::Place::Store(store.clone()).details(&filter, args.limit)?;
    // What came in between is told by the next round.
    events.retain(|event| event.summary.seq <= last);
    events.reverse();
    loop {
        for event in &events {
            if !tell(args, event, terminal)? {
                return Ok(());
            }
        }
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(LOOK);
        events.clear();
        for summary in store.after(last, &filter, PAGE_MAX)? {
            last = summary.seq;
            events.extend(store.event(&summary.id)?);
        }
    }
}

/// Whether anybody is still reading.
fn tell(args: &Args, event: &EventDetail, terminal: &Terminal) -> anyhow::Result<bool> {
    let line = if args.json {
        show::json(event)?
    } else {
        show::line(&event.summary, terminal)
    };
    Ok(terminal.try_line(&line))
}
