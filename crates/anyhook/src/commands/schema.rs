//! `anyhook schema`.

use anyhook_model::{message_schema, schema};
use clap::ValueEnum;

use crate::cli::CommandStatus;
use crate::render::Terminal;

/// Print a JSON Schema, for editors and generators
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook schema manifest > hooks.schema.json\n  anyhook schema event"
)]
pub(crate) struct SchemaArgs {
    /// The format to describe
    name: SchemaName,
}

#[derive(Clone, Copy, ValueEnum)]
enum SchemaName {
    /// hooks.yaml, hooks.json
    Manifest,
    /// policy.json, policy.yaml
    Policy,
    /// What a hook reads on stdin
    Event,
    /// What a hook answers on stdout
    Response,
    /// A line of the journal, and the `record` of the HTTP API
    Record,
    /// config.yaml, the user's settings
    Config,
    /// The HTTP API of `anyhook serve`, as OpenAPI 3.1
    Openapi,
    /// OpenHook envelopes and discovery files
    Openhook,
}

pub(crate) fn run(args: &SchemaArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    terminal.json(&match args.name {
        SchemaName::Manifest => schema::manifest(),
        SchemaName::Policy => schema::policy(),
        SchemaName::Event => message_schema::message("event"),
        SchemaName::Response => message_schema::message("response"),
        SchemaName::Record => message_schema::message("record"),
        SchemaName::Config => message_schema::config(),
        SchemaName::Openapi => serde_json::from_str(anyhook_daemon::OPENAPI_JSON)?,
        SchemaName::Openhook => openhook::bundle(),
    })
}
