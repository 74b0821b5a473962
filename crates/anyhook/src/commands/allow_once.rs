//! `anyhook allow-once`: lets a denied call through, once.

use anyhook_model::{Decision, Record};
use anyhook_run::Engine;
use anyhook_run::record::allowed_once::EXCEPTION_LIFETIME;
use anyhow::bail;
use serde_json::json;

use crate::cli::CommandStatus;
use crate::commands::log::event_log::EventLog;
use crate::render::{Terminal, visible};

/// Let a denied call pass the next time that the agent tries it, once
///
/// Finds the call by the id that `anyhook log --decision deny` shows. The same
/// call then passes once, in the same session and folder, within ten minutes; the
/// journal records the exception and its use. A hook of the administrator accepts
/// no exception unless the managed policy says so. Works in a terminal only.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook log --decision deny -n 5\n  anyhook allow-once 4f1c09aa"
)]
pub(crate) struct AllowOnceArgs {
    /// The denied call, by id or id suffix
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &AllowOnceArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let event = EventLog::open(None)?.event(&args.id)?;
    let record: Record = serde_json::from_value(event.record)?;
    let id = &record.id;
    if !matches!(record.decision, Some(Decision::Deny | Decision::Ask)) {
        bail!("the call `{id}` was not denied");
    }
    if let Err(why) = Engine::from_env().allow_once(&record) {
        bail!("the call `{id}` cannot be let through: {why}");
    }
    let seconds = EXCEPTION_LIFETIME.as_secs();
    if args.json {
        return terminal.json(&json!({"allows": id, "seconds": seconds}));
    }
    let detail = event.summary.detail.as_deref().unwrap_or_default();
    terminal.line(&format!(
        "{} may run this once within {} minutes, in the same session and folder:",
        record.agent,
        seconds / 60
    ));
    let tool = event.summary.tool.as_deref().unwrap_or_default();
    terminal.line(&format!("  {} {}", visible(tool), visible(detail)));
    terminal.line("Ask the agent to try it again. The journal records the exception.");
    Ok(CommandStatus::Success)
}
