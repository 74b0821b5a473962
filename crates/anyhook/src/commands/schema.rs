//! `anyhook schema`.

use anyhook_model::schema;
use clap::ValueEnum;

use crate::cli::Verdict;
use crate::render::Terminal;

/// Print a JSON Schema, for editors
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook schema manifest > hooks.schema.json")]
pub struct Args {
    name: Name,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// hooks.yaml, hooks.json
    Manifest,
    /// policy.json, policy.yaml
    Policy,
    /// OpenHook envelopes and discovery files
    Openhook,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    terminal.json(&match args.name {
        Name::Manifest => schema::manifest(),
        Name::Policy => schema::policy(),
        Name::Openhook => openhook::bundle(),
    })?;
    Ok(Verdict::Good)
}
