//! `anyhook schema`.

use anyhook_model::schema;
use clap::ValueEnum;

use crate::cli::CommandStatus;
use crate::render::Terminal;

/// Print a JSON Schema, for editors and generators
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook schema manifest > hooks.schema.json")]
pub(crate) struct SchemaArgs {
    /// The file format to describe
    name: SchemaName,
}

#[derive(Clone, Copy, ValueEnum)]
enum SchemaName {
    /// hooks.yaml, hooks.json
    Manifest,
    /// policy.json, policy.yaml
    Policy,
    /// OpenHook envelopes and discovery files
    Openhook,
}

pub(crate) fn run(args: &SchemaArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    terminal.json(&match args.name {
        SchemaName::Manifest => schema::manifest(),
        SchemaName::Policy => schema::policy(),
        SchemaName::Openhook => openhook::bundle(),
    })
}
