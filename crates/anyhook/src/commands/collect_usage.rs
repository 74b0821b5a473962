//! `anyhook collect-usage`: brings the sums up to date that `anyhook guard budget` reads.
//!
//! The dispatcher starts it; `anyhook stats` does the same and shows the sums.

use anyhook_export::usage::NamedTranscript;
use anyhook_run::Engine;

use crate::cli::CommandStatus;
use crate::commands::usage_log::UsageLog;

/// Read new tokens from transcripts
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct CollectUsageArgs {
    #[arg(long, requires_all = ["session", "transcript"])]
    agent: Option<String>,
    #[arg(long)]
    session: Option<String>,
    #[arg(long)]
    transcript: Option<String>,
}

impl CollectUsageArgs {
    fn named_transcript(&self) -> Option<NamedTranscript> {
        Some(NamedTranscript {
            agent: self.agent.clone()?,
            session: self.session.clone()?,
            path: self.transcript.clone()?,
        })
    }
}

pub(crate) fn run(args: &CollectUsageArgs) -> anyhow::Result<CommandStatus> {
    let usage = UsageLog::open(&Engine::from_env())?;
    usage.collect_with(args.named_transcript())?;
    Ok(CommandStatus::Success)
}
