//! `anyhook ship`: this machine's journal to a daemon elsewhere.

use std::path::PathBuf;

use anyhook_daemon::{Ship, ShipError, Shipped};
use anyhook_run::settings::Settings;
use anyhook_run::{Engine, http, server, trust};
use anyhook_store::journal::BatchLimit;
use anyhow::{Context, anyhow, bail};
use serde_json::json;

use crate::cli::Verdict;
use crate::commands::log::place;
use crate::render::Terminal;

/// Send this machine's record to a central daemon
///
/// Sends what has not been sent yet, and remembers how far it came. An event
/// that is sent twice is kept once.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ANYHOOK_TOKEN=… anyhook ship --to https://hooks.example.com\n  \
                  anyhook ship --to https://hooks.example.com --token-file ~/.team-token --follow"
)]
pub struct Args {
    /// The daemon's address
    #[arg(long, value_name = "URL")]
    to: String,
    /// Go on as events come, until it is ended
    #[arg(long)]
    follow: bool,
    /// The daemon's token; the variable ANYHOOK_TOKEN when absent
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The name of this machine in the record; the host's own when absent
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let engine = Engine::from_env();
    let settings = Settings::load(&engine.dirs).map_err(|why| anyhow!(why))?;
    http::check_address(&args.to, &settings.http.allow_plain).map_err(|why| anyhow!(why))?;
    let token = match &args.token_file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("the token in `{}` cannot be read", path.display()))?
                .trim()
                .to_owned(),
        ),
        None => server::token(&engine.dirs, server::is_near(&args.to)),
    };
    let Some(token) = token else {
        bail!("the daemon's token is needed: set ANYHOOK_TOKEN, or give `--token-file FILE`");
    };
    place::private_folder(&engine.dirs.state)?;
    // Each target has its own place to go on from.
    let to = args.to.trim_end_matches('/');
    let key = trust::hash(to.as_bytes());
    let state = format!("ship-{}.json", key.get(..16).unwrap_or(&key));
    let ship = Ship {
        journal: engine.journal.folder().to_owned(),
        state: engine.dirs.state.join(state),
        to: to.to_owned(),
        token,
        machine: args.machine.clone().or_else(host_name),
        batch: BatchLimit::default(),
    };
    let say = |shipped: &Shipped| {
        let events = shipped.events;
        if args.json {
            terminal.line(&json!({"batches": shipped.batches, "events": events}).to_string());
        } else {
            terminal.line(&format!(
                "Sent {} events: {} new, {} known already, {} not understood.",
                events.new + events.duplicate + events.refused,
                events.new,
                events.duplicate,
                events.refused
            ));
        }
    };
    if !args.follow {
        say(&ship.round()?);
        return Ok(Verdict::Good);
    }
    let wait = |pause| {
        std::thread::sleep(pause);
        true
    };
    let note = |done: &Result<Shipped, ShipError>| match done {
        Ok(shipped) => say(shipped),
        Err(error @ ShipError::Away { .. }) => terminal.note(&format!("{error}; trying again")),
        Err(_) => {}
    };
    ship.follow(wait, note)?;
    Ok(Verdict::Good)
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_str().ok()?;
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
