//! `anyhook status`: where the bridge stands, and when it was last heard of.

use anyhook_codex::map::SOURCE;
use anyhook_codex::state::Running;
use anyhook_install::status::{Status, status};
use anyhow::bail;
use serde_json::Value;

use super::install;
use crate::cli::Verdict;
use crate::render::Terminal;

/// Show in which agents the bridge stands, and when it last heard of them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook status\n  anyhook status --agent codex --json")]
pub struct Args {
    /// Only this agent; may be given several times [default: all that are here]
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Do not start the agents' programs to ask for their versions
    #[arg(long)]
    no_versions: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let world = install::world()?;
    let mut named = Vec::new();
    for name in &args.agent {
        let adapter = super::agents::find(name)?;
        if adapter.spec.pseudo {
            bail!("`{name}` is a form of hooks, not an agent");
        }
        named.push(adapter);
    }
    let rows = status(&world, &named, !args.no_versions);
    let bridges = anyhook_codex::state::running(&world.dirs.state);
    if args.json {
        terminal.json(&with_bridges(&rows, &bridges)?)?;
        return Ok(Verdict::Good);
    }
    if rows.is_empty() && bridges.is_empty() {
        terminal.line("No agent was found here, and the bridge stands in no file of one.");
        return Ok(Verdict::Good);
    }
    let table: Vec<Vec<String>> = rows.iter().flat_map(lines).collect();
    terminal.table(
        &[
            "agent",
            "scope",
            "installed",
            "events",
            "trusted",
            "version",
            "last event",
        ],
        &table,
    );
    if !bridges.is_empty() {
        terminal.line("");
        let rows: Vec<Vec<String>> = bridges
            .iter()
            .map(|bridge| {
                let server = bridge
                    .server
                    .clone()
                    .unwrap_or_else(|| "not connected".to_owned());
                vec![
                    bridge.url.clone(),
                    server,
                    bridge.pid.to_string(),
                    bridge.since.clone(),
                ]
            })
            .collect();
        terminal.table(&["app server", "is", "pid", "since"], &rows);
    }
    Ok(Verdict::Good)
}

/// The agents, with the app servers that a bridge of theirs is attached to.
fn with_bridges(rows: &[Status], bridges: &[Running]) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(rows)?;
    let row = value.as_array_mut().and_then(|rows| {
        rows.iter_mut()
            .find(|row| row.get("agent").and_then(Value::as_str) == Some(SOURCE))
    });
    if let (Some(Value::Object(row)), false) = (row, bridges.is_empty()) {
        row.insert("app_servers".to_owned(), serde_json::to_value(bridges)?);
    }
    Ok(value)
}

/// One line per scope; what is the agent's stands on the first.
fn lines(row: &Status) -> Vec<Vec<String>> {
    let version = match (&row.version, row.coverage) {
        (None, _) => "-".to_owned(),
        (Some(version), "same" | "unknown") => version.clone(),
        (Some(version), than) => format!("{version} ({than} than our facts: {})", row.facts),
    };
    let last = row.last.as_ref().map_or("-".to_owned(), |seen| {
        format!("{} {}", seen.time, seen.event)
    });
    let mut lines: Vec<Vec<String>> = Vec::new();
    for scope in &row.scopes {
        let is_first = lines.is_empty();
        let (events, trusted) = if scope.installed {
            (
                format!("{}/{}", scope.events.len(), scope.possible),
                scope.trusted.to_owned(),
            )
        } else {
            ("-".to_owned(), "-".to_owned())
        };
        let own = |text: &String| {
            if is_first {
                text.clone()
            } else {
                String::new()
            }
        };
        lines.push(vec![
            own(&row.agent),
            scope.scope.to_owned(),
            if scope.installed { "yes" } else { "no" }.to_owned(),
            events,
            trusted,
            own(&version),
            own(&last),
        ]);
    }
    lines
}
