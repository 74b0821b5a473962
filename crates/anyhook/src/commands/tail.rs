//! `anyhook tail`: the last events, and new ones as they arrive.

use std::time::Duration;

use anyhook_run::Engine;
use anyhook_store::scan::JournalFollower;
use anyhook_store::{EventDetail, MAX_PAGE_SIZE};

use crate::cli::CommandStatus;
use crate::commands::log::event_log::{EventLog, named_store, to_detail};
use crate::commands::log::filter_args::FilterArgs;
use crate::commands::log::format;
use crate::render::Terminal;

const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show the last events and, with -f, new ones as they arrive
///
/// Reads the journal, so it needs no daemon; with `--store` it follows that store.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook tail -f\n  anyhook tail -f --decision deny --json")]
pub(crate) struct TailArgs {
    /// Keep printing events as they arrive
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Number of past events to start with
    #[arg(short = 'n', long, default_value_t = 10, value_name = "COUNT")]
    limit: usize,
    /// Print JSON, one event per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TailArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    match named_store(args.filter.store.as_deref()) {
        Some(address) => tail_store(args, &address, terminal)?,
        None => tail_journal(args, terminal)?,
    }
    Ok(CommandStatus::Success)
}

fn tail_journal(args: &TailArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let dir = Engine::from_env().journal.folder().to_owned();
    let (mut rows, mut follow) =
        JournalFollower::after_newest(&dir, &args.filter.to_filter(), args.limit)?;
    rows.reverse();
    let events = rows.iter().map(to_detail).collect::<anyhow::Result<_>>()?;
    print_and_follow(args, terminal, events, || {
        follow.poll()?.iter().map(to_detail).collect()
    })
}

fn tail_store(args: &TailArgs, address: &str, terminal: &Terminal) -> anyhow::Result<()> {
    let filter = args.filter.to_filter();
    let store = anyhook_store::open(address)?;
    let mut last = store.last_seq()?;
    let mut events = EventLog::Store(store.clone()).details(&filter, args.limit)?;
    // Events that arrived since `last_seq` come with the first poll.
    events.retain(|event| event.summary.seq <= last);
    events.reverse();
    print_and_follow(args, terminal, events, || {
        let mut events = Vec::new();
        for row in store.after(last, MAX_PAGE_SIZE)? {
            last = row.summary.seq;
            if filter.matches(&row) {
                events.push(row.into_detail()?);
            }
        }
        Ok(events)
    })
}

/// Prints events, then what `poll` returns, until the reader of stdout is gone.
fn print_and_follow(
    args: &TailArgs,
    terminal: &Terminal,
    mut events: Vec<EventDetail>,
    mut poll: impl FnMut() -> anyhow::Result<Vec<EventDetail>>,
) -> anyhow::Result<()> {
    loop {
        for event in &events {
            let line = if args.json {
                format::event_json(event)?
            } else {
                format::event_line(&event.summary, terminal)
            };
            if !terminal.try_line(&line) {
                return Ok(());
            }
        }
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
        events = poll()?;
    }
}
