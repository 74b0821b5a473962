//! `anyhook ship`: sends this machine's journal to a central daemon.

use std::path::PathBuf;

use anyhook_daemon::{JournalShipper, ShipError, ShipSummary};
use anyhook_run::Engine;
use anyhook_run::config::settings::Settings;
use anyhook_run::daemon_client;
use anyhook_run::run::http;
use anyhook_store::journal::BatchLimit;
use anyhow::{Context, anyhow, bail};
use serde_json::json;

use crate::cli::CommandStatus;
use crate::commands::log::event_log;
use crate::progress::Progress;
use crate::render::Terminal;

/// Send this machine's recorded events to a central daemon
///
/// Sends the events that were not sent yet, and remembers its position. The
/// daemon keeps an event once, even if it is sent twice.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ANYHOOK_TOKEN=… anyhook ship --to https://hooks.example.com\n  \
                  anyhook ship --to https://hooks.example.com --token-file ~/.team-token --follow"
)]
pub(crate) struct ShipArgs {
    /// The daemon's address
    #[arg(long, value_name = "URL")]
    to: String,
    /// Keep sending events as they arrive, until stopped
    #[arg(long)]
    follow: bool,
    /// File with the daemon's token [default: the variable ANYHOOK_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The name of this machine in the store [default: the host name]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ShipArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let engine = Engine::from_env();
    let settings = Settings::load(&engine.dirs).map_err(|why| anyhow!(why))?;
    http::check_address(&args.to, &settings.http.allow_plain).map_err(|why| anyhow!(why))?;
    let token = match &args.token_file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("could not read the token in `{}`", path.display()))?
                .trim()
                .to_owned(),
        ),
        None => daemon_client::token(&engine.dirs, daemon_client::is_local(&args.to)),
    };
    let Some(token) = token else {
        bail!("the daemon's token is missing: set ANYHOOK_TOKEN or pass `--token-file <FILE>`");
    };
    event_log::create_private_folder(&engine.dirs.state)?;
    // Each daemon has its own position in the journal.
    let to = args.to.trim_end_matches('/');
    let key = anyhook_util::hash::sha256(to.as_bytes());
    let state = format!("ship-{}.json", key.get(..16).unwrap_or(&key));
    let ship = JournalShipper {
        journal: engine.journal.folder().to_owned(),
        state: engine.dirs.state.join(state),
        to: to.to_owned(),
        token,
        machine: args.machine.clone().or_else(host_name),
        batch: BatchLimit::default(),
    };
    let print = |shipped: &ShipSummary| {
        let events = shipped.events;
        if args.json {
            terminal.line(&json!({"batches": shipped.batches, "events": events}).to_string());
        } else {
            terminal.line(&format!(
                "Sent {} events: {} new, {} already known, {} rejected.",
                events.new + events.duplicate + events.refused,
                events.new,
                events.duplicate,
                events.refused
            ));
        }
    };
    if !args.follow {
        let progress = Progress::start("Sending the journal", "");
        let shipped = ship.ship_once()?;
        if shipped.batches == 0 {
            ship.check_access()?;
        }
        drop(progress);
        print(&shipped);
        return Ok(CommandStatus::Success);
    }
    let wait = |pause| {
        std::thread::sleep(pause);
        true
    };
    let report = |done: &Result<ShipSummary, ShipError>| match done {
        Ok(shipped) => print(shipped),
        Err(error @ ShipError::Unavailable { .. }) => {
            terminal.note(&format!("{error}; trying again"));
        }
        Err(_) => {}
    };
    ship.follow(wait, report)?;
    Ok(CommandStatus::Success)
}

#[cfg(unix)]
pub(crate) fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_str().ok()?;
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

#[cfg(not(unix))]
pub(crate) fn host_name() -> Option<String> {
    anyhook_util::env::COMPUTERNAME.text()
}
