//! `anyhook events`, `tools`, `capabilities`: the registries as tables.

use anyhook_model::registry::{CAPABILITIES, EVENTS, TOOLS};

use crate::cli::Verdict;
use crate::render::Terminal;

/// List the canonical events
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook events --json")]
pub struct Events {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn events(args: &Events, terminal: &Terminal) -> anyhow::Result<Verdict> {
    if args.json {
        terminal.json(&EVENTS)?;
        return Ok(Verdict::Good);
    }
    let rows: Vec<Vec<String>> = EVENTS
        .iter()
        .map(|event| {
            vec![
                event.name.to_owned(),
                event.tier.as_str().to_owned(),
                event.category.to_owned(),
                event.blocking.as_str().to_owned(),
                if event.tool { "yes" } else { "" }.to_owned(),
                event.description.to_owned(),
            ]
        })
        .collect();
    terminal.table(
        &[
            "event",
            "tier",
            "category",
            "blocking",
            "matcher",
            "description",
        ],
        &rows,
    );
    Ok(Verdict::Good)
}

/// List the canonical tools
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook tools --json")]
pub struct Tools {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn tools(args: &Tools, terminal: &Terminal) -> anyhow::Result<Verdict> {
    if args.json {
        terminal.json(&TOOLS)?;
        return Ok(Verdict::Good);
    }
    let rows: Vec<Vec<String>> = TOOLS
        .iter()
        .map(|tool| {
            vec![
                tool.name.to_owned(),
                tool.input.join(", "),
                tool.description.to_owned(),
            ]
        })
        .collect();
    terminal.table(&["tool", "keys of tool_input", "description"], &rows);
    Ok(Verdict::Good)
}

/// List the capabilities that a hook may need
#[derive(clap::Args)]
#[command(after_help = "Example:\n  anyhook capabilities --json")]
pub struct Capabilities {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn capabilities(args: &Capabilities, terminal: &Terminal) -> anyhow::Result<Verdict> {
    if args.json {
        terminal.json(&CAPABILITIES)?;
        return Ok(Verdict::Good);
    }
    let rows: Vec<Vec<String>> = CAPABILITIES
        .iter()
        .map(|capability| {
            vec![
                capability.name.to_owned(),
                capability.default.as_str().to_owned(),
                capability.description.to_owned(),
                capability.inference.to_owned(),
            ]
        })
        .collect();
    terminal.table(&["capability", "default", "description", "seen by"], &rows);
    Ok(Verdict::Good)
}
