//! `anyhook events`, `tools`, `capabilities`: the registries as tables.

use anyhook_model::registry::{CAPABILITIES, EVENTS, TOOLS};

use crate::cli::CommandStatus;
use crate::render::Terminal;
use crate::table;

#[derive(clap::Args)]
pub(crate) struct RegistryArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn events(args: &RegistryArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    if args.json {
        return terminal.json(&EVENTS);
    }
    let titles = [
        "event",
        "tier",
        "category",
        "blocking",
        "matcher",
        "description",
    ];
    let rows = EVENTS.iter().map(|event| {
        [
            event.name.into(),
            event.tier.as_str().into(),
            event.category.into(),
            event.blocking.as_str().into(),
            if event.tool { "yes" } else { "" }.into(),
            event.description.into(),
        ]
    });
    table::print_at_margin(terminal, titles, rows);
    Ok(CommandStatus::Success)
}

pub(crate) fn tools(args: &RegistryArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    if args.json {
        return terminal.json(&TOOLS);
    }
    let titles = ["tool", "keys of tool_input", "description"];
    let rows = TOOLS.iter().map(|tool| {
        [
            tool.name.into(),
            tool.input.join(", ").into(),
            tool.description.into(),
        ]
    });
    table::print_at_margin(terminal, titles, rows);
    Ok(CommandStatus::Success)
}

pub(crate) fn capabilities(
    args: &RegistryArgs,
    terminal: &Terminal,
) -> anyhow::Result<CommandStatus> {
    if args.json {
        return terminal.json(&CAPABILITIES);
    }
    let titles = ["capability", "default", "description", "inferred from"];
    let rows = CAPABILITIES.iter().map(|capability| {
        [
            capability.name.into(),
            capability.default.as_str().into(),
            capability.description.into(),
            capability.inference.into(),
        ]
    });
    table::print_at_margin(terminal, titles, rows);
    Ok(CommandStatus::Success)
}
